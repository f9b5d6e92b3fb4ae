// SPDX-License-Identifier: Apache-2.0
// Entries are read in the order of an index: however many there are, a page costs a page.
#include "support/entry_queries.hpp"
#include "support/sqlite_plan.hpp"

namespace postrider::sqlite {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

class SqliteEntryPlan : public SqlitePlan {
 protected:
  static SqlDialect dialect() {
    return {.kind = BackendKind::sqlite,
            .table_prefix = "postrider_",
            .run = {},
            .begin = {},
            .from_micros = "{}",
            .to_micros = "{}",
            .now = {},
            .hex = {}};
  }
  void expect_plans() {
    for (const test::EntryQueryCase& one : test::entry_query_cases(TimePoint{1'780'000'000s})) {
      test::look_at_query(dialect(), one.query, [&](std::string_view sql, std::span<const Value>) {
        EXPECT_THAT(plan(sql), HasSubstr("SEARCH e USING INDEX postrider_" + one.index + " (")) << sql;
      });
    }
    test::look_at_purge(
        dialect(), TimePoint{1'780'000'000s}, [&](std::string_view sql, std::span<const Value>) {
          EXPECT_THAT(plan(sql, true), HasSubstr("INDEX postrider_event_log_entries_time (occurred_at<?)"))
              << sql;
        });
    test::look_at_query(dialect(), {}, [&](std::string_view sql, std::span<const Value>) {
      EXPECT_THAT(plan(sql), HasSubstr("SCAN e USING INDEX postrider_event_log_entries_time")) << sql;
    });
    test::look_at_query(dialect(), {.words = {"refused"}}, [&](std::string_view sql, std::span<const Value>) {
      std::string lines;
      Statement statement = connection_->prepare("explain query plan " + std::string(sql));
      while (statement.step()) lines += std::string(statement.text(3)) + "\n";
      EXPECT_THAT(lines, HasSubstr("postrider_event_log_words VIRTUAL TABLE INDEX")) << sql;
      EXPECT_THAT(lines, HasSubstr("SEARCH e USING INTEGER PRIMARY KEY")) << sql;
      EXPECT_THAT(lines, Not(HasSubstr("SCAN e"))) << sql;
    });
  }
};

TEST_F(SqliteEntryPlan, HoldOnTheEmptyTableAndOverManyAnalysedRows) {
  expect_plans();
  connection_->prepare("pragma synchronous = off").run();
  connection_
      ->prepare(
          "insert into postrider_event_log_entries (application_id, correlation_id, process_name, "
          "process_status, details, occurred_at, received_at) with recursive n(i) as (select 1 union all "
          "select i + 1 from n where i < 50000) select 'a' || (i % 3), 'c' || (i % 5000), 'P', 'S', 'word' "
          "|| "
          "(i % 100), 1780000000000000 + i, 0 from n")
      .run();
  connection_->prepare("analyze").run();
  expect_plans();
}

}  // namespace
}  // namespace postrider::sqlite
