// SPDX-License-Identifier: Apache-2.0
// The plan of every hot statement, prepared while the table was empty, under the settings that our own
// transactions use: it must reach its rows through the intended index, whatever the table has grown to and
// whether or not it was analysed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/postgres/outbox_store.hpp"
#include "backends/postgres/plan_fixture.hpp"
#include "storage/sql_outbox_admin.hpp"

namespace postrider::postgres {
namespace {

using ::testing::HasSubstr;

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
                {"later", &sql_->later, "'{e1}', '{1}', '{1 s}', '{x}', NULL", {"outbox_event_pkey"}},
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

/// What `counts` asks, for operators and for metrics.
std::vector<std::string> counts_of(const test::TestDatabase& database) {
  std::vector<std::string> asked;
  SqlOutboxAdminStore store({.kind = BackendKind::postgres,
                             .table_prefix = database.table(""),
                             .run =
                                 [&](std::string_view sql, std::span<const Value>) {
                                   asked.emplace_back(sql);
                                   Rows rows;
                                   rows.rows.emplace_back(9, "1");
                                   return rows;
                                 },
                             .begin = {},
                             .from_micros = {},
                             .to_micros = "(extract(epoch from {}) * 1000000)::bigint",
                             .now = "clock_timestamp()",
                             .hex = {}});
  (void)store.counts();
  return asked;
}

using OutboxCountsPlan = test::PostgresTest;

TEST_F(OutboxCountsPlan, FinishedRowsAreNotReadToSeeWhatWaits) {
  test::NativeConnection connection = connect();
  const std::string table = database_->table("outbox_event");
  run(connection, "ALTER TABLE " + table + " SET (autovacuum_enabled = off)");
  run(connection,
      "INSERT INTO " + table +
          " (event_id, event_type, payload, ordering_key, status, done_at) SELECT 'e' || i, 'T', '{}', "
          "CASE WHEN i % 8 = 0 THEN 'k' || (i / 40) END, CASE WHEN i % 100 < 98 THEN 1 ELSE i % 4 END, now() "
          "FROM generate_series(1, 100000) AS i");
  run(connection, "VACUUM ANALYZE " + table);
  const std::vector<std::string> asked = counts_of(*database_);
  ASSERT_EQ(asked.size(), 2U) << "the numbers, and the last error";
  for (const std::string& sql : asked) {
    const Result result(PQexec(connection.get(), ("EXPLAIN " + sql).c_str()));
    ASSERT_EQ(result.status(), PGRES_TUPLES_OK) << PQerrorMessage(connection.get());
    std::string plan;
    for (int row = 0; row < result.rows(); ++row) {
      const std::string line(result.text(row, 0));
      plan += line + "\n";
      // To count those that are DONE nearly all rows have to be looked at: by an index alone, or, while
      // another test's transaction keeps VACUUM from its work, in the table. Nobody else may.
      if (line.find("Seq Scan") == std::string::npos) continue;
      ASSERT_LT(row + 1, result.rows()) << plan;
      EXPECT_THAT(std::string(result.text(row + 1, 0)), HasSubstr("Filter: (status = 1)")) << plan << sql;
    }
    EXPECT_THAT(plan, HasSubstr("outbox_event_due")) << sql;
  }
}

}  // namespace
}  // namespace postrider::postgres
