// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_outbox_admin.hpp"

#include <algorithm>
#include <utility>

#include "postrider/error.hpp"
#include "storage/attempts.hpp"
#include "storage/contention.hpp"
#include "storage/next_token.hpp"
#include "storage/sql_outbox_filter.hpp"
#include "storage/sql_outbox_rows.hpp"
#include "storage/sql_tables.hpp"

namespace postrider {
namespace {

constexpr std::size_t max_filter_ids = 10'000;

constexpr std::string_view attempt = "outbox_attempt";

/// A pending row that somebody was given and did not take: he has failed, or was away.
constexpr std::string_view was_tried = "status = 2 or last_error is not null";

/// `status` stands in the text, not in a parameter: only then are the partial indexes considered.
SqlQuery& where_status(SqlQuery& query, EventStatus status) {
  return query.sql(" where status = ").sql(std::to_string(static_cast<int>(status)));
}

SqlQuery& where_dead(SqlQuery& query, const DeadLetterFilter& filter) {
  if (filter.ids.size() > max_filter_ids) {
    throw Error(ErrorCode::invalid_argument,
                "a dead letter filter has " + std::to_string(filter.ids.size()) + " ids",
                "at most " + std::to_string(max_filter_ids) + " are taken", "split the list");
  }
  where_status(query, EventStatus::dead);
  query.and_in("event_id", filter.ids, [](const EventId& id) { return id.view(); });
  query.and_equals("event_type", filter.type).and_equals("aggregate_type", filter.aggregate_type);
  query.and_equals("aggregate_id", filter.aggregate_id).and_equals("tenant_id", filter.tenant_id);
  if (filter.error_contains.has_value()) query.sql(" and ").contains("last_error", *filter.error_contains);
  if (filter.died_after.has_value()) query.sql(" and done_at >= ").bind_time(*filter.died_after);
  if (filter.died_before.has_value()) query.sql(" and done_at < ").bind_time(*filter.died_before);
  return query;
}

void require_finished(EventStatus status) {
  if (status == EventStatus::done || status == EventStatus::dead) return;
  throw Error(ErrorCode::invalid_argument, "cannot purge pending events", "they have not been delivered yet",
              "choose EventStatus::done or EventStatus::dead");
}

}  // namespace

SqlOutboxAdminStore::SqlOutboxAdminStore(SqlDialect dialect) : dialect_(std::move(dialect)) {}

OutboxCounts SqlOutboxAdminStore::counts() {
  // Free and ordered rows apart, as their indexes are, each read once; one statement, so that the numbers fit
  // together.
  SqlQuery query(dialect_);
  query.sql("select f.pending + o.pending, f.retrying + o.retrying, (select count(*) from ")
      .table(outbox_table)
      .sql(" where status = 1), (select count(*) from ")
      .table(outbox_table)
      .sql(" where status = 3)");
  for (const std::string_view time : {"f.due", "o.due", "f.since", "o.since"}) query.sql(", ").micros(time);
  if (dialect_.clock == nullptr) query.sql(", ").micros(dialect_.now);
  query.sql(" from ");
  for (const bool ordered : {false, true}) {
    query.sql(ordered ? ", (" : "(").sql("select count(*) as pending, count(case when ").sql(was_tried);
    query.sql(" then 1 end) as retrying, min(due_at) as due, min(case when ").sql(was_tried);
    // A retry moves available_at away; what is planned for later and was never tried waits for nobody.
    query.sql(" then created_at when available_at <= ").now().sql(" then available_at end) as since from ");
    query.table(outbox_table).sql(where_pending(dialect_.kind, ordered)).sql(ordered ? ") o" : ") f");
  }
  const std::optional<TimePoint> own_now =
      dialect_.clock == nullptr ? std::nullopt : std::optional(dialect_.clock->now());

  const std::vector<Rows::Cell> row = query.run().rows.at(0);
  OutboxCounts counts{
      .pending = number(row[0]), .retrying = number(row[1]), .done = number(row[2]), .dead = number(row[3])};
  const TimePoint now = own_now.has_value() ? *own_now : time_of(row[8]);
  const auto raise = [&](Duration& oldest, const Rows::Cell& since) {
    if (since.has_value()) oldest = std::max(oldest, now - time_of(since));
  };
  raise(counts.oldest_pending, row[4]);
  raise(counts.oldest_pending, row[5]);
  raise(counts.oldest_undelivered, row[6]);
  raise(counts.oldest_undelivered, row[7]);
  if (counts.retrying > 0) counts.last_error = last_error();
  return counts;
}

std::string SqlOutboxAdminStore::last_error() {
  for (const bool ordered : {false, true}) {
    SqlQuery query(dialect_);
    query.sql("select last_error from ").table(outbox_table).sql(where_pending(dialect_.kind, ordered));
    // Who was tried last is due last.
    query.sql(" and last_error is not null order by due_at desc limit 1");
    if (const Rows rows = query.run(); !rows.empty()) return text(rows.rows[0][0]);
  }
  return {};
}

std::optional<OutboxRecord> SqlOutboxAdminStore::find(const EventId& id) {
  SqlQuery query(dialect_);
  query.sql("select ")
      .sql(outbox_columns(dialect_))
      .sql(" from ")
      .table(outbox_table)
      .sql(" where event_id = ")
      .bind(id.view());
  const Rows rows = query.run();
  if (rows.empty()) return std::nullopt;
  OutboxRecord record = std::move(outbox_records(rows).front());
  record.history = outbox_attempts(dialect_, id.view());
  return record;
}

std::vector<OutboxRecord> SqlOutboxAdminStore::list_dead(const DeadLetterFilter& filter, std::size_t limit,
                                                         const OutboxRecord* after) {
  SqlQuery query(dialect_);
  where_dead(query.sql("select ").sql(outbox_columns(dialect_)).sql(" from ").table(outbox_table), filter);
  if (after != nullptr) {
    if (!after->done_at.has_value()) {
      throw Error(ErrorCode::invalid_argument, "cannot continue the list after event " + after->id.str(),
                  "it was not a dead letter", "pass the last record of the page before");
    }
    // Written out: MariaDB finds no range in a comparison of pairs.
    query.sql(" and done_at >= ").bind_time(*after->done_at);
    query.sql(" and (done_at > ")
        .bind_time(*after->done_at)
        .sql(" or event_id > ")
        .bind(after->id.view())
        .sql(")");
  }
  query.sql(" order by done_at, event_id limit ").bind_limit(limit);
  return outbox_records(query.run());
}

std::int64_t SqlOutboxAdminStore::count_dead(const DeadLetterFilter& filter) {
  SqlQuery query(dialect_);
  where_dead(query.sql("select count(*) from ").table(outbox_table), filter);
  return number(query.run().rows.at(0).at(0));
}

std::int64_t SqlOutboxAdminStore::revive_dead(const DeadLetterFilter& filter, std::size_t limit,
                                              Duration delay) {
  SqlQuery query(dialect_);
  query.sql("update ")
      .table(outbox_table)
      .sql(" set status = 0, attempts = 0, token = ")
      .sql(token_of_next_life)
      .sql(", last_error = null, done_at = null, owner = null, lease_until = null, available_at = ");
  delay == Duration::zero() ? query.now() : query.now_plus(delay);
  if (dialect_.kind == BackendKind::mariadb) {
    where_dead(query, filter).sql(" order by done_at, event_id limit ").bind_limit(limit);
  } else {
    // The outer condition is checked again under the row's lock: two replays at once never raise the same row
    // twice.
    where_status(query, EventStatus::dead).sql(" and event_id in (select event_id from ").table(outbox_table);
    where_dead(query, filter);
    query.sql(" order by done_at, event_id limit ").bind_limit(limit).sql(")");
  }
  return query.run().affected;
}

bool SqlOutboxAdminStore::edit_dead(const EventId& id, PayloadKind kind, std::string_view payload,
                                    std::optional<std::string_view> headers_json) {
  const bool json = kind == PayloadKind::json;
  SqlQuery query(dialect_);
  // The token is raised so that the row changes in any case: MariaDB does not count a row that stays as it
  // was.
  query.sql("update ")
      .table(outbox_table)
      .sql(" set token = token % 1000000000000000000 + 1, payload = ")
      .bind(json ? Value(payload) : Value(nullptr));
  query.sql(", payload_bytes = ").bind(json ? Value(nullptr) : Value(Blob{payload}));
  if (headers_json.has_value()) {
    query.sql(", headers = ").bind(headers_json->empty() ? Value(nullptr) : Value(*headers_json));
  }
  where_status(query, EventStatus::dead).sql(" and event_id = ").bind(id.view());
  return query.run().affected > 0;
}

std::int64_t SqlOutboxAdminStore::purge_batch(EventStatus status, Duration age, std::size_t limit) {
  require_finished(status);
  if (dialect_.kind == BackendKind::mariadb) {
    return retried_on_contention(dialect_.kind, [&] { return purge_by_id(status, age, limit); });
  }
  const bool postgres = dialect_.kind == BackendKind::postgres;
  SqlQuery query(dialect_);
  if (postgres) query.sql("with gone as (");
  where_status(query.sql("delete from ").table(outbox_table), status);
  where_status(query.sql(" and event_id in (select event_id from ").table(outbox_table), status);
  query.sql(" and done_at <= ").now_minus(age).sql(" order by done_at limit ").bind_limit(limit).sql(")");
  if (!postgres) return query.run().affected;  // SQLite: a trigger removes the attempts
  query.sql(" returning event_id), attempts as (delete from ").table(attempt);
  // An array: whatever is guessed about the number of ids, they are looked up in the index.
  query.sql(" where event_id = any(array(select event_id from gone))) select count(*) from gone");
  return number(query.run().rows.at(0).at(0));
}

/// MariaDB cannot do it in one statement.
std::int64_t SqlOutboxAdminStore::purge_by_id(EventStatus status, Duration age, std::size_t limit) {
  Transaction tx = dialect_.begin();
  SqlQuery found(dialect_);
  where_status(found.sql("select event_id from ").table(outbox_table), status);
  found.sql(" and done_at <= ").now_minus(age).sql(" order by done_at limit ").bind_limit(limit);
  // Under lock, so that nobody replays one of them meanwhile and finds its history gone.
  const Rows rows = found.sql(" for update").run(tx);
  if (rows.empty()) return 0;
  std::vector<std::string> ids;
  ids.reserve(rows.size());
  for (const auto& row : rows.rows) ids.push_back(text(row[0]));
  for (const std::string_view table : {attempt, outbox_table}) {
    SqlQuery gone(dialect_);
    gone.sql("delete from ").table(table).sql(" where 1 = 1");
    gone.and_in("event_id", ids, [](const std::string& id) { return std::string_view(id); }).run(tx);
  }
  tx.commit();
  return static_cast<std::int64_t>(ids.size());
}

std::int64_t SqlOutboxAdminStore::count_purgeable(EventStatus status, Duration age) {
  require_finished(status);
  SqlQuery query(dialect_);
  where_status(query.sql("select count(*) from ").table(outbox_table), status);
  query.sql(" and done_at <= ").now_minus(age);
  return number(query.run().rows.at(0).at(0));
}

}  // namespace postrider
