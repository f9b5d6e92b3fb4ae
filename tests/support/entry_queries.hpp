// SPDX-License-Identifier: Apache-2.0
// The statements that queries for entries become, for tests of their plans.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "storage/sql_entry_purge.hpp"
#include "storage/sql_entry_reader.hpp"

namespace postrider::test {

struct EntryQueryCase {
  EntryQuery query;
  std::string index;  ///< by whose order it is read
};

/// Every way to ask, but for words: both orders, first and later pages.
inline std::vector<EntryQueryCase> entry_query_cases(TimePoint middle) {
  using namespace std::chrono_literals;
  const EntryPosition after{middle, EntryId{5000}};
  std::vector<EntryQueryCase> cases;
  for (const bool newest_first : {false, true}) {
    const auto add = [&](EntryQuery query, std::string index) {
      query.newest_first = newest_first;
      cases.push_back({query, index});
      query.after = after;
      cases.push_back({std::move(query), std::move(index)});
    };
    add({.from = middle - 1h}, "event_log_entries_time");
    add({.from = middle - 1h, .until = middle + 1h}, "event_log_entries_time");
    add({.correlation_id = "c7"}, "event_log_entries_correlation");
    add({.correlation_id = "c7", .application_id = "a1"}, "event_log_entries_correlation");
    add({.correlation_id = "c7", .from = middle - 1h, .until = middle + 1h}, "event_log_entries_correlation");
    add({.application_id = "a1"}, "event_log_entries_application");
    add({.application_id = "a1", .from = middle - 1h}, "event_log_entries_application");
  }
  return cases;
}

/// Hands the statement of a query to `look` instead of running it.
inline void look_at_query(SqlDialect dialect, const EntryQuery& query,
                          const std::function<void(std::string_view, std::span<const Value>)>& look) {
  dialect.run = [&](std::string_view sql, std::span<const Value> params) {
    look(sql, params);
    return Rows{};
  };
  (void)SqlEntryReader(std::move(dialect)).find(query);
}

/// The same for both statements of the retention.
inline void look_at_purge(SqlDialect dialect, TimePoint time,
                          const std::function<void(std::string_view, std::span<const Value>)>& look) {
  dialect.run = [&](std::string_view sql, std::span<const Value> params) {
    look(sql, params);
    return Rows{.rows = {{"0"}}};
  };
  const SqlEntryPurge purge(std::move(dialect));
  (void)purge.count_before(time);
  (void)purge.purge_before(time, 500);
}

}  // namespace postrider::test
