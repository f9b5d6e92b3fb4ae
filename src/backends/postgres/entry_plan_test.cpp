// SPDX-License-Identifier: Apache-2.0
// Entries are read in the order of an index: however many there are, a page costs a page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/backend.hpp"
#include "support/entry_queries.hpp"

namespace postrider::postgres {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class EntryPlan : public test::BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, EntryPlan, ::testing::Values("postgres"),
                         [](const auto& chosen) { return chosen.param; });

TEST_P(EntryPlan, PagesAndSearchesUseTheirIndexes) {
  test::TestDatabase database(backend());
  const std::string table = database.table("event_log_entries");
  const auto run = [&](const std::string& sql) {
    Transaction tx = database.storage().begin();
    tx.execute(sql);
    tx.commit();
  };
  run("insert into " + table +
      " (application_id, correlation_id, process_name, process_status, details, occurred_at, received_at) "
      "select 'a' || n % 3, 'c' || n % 5000, 'P', 'S', 'word' || n % 1000, timestamptz '2026-06-01 00:00Z' + "
      "n * "
      "interval '1 second', now() from generate_series(1, 50000) as n");
  run("analyze " + table);
  const SqlDialect dialect{.kind = BackendKind::postgres,
                           .table_prefix = database.table(""),
                           .run = {},
                           .begin = {},
                           .from_micros = "(timestamptz 'epoch' + {}::bigint * interval '1 microsecond')",
                           .to_micros = "(extract(epoch from {}) * 1000000)::bigint",
                           .now = {},
                           .hex = {}};
  const auto plan_of = [&](const EntryQuery& query) {
    std::string text;
    test::look_at_query(dialect, query, [&](std::string_view sql, std::span<const Value> params) {
      Transaction tx = database.storage().begin();
      const Rows plan = tx.run("explain " + std::string(sql), params);
      text += std::string(sql) + "\n";
      for (std::size_t i = 0; i < plan.size(); ++i) text += plan.text(i, 0) + "\n";
    });
    return text;
  };
  for (const test::EntryQueryCase& one : test::entry_query_cases(TimePoint{1'780'300'000s})) {
    const std::string plan = plan_of(one.query);
    EXPECT_THAT(plan, HasSubstr(one.index));
    EXPECT_THAT(plan, Not(HasSubstr("Seq Scan")));
    // The few entries of one correlation may be sorted, those of a third of the table may not.
    if (!one.query.correlation_id.has_value()) {
      EXPECT_THAT(plan, Not(HasSubstr("Sort")));
    }
  }
  // Half of the table is older than the first of these; a count of that many may read it as it lies.
  for (const TimePoint time : {TimePoint{1'780'300'000s}, TimePoint{1'780'272'100s}}) {
    test::look_at_purge(dialect, time, [&](std::string_view sql, std::span<const Value> params) {
      if (sql.starts_with("select") && time > TimePoint{1'780'290'000s}) return;
      Transaction tx = database.storage().begin();
      const Rows plan = tx.run("explain " + std::string(sql), params);
      std::string text = std::string(sql) + "\n";
      for (std::size_t i = 0; i < plan.size(); ++i) text += plan.text(i, 0) + "\n";
      EXPECT_THAT(text, HasSubstr("event_log_entries_time"));
      EXPECT_THAT(text, Not(HasSubstr("Seq Scan")));
    });
  }
  EXPECT_THAT(plan_of({}), HasSubstr("event_log_entries_time"));
  EXPECT_THAT(plan_of({.words = {"word77"}}), HasSubstr("event_log_entries_words"));
}

}  // namespace
}  // namespace postrider::postgres
