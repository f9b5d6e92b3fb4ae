// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "backends/postgres/bind_events.hpp"
#include "backends/postgres/outbox_store.hpp"
#include "backends/postgres/session.hpp"
#include "core/failpoint.hpp"

namespace postrider::postgres {

namespace {

constexpr std::string_view cannot_insert_outbox = "cannot insert outbox events";

/// The server's error, or a clearer one when an id was there already: its words, in whatever language, hold
/// "(event_id)=(X)".
[[noreturn]] void rethrow_insert_error(const Error& error, std::span<const NewOutboxRow> rows) {
  if (error.code() != ErrorCode::conflict) throw error;
  std::string_view rest = error.what();
  rest.remove_prefix(std::min(rest.find(")=("), rest.size() - 3) + 3);
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const NewOutboxRow& row) {
    const std::string_view id = row.event->id().view();
    return rest.starts_with(id) && rest.substr(id.size()).starts_with(')');
  });
  throw Error(ErrorCode::conflict, {.sqlstate = error.sqlstate()}, cannot_insert_outbox,
              found == rows.end() ? std::string("an event id exists already")
                                  : "event id " + found->event->id().str() + " exists already",
              "an event is published once; give a new one a new id");
}

void bind_one(Params& params, std::string_view owner, const NewOutboxRow& row, std::optional<TimePoint> now) {
  const Event& event = *row.event;
  params.text(event.id().view())
      .text(event.type())
      .text_or_null(event.aggregate_type())
      .text_or_null(event.aggregate_id())
      .text_or_null(event.tenant_id())
      .text_or_null(row.ordering_key)
      .text_or_null(event.headers_json());
  if (event.payload_kind() == PayloadKind::json) {
    params.text(event.payload()).null();
  } else {
    params.null().text(event.payload());
  }
  params.timestamp(event.occurred_at()).timestamp(event.deliver_at());
  if (row.lease > Duration::zero()) {
    params.interval(row.lease);
  } else {
    params.null();
  }
  params.text(owner).timestamp(now);
}

void bind_many(Params& params, std::string_view owner, std::span<const NewOutboxRow> rows,
               std::optional<TimePoint> now) {
  using Row = NewOutboxRow;
  bind_texts(params, oid::text, rows, [](const Row& r) { return r.event->id().view(); });
  bind_texts(params, oid::text, rows, [](const Row& r) { return std::string_view(r.event->type()); });
  bind_texts(params, oid::text, rows,
             [](const Row& r) { return std::string_view(r.event->aggregate_type()); });
  bind_texts(params, oid::text, rows, [](const Row& r) { return std::string_view(r.event->aggregate_id()); });
  bind_texts(params, oid::text, rows, [](const Row& r) { return std::string_view(r.event->tenant_id()); });
  bind_texts(params, oid::text, rows, [](const Row& r) { return r.ordering_key; });
  bind_texts(params, oid::json, rows, [](const Row& r) { return r.event->headers_json(); });
  bind_texts(params, oid::json, rows, [](const Row& r) { return json_payload(*r.event); });
  bind_bytes(params, rows);

  bind_times(params, rows);

  params.begin_array(oid::interval, rows.size());
  for (const Row& row : rows) {
    if (row.lease > Duration::zero()) {
      params.element_interval(row.lease);
    } else {
      params.element_null();
    }
  }
  params.end_array();
  params.text(owner).timestamp(now);
}

Value text_or_null(std::string_view text) {
  return text.empty() ? Value(nullptr) : Value(text);
}

}  // namespace

void PostgresOutboxStore::insert(Tx& tx, std::string_view owner, std::span<const NewOutboxRow> rows) {
  if (tx.kind() != BackendKind::postgres) {
    throw Error(
        ErrorCode::wrong_storage, cannot_insert_outbox,
        "the transaction belongs to " + std::string(to_string(tx.kind())) + ", the outbox to postgres",
        "publish in a transaction of the outbox's own database");
  }
  if (rows.empty()) return;
  auto* session = dynamic_cast<NativeSession*>(&tx.session());
  if (session == nullptr) {
    insert_through_text(tx, owner, rows);
    return;
  }
  thread_local Params params;  // keeps its memory for the thread's next batch
  try {
    for (std::size_t from = 0; from < rows.size();) {
      const std::size_t end = batch_end(rows, from);
      params.clear();
      if (end - from == 1) {
        bind_one(params, owner, rows[from], now());
        (void)session->run(sql_.insert_one, params, cannot_insert_outbox);
      } else {
        bind_many(params, owner, rows.subspan(from, end - from), now());
        (void)session->run(sql_.insert_many, params, cannot_insert_outbox);
      }
      from = end;
    }
  } catch (const Error& error) {
    rethrow_insert_error(error, rows);
  }
  failpoint("outbox.insert.after");
}

void PostgresOutboxStore::insert_through_text(Tx& tx, std::string_view owner,
                                              std::span<const NewOutboxRow> rows) {
  // Placeholders for each row; times as microseconds, which need no text form that depends on a setting.
  constexpr std::string_view one_row =
      "(?::text, ?::text, ?::text, ?::text, ?::text, ?::text, ?::json, ?::json, ?::bytea, "
      "timestamptz 'epoch' + ?::bigint * interval '1 microsecond', "
      "timestamptz 'epoch' + ?::bigint * interval '1 microsecond', ?::bigint * interval '1 microsecond')";
  const std::optional<TimePoint> time = now();
  const std::string now_sql = time ? "(timestamptz 'epoch' + " +
                                         std::to_string(time->time_since_epoch().count()) +
                                         " * interval '1 microsecond')"
                                   : std::string("statement_timestamp()");
  const auto micros = [](TimePoint point) { return point.time_since_epoch().count(); };

  for (std::size_t from = 0; from < rows.size();) {
    const std::size_t end = batch_end(rows, from, 500);  // the protocol takes 65,535 parameters
    std::string sql = "INSERT INTO ";
    sql.append(sql_.table)
        .append(
            " (event_id, event_type, aggregate_type, aggregate_id, tenant_id, ordering_key, headers, "
            "payload, "
            "payload_bytes, occurred_at, created_at, available_at, owner, lease_until) "
            "SELECT id, type, aggregate_type, aggregate_id, tenant, key, headers, payload, bytes, "
            "occurred_at, ")
        .append(now_sql)
        .append(", coalesce(deliver_at, ")
        .append(now_sql)
        .append("), CASE WHEN lease IS NOT NULL THEN ?::text END, ")
        .append(now_sql)
        .append(" + lease FROM (VALUES ");
    std::vector<Value> values;
    values.reserve((end - from) * 12 + 1);
    values.emplace_back(owner);
    for (std::size_t i = from; i < end; ++i) {
      const Event& event = *rows[i].event;
      if (i != from) sql += ", ";
      sql += one_row;
      values.emplace_back(event.id().view());
      values.emplace_back(event.type());
      values.push_back(text_or_null(event.aggregate_type()));
      values.push_back(text_or_null(event.aggregate_id()));
      values.push_back(text_or_null(event.tenant_id()));
      values.push_back(text_or_null(rows[i].ordering_key));
      values.push_back(text_or_null(event.headers_json()));
      values.push_back(text_or_null(json_payload(event)));
      values.push_back(event.payload_kind() == PayloadKind::bytes ? Value(Blob{event.payload()})
                                                                  : Value(nullptr));
      values.emplace_back(micros(event.occurred_at()));
      values.push_back(event.deliver_at() ? Value(micros(*event.deliver_at())) : Value(nullptr));
      values.push_back(rows[i].lease > Duration::zero() ? Value(rows[i].lease.count()) : Value(nullptr));
    }
    sql +=
        ") AS u(id, type, aggregate_type, aggregate_id, tenant, key, headers, payload, bytes, occurred_at, "
        "deliver_at, lease)";
    try {
      (void)tx.session().execute(sql, values);
    } catch (const Error& error) {
      rethrow_insert_error(error, rows);
    }
    from = end;
  }
  failpoint("outbox.insert.after");
}

}  // namespace postrider::postgres
