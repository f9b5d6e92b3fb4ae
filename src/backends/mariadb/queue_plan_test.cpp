// SPDX-License-Identifier: Apache-2.0
// The plans of the queue's hot statements. MariaDB plans a prepared statement anew whenever it is executed,
// so that it does not matter how full the table was when it was prepared.
#include "backends/mariadb/plan_fixture.hpp"
#include "backends/mariadb/queue_sql.hpp"

namespace postrider::mariadb {
namespace {

using namespace std::chrono_literals;

class MariadbQueuePlanTest : public MariadbPlanFixture {
 protected:
  /// A third has keys, of which "big" alone has half. One in ten is leased. As many are in the log.
  void fill(int rows) {
    storage();
    client().query("SET SESSION max_recursive_iterations = 10000000");
    const std::string numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " +
                                std::to_string(rows) + ") ";
    client().query(
        "INSERT INTO " + queue_table() +
        " (event_id, event_type, ordering_key, payload, status, lease_until, owner, priority, "
        "available_at) " +
        numbers +
        "SELECT CONCAT('e', i), 'T', IF(i % 3 > 0, NULL, IF(i % 2, 'big', CONCAT('k', i % 1000))), "
        "'{}', i % 10 = 9, IF(i % 10 = 9, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, NULL), "
        "IF(i % 10 = 9, 'n', NULL), IF(i % 100 = 1, 5, 0), UTC_TIMESTAMP(6) - INTERVAL 60 SECOND "
        "FROM n");
    client().query("INSERT INTO " + prefix_ +
                   "_event_log (id, seq, token, event_id, event_type, payload, status, priority, attempts, "
                   "crashes, created_at, occurred_at, finalized_at) " +
                   numbers +
                   "SELECT i + 1000000000, IF(i = 7, NULL, i), 1, CONCAT('e', i), 'T', '{}', 2, 0, 1, 0, "
                   "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM n");
    client().query("INSERT INTO " + prefix_ + "_event_handler_state (id, handler, result, updated_at) " +
                   numbers + "SELECT i, 'h', 0, UTC_TIMESTAMP(6) FROM n WHERE i % 10 = 0");
    client().query("UPDATE " + prefix_ + "_event_log_head SET last = " + std::to_string(rows));
    for (const char* name : {"_event_queue", "_event_log", "_event_handler_state"}) {
      client().query("ANALYZE TABLE " + prefix_ + name);
    }
  }

  void expect_all_plans() {
    const QueueSql sql{Identifier(prefix_)};
    const std::int64_t now = 4'000'000'000'000'000;  // some day in 2096, in any case later than what is due
    const std::int64_t early = -30'000'000'000'000'000;
    for (const std::int64_t from : {early, now - 1}) {
      std::vector<Value> levels;
      for (int level = 0; level <= max_priority; ++level) {
        levels.insert(levels.end(), {from, 0, from, now, now, 9, ""});
      }
      expect_plan(sql.first_due, levels, "event_queue_due");
      expect_plan(sql.lock_due, {0, from, 17, from, now, now, 9, "", 500}, "event_queue_due");
    }
    for (const std::string& heads : {sql.first_heads, sql.next_heads}) {
      const std::vector<Line> lines = explain(heads, {"k1", 512});
      ASSERT_EQ(lines.size(), 2U);
      EXPECT_EQ(lines[1].type, "range");
      EXPECT_EQ(lines[1].key, "event_queue_key");
      EXPECT_EQ(lines[1].extra, "Using where; Using index");
    }
    expect_plan(sql.remove_one, {101}, "PRIMARY");
    EXPECT_EQ(explain(sql.remove_exactly, {"[101,102]"}).at(1).type, "eq_ref");
    expect_plan(sql.quarantine, {now, now, "why", 101}, "PRIMARY");
    expect_plan(sql.retry, {nullptr, 5, "why", nullptr, 101}, "PRIMARY");
    expect_plan(sql.unnumbered, {}, "event_log_seq");
    expect_plan(sql.lock_unnumbered, {1000}, "event_log_seq");
    expect_plan(sql.give_number, {1, 101}, "PRIMARY");
    expect_plan(sql.drop_state, {10, "h"}, "PRIMARY");
    for (const std::size_t count : ListSql::sizes) {
      const auto with = [&](std::vector<Value> before, std::vector<Value> after = {},
                            std::int64_t first = 1) {
        for (std::size_t i = 0; i < count; ++i)
          before.emplace_back(first + 10 * static_cast<std::int64_t>(i));
        before.insert(before.end(), after.begin(), after.end());
        return before;
      };
      expect_plan(sql.eligible.for_count(count).sql, with({}, {now, now, ""}), "PRIMARY");
      expect_plan(sql.lock_rows.for_count(count).sql, with({}, {now, now, ""}), "PRIMARY");
      expect_plan(sql.take.for_count(count).sql, with({"n", now, now, now}), "PRIMARY");
      expect_plan(sql.lock_held.for_count(count).sql, with({}), "PRIMARY");
      expect_plan(sql.lock_idle.for_count(count).sql, with({}), "PRIMARY");
      expect_plan(sql.held.for_count(count).sql, with({nullptr}, {}, 9), "PRIMARY");
      expect_plan(sql.extend.for_count(count).sql, with({nullptr, 5, nullptr}), "PRIMARY");
      expect_plan(sql.lock_whole.for_count(count).sql, with({}), "PRIMARY");
      expect_plan(sql.lock_whole_idle.for_count(count).sql, with({}), "PRIMARY");
      expect_plan(sql.present.for_count(count).sql, with({}), "PRIMARY");
      expect_plan(sql.release.for_count(count).sql, with({nullptr}), "PRIMARY");
      expect_plan(sql.find_logged.for_count(count).sql, with({}, {}, 1'000'000'001), "PRIMARY");
      expect_plan(sql.load_states.for_count(count).sql, with({}, {}, 10), "PRIMARY");
      if (count <= 16) {
        std::vector<Value> keys;
        for (std::size_t i = 0; i < count; ++i) keys.insert(keys.end(), {now, now, "", "big", 0, 25});
        expect_plan(sql.followers.for_count(count).sql, keys, "event_queue_key");
      }
    }
  }
};

TEST_F(MariadbQueuePlanTest, HotStatementsUseTheirIndexesOverTenThousandRows) {
  fill(20'000);
  if (!IsSkipped() && !HasFatalFailure()) expect_all_plans();
}

TEST_F(MariadbQueuePlanTest, HotStatementsUseTheirIndexesOverManyRowsAndReadFew) {
  fill(200'000);
  if (IsSkipped() || HasFatalFailure()) return;
  expect_all_plans();

  StorageOptions options;
  options.pool_size = 1;  // so that the server's count is this session's
  const auto one = open_storage(options);
  QueueStore& queue = one->queue_store();
  std::vector<QueuedEvent> claimed;
  EXPECT_LT(
      rows_read(
          *one,
          [&] { claimed = queue.claim({.owner = "n", .lease = 30s, .limit = 200, .run_limit = 4}).events; }),
      20'000)
      << "a key of many rows is not walked through";
  ASSERT_EQ(claimed.size(), 200U);
  std::vector<Settlement> done;
  for (const QueuedEvent& event : claimed) done.push_back({.claim = event.claim});
  EXPECT_LT(rows_read(*one, [&] { EXPECT_EQ(queue.settle(done).back(), Settled::applied); }), 2'000);
}

}  // namespace
}  // namespace postrider::mariadb
