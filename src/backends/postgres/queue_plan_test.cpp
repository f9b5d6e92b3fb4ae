// SPDX-License-Identifier: Apache-2.0
// The plan of every hot statement of the queue, prepared while the tables were empty, under the settings that
// our own transactions use: see plan_fixture.hpp.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/postgres/plan_fixture.hpp"
#include "backends/postgres/queue_sql.hpp"

namespace postrider::postgres {
namespace {

class QueuePlanTest : public PlanTest {
 protected:
  void SetUp() override {
    PlanTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    sql_.emplace(database_->options().schema);
    connection_ = connect();
    prepare(
        {"event_queue", "event_log", "event_handler_state", "event_attempt"},
        {
            {"insert", &sql_->insert, insert_arguments("NULL"), {}},
            {"insert_deduped", &sql_->insert_deduped, insert_arguments("'{d1}'"), {"event_queue_dedupe"}},
            {"find_deduped", &sql_->find_deduped, "'{d1}'", {"event_queue_dedupe"}},
            {"claim",
             &sql_->claim,
             "'n', '30 s', '{9,0}', '{-infinity,-infinity}', '{0,0}', 10, 3, 200, true, NULL, '{X}', 2",
             {"Index Scan using event_queue_due on", "Index Cond: ((priority = l.priority) AND (ROW(",
              "Tid Scan", "event_queue_key"}},
            {"probe", &sql_->probe, "", {"event_queue_key"}},
            {"walk",
             &sql_->walk,
             "'a', 1, 'z', 200, NULL, '{X}'",
             {"event_queue_key", "ROW((ordering_key)::text, id) >"}},
            {"lock_heads", &sql_->lock_heads, "'{1,2}', NULL, '{X}'", {"event_queue_pkey"}},
            {"lock_followers",
             &sql_->lock_followers,
             "'{k1,k2}', '{1,2}', 10, NULL, '{X}'",
             {"event_queue_key", "event_queue_pkey"}},
            {"take", &sql_->take, "'n', '30 s', '{1}', '{f}', '{f}', NULL", {"event_queue_pkey"}},
            {"renew", &sql_->renew, "'{1,2}', '{1,1}', '30 s', NULL", {"event_queue_pkey", "Tid Scan"}, true},
            {"finalize", &sql_->finalize, "'{1,2}', '{1,1}', '{2,2}', NULL, NULL", {"event_queue_pkey"}},
            {"finalize_unnumbered",
             &sql_->finalize_unnumbered,
             "'{1,2}', '{1,1}', '{2,2}', NULL, NULL",
             {"event_queue_pkey"}},
            {"retry",
             &sql_->retry,
             "'{1}', '{1}', '{1 s}', '{x}', '{1}', '{h}', '{0}', '{0}', '{x}', NULL",
             {"event_queue_pkey"}},
            {"release", &sql_->release, "'{1}', '{1}', '{0}', NULL", {"event_queue_pkey"}},
            {"log_crashes", &sql_->log_crashes, "'{1,2}', NULL", {"event_queue_pkey"}},
            {"log_attempts", &sql_->log_attempts, "'{1}', '{1}', '{0}', '{x}', NULL", {"event_queue_pkey"}},
            {"trim_attempts", &sql_->trim_attempts, "'{1,2}'", {"event_attempt_pkey"}},
            {"lock_idle", &sql_->lock_idle, "'{1,2}'", {"event_queue_pkey"}},
            {"classify", &sql_->classify, "'{1}', '{1}'", {"event_queue_pkey", "event_log_pkey"}},
            {"save_states",
             &sql_->save_states,
             "1, 1, '{h}', '{0}', '{0}', '{x}', NULL",
             {"event_queue_pkey"}},
            {"load_states", &sql_->load_states, "'{1,2}'", {"event_handler_state_pkey"}},
            {"clean_states", &sql_->clean_states, "100", {"event_handler_state_pkey", "event_queue_pkey"}},
            {"any_unnumbered", &sql_->any_unnumbered, "", {"event_log_unnumbered"}},
            {"number_log", &sql_->number_log, "100", {"event_log_unnumbered", "event_log_pkey"}},
        });
  }

  [[nodiscard]] static std::string insert_arguments(const std::string& dedupe) {
    return "'{e}', '{T}', NULL, NULL, NULL, NULL, " + dedupe +
           ", NULL, ARRAY['{}'::json], NULL, '{0}', '{now}', NULL, NULL";
  }
  /// Every fourth row has a key, ten rows each; all are due, the oldest last in the table. As many entries in
  /// the log, every thousandth without a number, and a state for every tenth row.
  void fill(int from, int to) {
    const std::string range =
        "FROM generate_series(" + std::to_string(from) + ", " + std::to_string(to) + ") AS i";
    run(connection_, "INSERT INTO " + database_->table("event_queue") +
                         " (id, event_id, event_type, payload, ordering_key, dedupe_key, priority, "
                         "available_at) SELECT i, 'e' || i, 'T', '{}', "
                         "CASE WHEN i % 4 = 0 THEN 'k' || (i / 40) END, 'd' || i, i % 10, "
                         "now() - i * interval '1 second' " +
                         range);
    run(connection_, "INSERT INTO " + database_->table("event_log") +
                         " (id, seq, token, event_id, event_type, payload, status, priority, attempts, "
                         "crashes, created_at, occurred_at, finalized_at) SELECT i, CASE WHEN i % 1000 > 0 "
                         "THEN i END, 1, 'e', 'T', '{}', 2, 0, 1, 0, now(), now(), now() " +
                         range);
    run(connection_, "INSERT INTO " + database_->table("event_handler_state") +
                         " (id, handler, result, updated_at) SELECT i, 'h', 0, now() " + range +
                         " WHERE i % 10 = 0");
  }
  std::optional<QueueSql> sql_;
};

TEST_F(QueuePlanTest, StaysOnItsIndexesFromEmptyToHalfAMillionRows) {
  expect_good_plans("empty");
  fill(1, 10'000);
  expect_good_plans("10,000 rows, not analysed");
  analyze();
  expect_good_plans("10,000 rows, analysed");
  fill(10'001, 500'000);
  expect_good_plans("500,000 rows, analysed at 10,000");
  analyze();
  expect_good_plans("500,000 rows, analysed");
}

}  // namespace
}  // namespace postrider::postgres
