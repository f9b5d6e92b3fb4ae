// SPDX-License-Identifier: Apache-2.0
// How a pair stands is asked for many times a second: however many events and dead letters there are, it
// costs the same, also by a plan that was made while there were none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/postgres/connection.hpp"
#include "backends/postgres/wire.hpp"
#include "storage/placeholders.hpp"
#include "storage/sql_relay_admin.hpp"
#include "support/postgres.hpp"

namespace postrider::postgres {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// What the store would ask.
std::string statement_of(const test::TestDatabase& database, const PairSelector& which) {
  std::string asked;
  SqlRelayAdminStore store({.kind = BackendKind::postgres,
                            .table_prefix = database.table(""),
                            .run = {},
                            .run_often =
                                [&](std::string_view sql, std::span<const Value>) {
                                  asked = numbered_placeholders(sql).sql;
                                  return Rows{};
                                },
                            .begin = {},
                            .from_micros = {},
                            .to_micros = "(extract(epoch from {}) * 1000000)::bigint",
                            .now = "clock_timestamp()",
                            .hex = {}});
  (void)store.list(which);
  return asked;
}

using PairPlan = test::PostgresTest;

TEST_F(PairPlan, EventsAndDeadLettersAreReachedByTheirIndexes) {
  const std::string events = database_->table("events");
  const std::string dead = database_->table("outbox_dead_letter");
  for (const std::string& table : {events, dead}) {
    // Otherwise autovacuum may analyse a table in the middle, and the test would prove less than it says.
    run(connect(), "ALTER TABLE " + table + " SET (autovacuum_enabled = off)");
  }
  test::NativeConnection connection = connect();
  run(connection, "SET plan_cache_mode = force_generic_plan");
  run(connection, "BEGIN");
  run(connection, settings_statement.sql);
  run(connection, "PREPARE pair AS " + statement_of(*database_, PairSelector::pair("wallets", "kafka")));
  run(connection, "EXECUTE pair('wallets', 'kafka')");
  run(connection, "COMMIT");
  run(connection,
      "INSERT INTO " + events +
          " (position, event_id, type, tags, data, occurred_at, stored_at, size) SELECT i, 'e', 'T', "
          "'[]', '{}', now(), now(), 4 FROM generate_series(1, 20000) AS i");
  run(connection,
      "INSERT INTO " + dead +
          " (topic, publisher, position, error, failed_at) SELECT 't' || i % 100, 'kafka', i, 'e', "
          "now() FROM generate_series(1, 20000) AS i");

  run(connection, "BEGIN");
  run(connection, settings_statement.sql);
  const Result result(PQexec(connection.get(), "EXPLAIN EXECUTE pair('wallets', 'kafka')"));
  ASSERT_EQ(result.status(), PGRES_TUPLES_OK) << PQerrorMessage(connection.get());
  std::string plan;
  for (int row = 0; row < result.rows(); ++row) plan += std::string(result.text(row, 0)) + "\n";
  EXPECT_THAT(plan, HasSubstr("Backward using events_pkey"));
  EXPECT_THAT(plan, HasSubstr("Scan using events_pkey"));
  EXPECT_THAT(plan, HasSubstr("outbox_dead_letter_pkey"));
  EXPECT_THAT(plan, HasSubstr("outbox_topic_progress_pkey"));
  EXPECT_THAT(plan, Not(HasSubstr("Seq Scan on events")));
  EXPECT_THAT(plan, Not(HasSubstr("Seq Scan on outbox_dead_letter")));
}

TEST_F(PairPlan, ItIsPlannedOnceForAConnection) {
  Storage& storage = database_->storage();
  RelayAdminStore& admin = storage.relay_admin_store();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(admin.list(PairSelector::pair("wallets", "kafka")).empty());
  }
  // The one connection that nobody else uses is taken again.
  const Rows rows = storage.begin().run(
      "select count(*) from pg_prepared_statements where statement like '%outbox_topic_progress%'", {});
  EXPECT_EQ(rows.integer(0, 0), 1);
}

}  // namespace
}  // namespace postrider::postgres
