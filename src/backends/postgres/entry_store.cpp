// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/entry_store.hpp"

#include <algorithm>
#include <utility>

#include "backends/postgres/bind_events.hpp"
#include "backends/postgres/outbox_store.hpp"
#include "core/failpoint.hpp"
#include "postrider/error.hpp"

namespace postrider::postgres {
namespace {

constexpr std::string_view cannot_store = "cannot store event log entries";
constexpr int store_attempts = 5;

/// One column of all entries.
void bind_column(Params& params, Oid type, std::span<const Entry> entries, std::string Entry::*column) {
  bind_texts(params, type, entries, [&](const Entry& entry) { return std::string_view(entry.*column); });
}

}  // namespace

PostgresEntryStore::PostgresEntryStore(const Identifier& schema, Clock* clock, WithConnection with_connection,
                                       SqlDialect dialect)
    : insert_("INSERT INTO " + schema.str() +
              ".event_log_entries (application_id, correlation_id, process_name, process_status, step, "
              "details, target_system, originating_system, user_id, idempotency_key, extras, occurred_at, "
              "received_at) SELECT u.*, coalesce($13::timestamptz, statement_timestamp()) "
              "FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], "
              "$7::text[], $8::text[], $9::text[], $10::text[], $11::json[], $12::timestamptz[]) AS u "
              "ON CONFLICT (application_id, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING "
              "RETURNING id, application_id, idempotency_key"),
      first_with_key_(
          "SELECT u.n, e.id FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS u(app, key, n) "
          "JOIN " +
          schema.str() + ".event_log_entries AS e ON e.application_id = u.app AND e.idempotency_key = u.key"),
      clock_(clock),
      with_connection_(std::move(with_connection)),
      purge_(dialect),
      reader_(std::move(dialect)) {}

void PostgresEntryStore::insert_new(Connection& connection, std::span<const Entry> entries,
                                    std::vector<InsertedEntry>& answers) const {
  Params params;
  bind_column(params, oid::text, entries, &Entry::application_id);
  // Never NULL, also when there is none: it leads an index that pages follow.
  params.begin_array(oid::text, entries.size());
  for (const Entry& entry : entries) params.element(entry.correlation_id);
  params.end_array();
  for (const auto column :
       {&Entry::process_name, &Entry::process_status, &Entry::step, &Entry::details, &Entry::target_system,
        &Entry::originating_system, &Entry::user_id, &Entry::idempotency_key}) {
    bind_column(params, oid::text, entries, column);
  }
  bind_column(params, oid::json, entries, &Entry::extras);
  params.begin_array(oid::timestamptz, entries.size());
  for (const Entry& entry : entries) params.element_timestamp(entry.occurred_at);
  params.end_array();
  params.timestamp(clock_ == nullptr ? std::nullopt : std::optional(clock_->now()));

  Pipeline pipeline(connection, cannot_store);
  pipeline.send(begin_worker_statement);
  pipeline.send(insert_, params);
  const Result rows = std::move(pipeline.finish().at(1));

  // What came back is what went in, in that order, without the duplicates: the keys tell which.
  int next = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const bool is_new = next < rows.rows() && rows.text(next, 2) == entries[i].idempotency_key &&
                        rows.text(next, 1) == entries[i].application_id;
    answers[i] = {.id = EntryId{is_new ? rows.int8(next, 0) : 0}, .duplicate = !is_new};
    if (is_new) ++next;
  }
}

bool PostgresEntryStore::find_first(Connection& connection, std::span<const Entry> entries,
                                    std::vector<InsertedEntry>& answers) const {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (answers[i].id == EntryId{}) open.push_back(i);
  }
  if (open.empty()) return true;
  Params params;
  for (const auto column : {&Entry::application_id, &Entry::idempotency_key}) {
    params.begin_array(oid::text, open.size());
    for (const std::size_t i : open) params.element(entries[i].*column);
    params.end_array();
  }
  // In a statement of its own: it sees what others committed while we waited for them.
  Pipeline pipeline(connection, cannot_store);
  pipeline.send(settings_statement);
  pipeline.send(first_with_key_, params);
  const Result rows = std::move(pipeline.finish().at(1));
  for (int row = 0; row < rows.rows(); ++row) {
    answers[open.at(static_cast<std::size_t>(rows.int8(row, 0) - 1))].id = EntryId{rows.int8(row, 1)};
  }
  return rows.rows() == static_cast<int>(open.size());
}

std::vector<InsertedEntry> PostgresEntryStore::insert(std::span<const Entry> entries) {
  std::vector<InsertedEntry> answers(entries.size());
  if (entries.empty()) return answers;
  for (int attempt = 1;; ++attempt) {
    try {
      bool found = false;
      with_connection_([&](Connection& connection) {
        const RollbackGuard guard(connection);
        insert_new(connection, entries, answers);
        found = find_first(connection, entries, answers);
        if (!found) return;
        failpoint("postgres.entries.before_commit");
        Pipeline pipeline(connection, cannot_store);
        pipeline.send_commit(false);
        (void)pipeline.finish();
        failpoint("postgres.entries.after_commit");
      });
      if (found) return answers;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::contention || error.in_doubt() || attempt == store_attempts) throw;
      continue;
    }
    // A first one was removed before we could read its id: its key is free now.
    if (attempt == store_attempts) {
      throw Error(ErrorCode::contention, {.retryable = true}, cannot_store,
                  "entries with the same idempotency keys are being removed all the time");
    }
  }
}

}  // namespace postrider::postgres
