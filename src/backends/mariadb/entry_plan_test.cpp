// SPDX-License-Identifier: Apache-2.0
// Entries are read in the order of an index: however many there are, a page costs a page.
#include "backends/mariadb/plan_fixture.hpp"
#include "support/entry_queries.hpp"

namespace postrider::mariadb {
namespace {

using namespace std::chrono_literals;

class MariadbEntryPlanTest : public MariadbPlanFixture {};

TEST_F(MariadbEntryPlanTest, PagesAndSearchesUseTheirIndexes) {
  storage();
  if (IsSkipped() || HasFatalFailure()) return;
  client().query("SET SESSION max_recursive_iterations = 10000000");
  client().query(
      "INSERT INTO " + prefix_ +
      "_event_log_entries (application_id, correlation_id, process_name, process_status, details, "
      "occurred_at, received_at) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i "
      "< 20000) SELECT CONCAT('a', i % 3), CONCAT('c', i % 5000), 'P', 'S', CONCAT('word', i % 1000), "
      "TIMESTAMP'2026-06-01 00:00:00' + INTERVAL i SECOND, UTC_TIMESTAMP(6) FROM n");
  client().query("ANALYZE TABLE " + prefix_ + "_event_log_entries");
  const SqlDialect dialect{.kind = BackendKind::mariadb,
                           .table_prefix = prefix_ + "_",
                           .run = {},
                           .begin = {},
                           .from_micros = "(TIMESTAMP'1970-01-01 00:00:00' + INTERVAL {} MICROSECOND)",
                           .to_micros = "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', {})",
                           .now = {},
                           .hex = {}};
  for (const test::EntryQueryCase& one : test::entry_query_cases(TimePoint{1'780'275'000s})) {
    test::look_at_query(dialect, one.query, [&](std::string_view sql, std::span<const Value> params) {
      expect_plan(std::string(sql), {params.begin(), params.end()}, one.index);
    });
  }
  test::look_at_purge(
      dialect, TimePoint{1'780'275'000s}, [&](std::string_view sql, std::span<const Value> params) {
        const std::vector<Line> lines = explain(std::string(sql), {params.begin(), params.end()});
        ASSERT_EQ(lines.size(), 1U);
        EXPECT_EQ(lines[0].key, "event_log_entries_time") << sql;
      });
  test::look_at_query(
      dialect, {.words = {"word77"}}, [&](std::string_view sql, std::span<const Value> params) {
        const std::vector<Line> lines = explain(std::string(sql), {params.begin(), params.end()});
        ASSERT_EQ(lines.size(), 1U);
        EXPECT_EQ(lines[0].type, "fulltext");
        EXPECT_EQ(lines[0].key, "event_log_entries_words");
      });
}

}  // namespace
}  // namespace postrider::mariadb
