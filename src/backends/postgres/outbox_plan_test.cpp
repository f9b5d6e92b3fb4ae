// SPDX-License-Identifier: Apache-2.0
// The plan of every hot statement, prepared while the table was empty, under the settings that our own
// transactions use: it must reach its rows through the intended index, whatever the table has grown to and
// whether or not it was analysed.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/postgres/outbox_store.hpp"
#include "backends/postgres/plan_fixture.hpp"

namespace postrider::postgres {
namespace {

class OutboxPlanTest : public PlanTest {
 protected:
  void SetUp() override {
    PlanTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    sql_.emplace(database_->options().schema);
    connection_ = connect();
    prepare({"outbox_event", "outbox_attempt"},
            {
                {"any_ordered_due", &sql_->any_ordered_due, "NULL", {"outbox_event_due_ordered"}},
                {"claim_unless_ordered",
                 &sql_->claim_unless_ordered,
                 "'n', '30 s', 200, NULL",
                 {"Index Scan using outbox_event_due on", "outbox_event_due_ordered", "Tid Scan"}},
                {"claim_unordered",
                 &sql_->claim_unordered,
                 "'n', '30 s', 200, NULL",
                 {"Index Scan using outbox_event_due on", "Tid Scan"}},
                {"unordered_share",
                 &sql_->unordered_share,
                 "200, NULL",
                 {"outbox_event_due on", "outbox_event_due_ordered"}},
                {"heads",
                 &sql_->heads,
                 "'{k1,k2}', 200, NULL",
                 {"outbox_event_due_ordered", "outbox_event_key", "outbox_event_pkey"}},
                {"followers",
                 &sql_->followers,
                 "'{k1,k2}', '{1,2}', 200, NULL, 200",
                 {"outbox_event_key", "outbox_event_pkey"}},
                {"take", &sql_->take, "'n', '30 s', '{e1,e2}', NULL", {"outbox_event_pkey"}},
                {"defer",
                 &sql_->defer,
                 "'{k1,k2}', '{1,2}', '{now,now}', NULL",
                 {"outbox_event_key", "Tid Scan"}},
                {"renew", &sql_->renew, "'{e1,e2}', '{1,1}', '30 s', NULL", {"outbox_event_pkey"}},
                {"done", &sql_->done, "'{e1,e2}', 1, NULL", {"outbox_event_pkey"}},
                {"done_each", &sql_->done_each, "'{e1,e2}', '{1,1}', NULL", {"outbox_event_pkey"}},
                {"retry", &sql_->retry, "'{e1}', '{1}', '{1}', '{1 s}', '{x}', NULL", {"outbox_event_pkey"}},
                {"later", &sql_->later, "'{e1}', '{1}', '{1 s}', NULL", {"outbox_event_pkey"}},
                {"dead", &sql_->dead, "'{e1}', '{1}', '{1}', '{x}', NULL", {"outbox_event_pkey"}},
                {"trim_attempts", &sql_->trim_attempts, "'{e1,e2}'", {"outbox_attempt_pkey"}},
                {"release", &sql_->release, "'{e1}', '{1}'", {"outbox_event_pkey"}},
                {"predecessors",
                 &sql_->predecessors,
                 "'k1', 'e4', 10",
                 {"outbox_event_key", "outbox_event_pkey"}},
            });
  }

  /// Every fourth row has a key, ten rows each; all are due, the oldest last in the table.
  void fill(int from, int to) {
    run(connection_,
        "INSERT INTO " + table() +
            " (event_id, event_type, payload, ordering_key, available_at) SELECT 'e' || i, 'T', '{}', "
            "CASE WHEN i % 4 = 0 THEN 'k' || (i / 40) END, now() - i * interval '1 second' "
            "FROM generate_series(" +
            std::to_string(from) + ", " + std::to_string(to) + ") AS i");
  }

  std::optional<OutboxSql> sql_;
};

TEST_F(OutboxPlanTest, StaysOnItsIndexesFromEmptyToAMillionRows) {
  expect_good_plans("empty");
  fill(1, 10'000);
  expect_good_plans("10,000 rows, not analysed");
  analyze();
  expect_good_plans("10,000 rows, analysed");
  fill(10'001, 1'000'000);
  expect_good_plans("1,000,000 rows, analysed at 10,000");
  analyze();
  expect_good_plans("1,000,000 rows, analysed");
}

}  // namespace
}  // namespace postrider::postgres
