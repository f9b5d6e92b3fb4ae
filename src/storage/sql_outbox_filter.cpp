// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_outbox_filter.hpp"

#include "core/filter_bounds.hpp"

namespace postrider {
namespace {

/// What a node has, or waits for its retry. What is merely planned for later has to be asked for.
void and_can_be_requeued(SqlQuery& query, const PendingRows& rows) {
  if (rows.filter.delayed.value_or(false)) return;
  query.sql(" and (owner is not null");
  if (rows.begun.has_value()) query.sql(" and available_at <= ").bind_time(*rows.begun);
  query.sql(" or available_at > ").now().sql(" and (status = 2 or last_error is not null))");
}

}  // namespace

std::string_view where_pending(BackendKind kind, bool ordered) {
  // MariaDB has no partial indexes, but one that leads with due_lane.
  if (kind == BackendKind::mariadb) {
    return ordered ? " where due_lane = 1 and due_at is not null"
                   : " where due_lane = 0 and due_at is not null";
  }
  return ordered ? " where due_at is not null and ordering_key is not null"
                 : " where due_at is not null and ordering_key is null";
}

SqlQuery& and_pending(SqlQuery& query, const PendingRows& rows) {
  const OutboxFilter& filter = rows.filter;
  check_filter_values("an outbox filter", filter.ids.size() + filter.types.size() + filter.statuses.size());
  query.and_in("event_type", filter.types, [](const std::string& type) { return std::string_view(type); });
  query.and_in("status", filter.statuses, [](EventStatus s) { return static_cast<std::int64_t>(s); });
  query.and_equals("aggregate_type", filter.aggregate_type).and_equals("aggregate_id", filter.aggregate_id);
  query.and_equals("tenant_id", filter.tenant_id).and_equals("owner", filter.owner);
  if (filter.attempts_at_least) query.sql(" and attempts >= ").bind(*filter.attempts_at_least);
  if (filter.older_than) query.sql(" and created_at <= ").now_minus(*filter.older_than);
  if (filter.error_contains) query.sql(" and ").contains("last_error", *filter.error_contains);
  if (filter.stuck_for) query.sql(" and available_at <= ").now_minus(*filter.stuck_for);
  if (filter.delayed) {
    query.sql(*filter.delayed ? " and " : " and not ");
    query.sql("(owner is null and available_at > ").now().sql(")");
  }
  if (rows.action == OutboxAction::requeue) and_can_be_requeued(query, rows);
  return query;
}

}  // namespace postrider
