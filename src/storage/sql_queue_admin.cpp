// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_queue_admin.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/failpoint.hpp"
#include "postrider/error.hpp"
#include "storage/contention.hpp"
#include "storage/handler_results.hpp"
#include "storage/sql_event_columns.hpp"
#include "storage/sql_queue_filter.hpp"
#include "storage/sql_tables.hpp"

namespace postrider {
namespace {

constexpr std::string_view queue_table = "event_queue";
constexpr std::string_view state_table = "event_handler_state";
constexpr std::string_view attempt_table = "event_attempt";
constexpr std::string_view cancelled = "(cancelled)";  // stands as a handler in the results
constexpr std::size_t most_histogram_rows = 1000;

/// Requeueing is about events in progress, unless those are asked for that wait.
bool of_delayed(const QueueFilter& filter) {
  return filter.delayed.value_or(false);
}

/// What the rows must be for the action to make sense.
std::string_view condition(QueueAction action, const QueueFilter& filter) {
  switch (action) {
    case QueueAction::requeue:
      return of_delayed(filter) ? "" : " and status = 1 and quarantined_at is null";
    case QueueAction::release:
      return " and quarantined_at is not null";
    case QueueAction::cancel:
      break;
  }
  return "";
}

std::int64_t same(std::int64_t number) {
  return number;
}

std::string record_columns(const SqlDialect& dialect) {
  std::string list = event_columns(dialect) +
                     ", id, dedupe_key, status, priority, attempts, crashes, token, owner, last_error";
  for (const std::string_view column :
       {"updated_at", "available_at", "processing_started_at", "lease_until", "quarantined_at"}) {
    list += ", " + around(dialect.to_micros, column);
  }
  return list;
}

std::optional<TimePoint> optional_time(const Rows::Cell& cell) {
  return cell.has_value() ? std::optional(time_of(cell)) : std::nullopt;
}

QueueRecord to_queue_record(const std::vector<Rows::Cell>& row) {
  const EventCells cells(row);
  const OutboxColumns& event = cells.columns();
  const auto* cell = row.data() + event_column_count;
  QueueRecord record;
  record.event_id = event.event_id;
  record.type = event.event_type;
  record.aggregate_type = event.aggregate_type;
  record.aggregate_id = event.aggregate_id;
  record.tenant_id = event.tenant_id;
  record.ordering_key = event.ordering_key;
  record.headers_json = event.headers_json;
  record.payload = event.payload;
  record.payload_kind = event.payload_kind;
  record.occurred_at = event.occurred_at;
  record.created_at = event.created_at;
  record.id = QueueId{number(cell[0])};
  record.dedupe_key = text(cell[1]);
  record.status = static_cast<QueueStatus>(number(cell[2]));
  record.priority = static_cast<int>(number(cell[3]));
  record.attempts = static_cast<std::int32_t>(number(cell[4]));
  record.crashes = static_cast<std::int32_t>(number(cell[5]));
  record.token = Token{number(cell[6])};
  record.owner = text(cell[7]);
  record.last_error = text(cell[8]);
  record.updated_at = time_of(cell[9]);
  record.available_at = time_of(cell[10]);
  record.processing_started_at = optional_time(cell[11]);
  record.lease_until = optional_time(cell[12]);
  record.quarantined_at = optional_time(cell[13]);
  return record;
}

std::vector<std::int64_t> first_column(const Rows& rows) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(rows.size());
  for (const auto& row : rows.rows) numbers.push_back(number(row.at(0)));
  return numbers;
}

/// The rows are due now, and PENDING.
void raise(const SqlDialect& dialect, Tx& tx, QueueAction action, bool delayed,
           const std::vector<std::int64_t>& ids) {
  SqlQuery query(dialect);
  query.sql("update ").table(queue_table).sql(" set available_at = ").now().sql(", updated_at = ").now();
  if (action == QueueAction::release) {
    query.sql(", token = token % 1000000000000000000 + 1, crashes = 0, quarantined_at = null");
  } else if (!delayed) {  // of those that wait nobody has a claim that must be fenced
    query.sql(", token = token % 1000000000000000000 + 1, status = 0, owner = null, lease_until = null");
  }
  query.sql(" where id > 0").and_in("id", ids, same).run(tx);
}

/// What handlers have said about these events so far. The sub tasks that they have done ("handler#task") are
/// no handlers.
std::unordered_map<std::int64_t, std::vector<HandlerResult>> load_results(
    const SqlDialect& dialect, Tx& tx, const std::vector<std::int64_t>& ids) {
  std::unordered_map<std::int64_t, std::vector<HandlerResult>> results;
  SqlQuery query(dialect);
  query.sql("select id, handler, result, failed, error from ").table(state_table).sql(" where id > 0");
  query.and_in("id", ids, same).sql(" order by id, handler");
  const Rows rows = query.run(tx);
  for (const auto& row : rows.rows) {
    if (text(row[1]).find('#') != std::string::npos) continue;
    results[number(row[0])].push_back({.handler = text(row[1]),
                                       .verdict = static_cast<HandlerVerdict>(number(row[2])),
                                       .failed = Attempt{static_cast<std::int32_t>(number(row[3]))},
                                       .error = text(row[4])});
  }
  return results;
}

/// Moves the rows to the log. The entry's token is one that no worker has: whoever still works on the event
/// is told that its claim is stale, not that it had finalised the event itself.
void cancel(const SqlDialect& dialect, Tx& tx, const std::vector<std::int64_t>& ids,
            std::string_view reason) {
  auto results = load_results(dialect, tx, ids);
  SqlQuery last_errors(dialect);
  last_errors.sql("select id, last_error from ").table(queue_table).sql(" where 1 = 1");
  const Rows errors = last_errors.and_in("id", ids, same).run(tx);
  for (const auto& row : errors.rows) {
    const std::int64_t id = number(row[0]);
    HandlerResult why{.handler = std::string(cancelled), .verdict = HandlerVerdict::unrecoverable_error};
    why.error = reason;
    if (row[1].has_value()) why.error += " (before: " + *row[1] + ")";
    std::vector<HandlerResult>& said = results[id];
    said.push_back(std::move(why));
    const std::string encoded = encode_results(said);
    constexpr std::string_view kept =
        "event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, payload, "
        "payload_bytes, headers, priority, attempts, crashes, created_at, occurred_at, "
        "processing_started_at";
    SqlQuery query(dialect);
    query.sql("insert into ").table(log_table).sql(" (id, token, ").sql(kept);
    query.sql(", status, finalized_at, results) select id, token % 1000000000000000000 + 1, ")
        .sql(kept)
        .sql(", 4, ")
        .now();
    query.sql(", ").bind(encoded).sql(dialect.kind == BackendKind::postgres ? "::json" : "");
    query.sql(" from ").table(queue_table).sql(" where id = ").bind(id).run(tx);
  }
  SqlQuery gone(dialect);
  gone.sql("delete from ").table(queue_table).sql(" where id > 0").and_in("id", ids, same).run(tx);
}

}  // namespace

SqlQueueAdminStore::SqlQueueAdminStore(SqlDialect dialect) : dialect_(std::move(dialect)) {}

QueueCounts SqlQueueAdminStore::counts(const QueueFilter& filter) {
  SqlQuery query(dialect_);
  query.sql("select sum(case when status = 0 and quarantined_at is null and available_at <= ").now();
  query.sql(" then 1 else 0 end), sum(case when status = 0 and quarantined_at is null then 1 else 0 end), ");
  query.sql("sum(case when status = 1 and quarantined_at is null then 1 else 0 end), ");
  query.sql("sum(case when status = 1 and quarantined_at is null and lease_until <= ").now();
  query.sql(" then 1 else 0 end), sum(case when quarantined_at is not null then 1 else 0 end), ");
  query.micros("min(case when status = 0 and quarantined_at is null then available_at end)").sql(", ");
  std::optional<TimePoint> now;
  if (dialect_.clock != nullptr) {
    now = dialect_.clock->now();
    query.sql("0");
  } else {
    query.micros(dialect_.now);
  }
  query.sql(" from ").table(queue_table).sql(" where 1 = 1");
  const std::vector<Rows::Cell> row = and_in_queue(query, filter).run().rows.at(0);
  QueueCounts counts;
  counts.pending = number(row[0]);
  counts.delayed = number(row[1]) - counts.pending;
  counts.processing = number(row[2]);
  counts.abandoned = number(row[3]);
  counts.quarantined = number(row[4]);
  if (row[5].has_value()) {
    counts.oldest_pending = std::max(Duration::zero(), now.value_or(time_of(row[6])) - time_of(row[5]));
  }
  return counts;
}

LogCounts SqlQueueAdminStore::log_counts(const QueueFilter& log_filter) {
  SqlQuery query(dialect_);
  query.sql("select status, count(*) from ").table(log_table).sql(" where 1 = 1");
  const Rows rows = and_in_log(query, log_filter, dialect_.kind).sql(" group by status").run();
  LogCounts counts;
  for (const auto& row : rows.rows) {
    switch (static_cast<QueueStatus>(number(row[0]))) {
      case QueueStatus::completed:
        counts.completed = number(row[1]);
        break;
      case QueueStatus::completed_with_errors:
        counts.completed_with_errors = number(row[1]);
        break;
      default:
        counts.failed = number(row[1]);
    }
  }
  return counts;
}

std::map<std::int32_t, std::int64_t> SqlQueueAdminStore::attempts(const QueueFilter& filter) {
  SqlQuery query(dialect_);
  query.sql("select attempts, count(*) from ").table(queue_table).sql(" where 1 = 1");
  const Rows rows = and_in_queue(query, filter)
                        .sql(" group by attempts order by attempts limit ")
                        .bind_limit(most_histogram_rows)
                        .run();
  std::map<std::int32_t, std::int64_t> histogram;
  for (const auto& row : rows.rows) histogram[static_cast<std::int32_t>(number(row[0]))] = number(row[1]);
  return histogram;
}

std::vector<QueueRecord> SqlQueueAdminStore::list(const QueueFilter& filter, std::size_t limit,
                                                  QueueId after) {
  SqlQuery query(dialect_);
  query.sql("select ").sql(record_columns(dialect_)).sql(" from ").table(queue_table);
  query.sql(" where id > ").bind(plain(after));
  const Rows rows = and_in_queue(query, filter).sql(" order by id limit ").bind_limit(limit).run();
  std::vector<QueueRecord> records;
  records.reserve(rows.size());
  for (const auto& row : rows.rows) records.push_back(to_queue_record(row));
  return records;
}

AdminBatch SqlQueueAdminStore::apply(QueueAction action, const QueueFilter& filter, QueueId after,
                                     std::size_t limit, std::string_view reason) {
  const AdminBatch batch =
      retried_on_contention(dialect_.kind, [&] { return apply_once(action, filter, after, limit, reason); });
  if (batch.changed > 0) failpoint("queue.admin.after_commit");
  return batch;
}

AdminBatch SqlQueueAdminStore::apply_once(QueueAction action, const QueueFilter& filter, QueueId after,
                                          std::size_t limit, std::string_view reason) {
  Transaction tx = dialect_.begin();
  SqlQuery found(dialect_);
  found.sql("select id from ").table(queue_table).sql(" where id > ").bind(plain(after));
  and_in_queue(found, filter).sql(condition(action, filter)).sql(" order by id limit ").bind_limit(limit);
  std::vector<std::int64_t> ids = first_column(found.run(tx));
  AdminBatch batch{.changed = 0, .walked_to = plain(after), .more = ids.size() >= limit};
  if (ids.empty()) return batch;
  batch.walked_to = ids.back();
  if (dialect_.kind != BackendKind::sqlite) {
    // Locked in a second step, and looked at again then: the first one must not lock all that it walks past,
    // and what a worker has at this moment under lock is on its way out.
    SqlQuery locking(dialect_);
    locking.sql("select id from ").table(queue_table).sql(" where id > 0").and_in("id", ids, same);
    and_in_queue(locking, filter).sql(condition(action, filter)).sql(" order by id for update skip locked");
    ids = first_column(locking.run(tx));
    if (ids.empty()) return batch;
  }
  if (action == QueueAction::cancel) {
    cancel(dialect_, tx, ids, reason);
  } else {
    raise(dialect_, tx, action, of_delayed(filter), ids);
  }
  failpoint("queue.admin.before_commit");
  tx.commit();
  batch.changed = static_cast<std::int64_t>(ids.size());
  return batch;
}

std::int64_t SqlQueueAdminStore::count(QueueAction action, const QueueFilter& filter) {
  SqlQuery query(dialect_);
  query.sql("select count(*) from ").table(queue_table).sql(" where id > 0");
  return number(and_in_queue(query, filter).sql(condition(action, filter)).run().rows.at(0).at(0));
}

AdminBatch SqlQueueAdminStore::replay(const QueueFilter& filter, LogSeq after, LogSeq until,
                                      std::size_t limit) {
  const bool only_count = limit == 0;
  SqlQuery found(dialect_);
  found.sql(only_count ? "select count(*) from " : "select seq from ").table(log_table);
  found.sql(" where seq > ").bind(plain(after)).sql(" and seq <= ").bind(plain(until));
  and_in_log(found, filter, dialect_.kind);
  if (only_count) return {.changed = number(found.run().rows.at(0).at(0)), .walked_to = plain(until)};
  const std::vector<std::int64_t> seqs =
      first_column(found.sql(" order by seq limit ").bind_limit(limit).run());
  if (seqs.empty()) return {.changed = 0, .walked_to = plain(until)};
  constexpr std::string_view kept =
      "event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, payload, payload_bytes, "
      "headers, priority, occurred_at";
  SqlQuery query(dialect_);
  query.sql("insert into ").table(queue_table).sql(" (").sql(kept);
  query.sql(", available_at, created_at, updated_at) select ").sql(kept);
  for (int i = 0; i < 3; ++i) query.sql(", ").now();
  query.sql(" from ").table(log_table).sql(" where seq > 0").and_in("seq", seqs, same).sql(" order by seq");
  const std::int64_t published = retried_on_contention(dialect_.kind, [&] { return query.run().affected; });
  failpoint("queue.admin.replayed");
  return {.changed = published, .walked_to = seqs.back(), .more = seqs.size() >= limit};
}

bool SqlQueueAdminStore::first_is_old(const LogPurge& what, std::int64_t after) {
  SqlQuery query(dialect_);
  query.sql("select case when finalized_at <= ").now_minus(what.age).sql(" then 1 else 0 end from ");
  query.table(log_table).sql(" where seq > ").bind(after);
  const Rows rows = and_in_log(query, what.filter, dialect_.kind).sql(" order by seq limit 1").run();
  return !rows.empty() && rows.integer(0, 0) == 1;
}

std::int64_t SqlQueueAdminStore::count_purgeable(const LogPurge& what, std::int64_t until) {
  SqlQuery query(dialect_);
  query.sql("select count(*) from ").table(log_table).sql(" where seq <= ").bind(until);
  and_in_log(query, what.filter, dialect_.kind).sql(" and seq < coalesce((select min(seq) from ");
  query.table(log_table).sql(" where finalized_at > ").now_minus(what.age);
  and_in_log(query, what.filter, dialect_.kind).sql("), ").bind(std::numeric_limits<std::int64_t>::max());
  return number(query.sql(")").run().rows.at(0).at(0));
}

std::int64_t SqlQueueAdminStore::delete_entries(const LogPurge& what, std::int64_t after,
                                                std::int64_t until) {
  const auto those = [&](SqlQuery& query) -> SqlQuery& {
    query.table(log_table).sql(" where seq > ").bind(after).sql(" and seq <= ").bind(until);
    return and_in_log(query, what.filter, dialect_.kind);
  };
  SqlQuery query(dialect_);
  switch (dialect_.kind) {
    case BackendKind::sqlite:  // a trigger removes the attempts
      return those(query.sql("delete from ")).run().affected;
    case BackendKind::postgres:
      those(query.sql("with gone as (delete from ")).sql(" returning id), attempts as (delete from ");
      query.table(attempt_table)
          .sql(" where id = any(array(select id from gone))) select count(*) from gone");
      return number(query.run().rows.at(0).at(0));
    case BackendKind::mariadb:
      break;
  }
  Transaction tx = dialect_.begin();
  const std::vector<std::int64_t> ids = first_column(those(query.sql("select id from ")).run(tx));
  for (const std::string_view table : {attempt_table, log_table}) {
    SqlQuery gone(dialect_);
    gone.sql("delete from ").table(table).sql(" where id > 0").and_in("id", ids, same).run(tx);
  }
  tx.commit();
  return static_cast<std::int64_t>(ids.size());
}

LogPurgeBatch SqlQueueAdminStore::purge_log(const LogPurge& what, LogSeq after, std::size_t limit) {
  constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();
  std::int64_t until = no_end;
  if (what.keep_unread) {
    SqlQuery query(dialect_);
    const Rows rows = query.sql("select min(position) from ").table("event_projection").run();
    if (!rows.is_null(0, 0)) until = rows.integer(0, 0);
  }
  if (limit == 0) {
    const std::int64_t there = count_purgeable(what, until);
    const bool more = until != no_end && count_purgeable(what, no_end) > there;
    return {.walk = {.changed = there, .walked_to = until}, .held_back = more};
  }
  // By seq, not by time, which has no index: the two go nearly together. What was finished long before it got
  // its number, in a long transaction, is left for the next time when a younger one stands before it.
  SqlQuery oldest(dialect_);
  oldest.sql("select seq, case when finalized_at <= ").now_minus(what.age).sql(" then 1 else 0 end from ");
  oldest.table(log_table).sql(" where seq > ").bind(plain(after)).sql(" and seq <= ").bind(until);
  and_in_log(oldest, what.filter, dialect_.kind).sql(" order by seq limit ");
  const Rows rows = oldest.bind_limit(limit).run();
  const auto young =
      std::find_if(rows.rows.begin(), rows.rows.end(), [](const auto& row) { return number(row[1]) == 0; });
  LogPurgeBatch batch{.walk = {.changed = 0, .walked_to = plain(after)}};
  if (young != rows.rows.begin()) {
    batch.walk.walked_to = number((*std::prev(young))[0]);
    batch.walk.changed = retried_on_contention(
        dialect_.kind, [&] { return delete_entries(what, plain(after), batch.walk.walked_to); });
    failpoint("queue.admin.purged");
  }
  const bool at_end = young == rows.rows.end() && rows.size() < limit;
  batch.walk.more = young == rows.rows.end() && rows.size() >= limit;
  batch.held_back = at_end && until != no_end && first_is_old(what, until);
  return batch;
}

}  // namespace postrider
