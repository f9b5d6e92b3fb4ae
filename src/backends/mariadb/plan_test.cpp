// SPDX-License-Identifier: Apache-2.0
// The plan of each hot statement, as the server makes it for the prepared statement's text, over a small and
// a large table.
#include <gmock/gmock.h>

#include "backends/mariadb/outbox_sql.hpp"
#include "backends/mariadb/plan_fixture.hpp"

namespace postrider::mariadb {
namespace {

class MariadbPlanTest : public MariadbPlanFixture {
 protected:
  /// Of a hundred rows 98 are finished, one waits, one waits with a key; of these every other is due.
  void fill(int rows) {
    storage();
    client().query("SET SESSION max_recursive_iterations = 10000000");
    client().query("INSERT INTO " + table() +
                   " (event_id, event_type, ordering_key, payload, status, done_at, available_at) "
                   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " +
                   std::to_string(rows) +
                   ") "
                   "SELECT CONCAT('e', i), 'T', IF(i % 2 = 0, CONCAT('k', (i DIV 100) % 50), NULL), '{}', "
                   "IF(i % 100 < 2, 0, IF(i % 100 = 2, 3, 1)), IF(i % 100 < 2, NULL, UTC_TIMESTAMP(6) - "
                   "INTERVAL i SECOND), "
                   "UTC_TIMESTAMP(6) + INTERVAL IF(i % 200 < 100, -10, 3600) SECOND FROM n");
    client().query("ANALYZE TABLE " + table());
  }

  void expect_all_plans() {
    const OutboxSql sql{Identifier(prefix_)};
    const std::int64_t now = 4'000'000'000'000'000;  // some day in 2096, in any case later than what is due
    expect_plan(sql.lock_free, {now, 200}, "outbox_event_due");
    expect_plan(sql.due_keys, {now, 256}, "outbox_event_due");
    expect_plan(sql.predecessors, {"k1", "e5100", 10}, "outbox_event_key");
    expect_plan(sql.defer, {now, 101}, "PRIMARY");
    expect_plan(sql.retry, {1, "why", nullptr, 5, "e101", 1}, "outbox_event_id");
    expect_plan(sql.later, {"x", nullptr, 5, "e101", 1}, "outbox_event_id");
    expect_plan(sql.bury, {1, "why", nullptr, "e101", 1}, "outbox_event_id");
    const std::vector<Line> trim = explain(sql.trim_attempts, {"e101", "e101"});
    ASSERT_EQ(trim.size(), 3U) << "the second reads the one row that the third finds";
    EXPECT_EQ(trim[0].key, "PRIMARY");
    EXPECT_EQ(trim[2].key, "PRIMARY");
    for (const std::size_t count : ListSql::sizes) {
      const auto with = [&](std::vector<Value> before, const auto& value_at, std::vector<Value> after = {}) {
        for (std::size_t i = 0; i < count; ++i) before.push_back(value_at(i));
        before.insert(before.end(), after.begin(), after.end());
        return before;
      };
      std::vector<std::string> ids;
      for (std::size_t i = 0; i < count; ++i) ids.push_back("e" + std::to_string(100 * i + 1));
      const auto seq = [](std::size_t i) { return Value(100 * i + 1); };
      const auto id = [&](std::size_t i) { return Value(ids[i]); };
      expect_plan(sql.lock_rows.for_count(count).sql, with({}, seq), "PRIMARY");
      expect_plan(sql.lock_due.for_count(count).sql, with({}, seq, {now}), "PRIMARY");
      expect_plan(sql.take.for_count(count).sql, with({"node", now}, seq), "PRIMARY");
      expect_plan(sql.extend.for_count(count).sql, with({nullptr, 5}, seq), "PRIMARY");
      expect_plan(sql.lock_held.for_count(count).sql, with({}, id), "outbox_event_id");
      expect_plan(sql.finish.for_count(count).sql, with({nullptr, 1}, id), "outbox_event_id");
      expect_plan(sql.release.for_count(count).sql, with({1}, id), "outbox_event_id");
      if (count <= 16) {
        std::vector<Value> keys;
        for (std::size_t i = 0; i < count; ++i) keys.insert(keys.end(), {"k1", 0, 25});
        expect_plan(sql.key_runs.for_count(count).sql, keys, "outbox_event_key");
      }
    }
    // What operators run, as SqlOutboxAdminStore writes it.
    const std::string at = "(TIMESTAMP'1970-01-01 00:00:00' + INTERVAL ? MICROSECOND)";
    expect_plan("delete from " + table() + " where status = 1 and done_at <= (select " + at +
                    ") order by done_at limit ?",
                {1'000'000, 1000}, "outbox_event_finished");
    expect_plan("select event_id from " + table() + " where status = 3 order by done_at, event_id limit ?",
                {100}, "outbox_event_finished");
    expect_plan("select * from " + table() + " where event_id = ?", {"e101"}, "outbox_event_id");
    for (const std::string lane : {"0", "1"}) {
      const std::string pending = " where due_lane = " + lane + " and due_at is not null";
      expect_plan(
          "select count(*), count(case when status = 2 or last_error is not null then 1 end), "
          "min(due_at), min(case when status = 2 or last_error is not null then created_at when "
          "available_at <= " +
              at + " then available_at end) from " + table() + pending,
          {now}, "outbox_event_due");
      expect_plan("select last_error from " + table() + pending +
                      " and last_error is not null order by due_at desc limit 1",
                  {}, "outbox_event_due");
    }
  }
};

TEST_F(MariadbPlanTest, HotStatementsUseTheirIndexesOverTenThousandRows) {
  fill(10'000);
  if (!IsSkipped() && !HasFatalFailure()) expect_all_plans();
}

TEST_F(MariadbPlanTest, HotStatementsUseTheirIndexesOverAMillionRows) {
  fill(1'000'000);
  if (IsSkipped() || HasFatalFailure()) return;
  expect_all_plans();

  // And what they read, by the server's own count: one connection, so that it is the session's.
  StorageOptions options;
  options.pool_size = 1;
  const auto storage = open_storage(options);
  OutboxStore& outbox = storage->outbox_store();
  std::vector<ClaimedEvent> claimed;
  EXPECT_LT(rows_read(*storage,
                      [&] {
                        claimed =
                            outbox.claim({.owner = "node", .lease = std::chrono::seconds{30}, .limit = 200});
                      }),
            20'000);
  EXPECT_EQ(claimed.size(), 200U);
  std::vector<Completion> done;
  for (const ClaimedEvent& c : claimed) done.push_back({.lease = c.lease});
  EXPECT_LT(rows_read(*storage, [&] { EXPECT_EQ(outbox.complete(done), 200U); }), 2'000);
}

}  // namespace
}  // namespace postrider::mariadb
