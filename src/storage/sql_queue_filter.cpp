// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_queue_filter.hpp"

#include <string>

#include "core/filter_bounds.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

void common(SqlQuery& query, const QueueFilter& filter, std::string_view age_column) {
  check_filter_values("a queue filter", filter.ids.size() + filter.event_ids.size() + filter.types.size() +
                                            filter.statuses.size());
  query.and_in("id", filter.ids, [](QueueId id) { return static_cast<std::int64_t>(id); });
  query.and_in("event_id", filter.event_ids, [](const EventId& id) { return id.view(); });
  query.and_in("event_type", filter.types, [](const std::string& type) { return std::string_view(type); });
  query.and_in("status", filter.statuses, [](QueueStatus s) { return static_cast<std::int64_t>(s); });
  query.and_equals("tenant_id", filter.tenant_id);
  if (filter.attempts_at_least.has_value()) query.sql(" and attempts >= ").bind(*filter.attempts_at_least);
  if (filter.older_than.has_value()) {
    query.sql(" and ").sql(age_column).sql(" <= ").now_minus(*filter.older_than);
  }
}

/// True for a log row when a handler's error has the text: in the JSON of `results`, whatever a foreign
/// program may have put there.
void results_contain(SqlQuery& query, const std::string& needle, BackendKind kind) {
  switch (kind) {
    case BackendKind::sqlite:
      query.sql(
          " and exists (select 1 from json_tree(case when json_valid(results) then results else '[]' end) "
          "where key = 'error' and type = 'text' and ");
      query.contains("value", needle).sql(")");
      return;
    case BackendKind::postgres:
      query.sql(
          " and exists (select 1 from json_array_elements(case when json_typeof(results) = 'array' then "
          "results else '[]'::json end) as entry where ");
      query.contains("(entry ->> 'error')", needle).sql(")");
      return;
    case BackendKind::mariadb:
      query.sql(
          " and exists (select 1 from json_table(case when json_valid(results) then results else '[]' end, "
          "'$[*]' columns (error mediumtext path '$.error' null on empty null on error)) as entry where ");
      query.contains("entry.error", needle).sql(")");
      return;
  }
}

}  // namespace

SqlQuery& and_in_queue(SqlQuery& query, const QueueFilter& filter) {
  common(query, filter, "created_at");
  if (filter.error_contains.has_value()) query.sql(" and ").contains("last_error", *filter.error_contains);
  if (filter.stuck_for.has_value()) {
    query.sql(" and status = 1 and (processing_started_at <= ").now_minus(*filter.stuck_for);
    query.sql(" or updated_at <= ").now_minus(*filter.stuck_for).sql(")");
  }
  if (filter.quarantined.has_value()) {
    query.sql(*filter.quarantined ? " and quarantined_at is not null" : " and quarantined_at is null");
  }
  if (filter.delayed.has_value()) {
    query.sql(*filter.delayed ? " and " : " and not ");
    query.sql("(status = 0 and quarantined_at is null and available_at > ").now().sql(")");
  }
  return query;
}

SqlQuery& and_in_log(SqlQuery& query, const QueueFilter& filter, BackendKind kind) {
  if (filter.stuck_for.has_value() || filter.quarantined.has_value() || filter.delayed.has_value()) {
    throw Error(ErrorCode::invalid_argument,
                "cannot look for stuck, quarantined or delayed events in the log", "those are in the queue",
                "leave QueueFilter::stuck_for, ::quarantined and ::delayed unset");
  }
  common(query, filter, "finalized_at");
  if (filter.error_contains.has_value()) results_contain(query, *filter.error_contains, kind);
  return query;
}

}  // namespace postrider
