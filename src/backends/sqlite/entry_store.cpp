// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/entry_store.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <utility>

#include "core/failpoint.hpp"
#include "postrider/error.hpp"

namespace postrider::sqlite {
namespace {

Value text_or_null(const std::string& text) {
  return text.empty() ? Value(nullptr) : Value(text);
}

}  // namespace

SqliteEntryStore::SqliteEntryStore(const Identifier& schema, Clock& clock, Writer& writer, SqlDialect dialect)
    : insert_("insert into " + schema.str() +
              "_event_log_entries (application_id, correlation_id, process_name, process_status, step, "
              "details, target_system, originating_system, user_id, idempotency_key, extras, occurred_at, "
              "received_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
              "on conflict (application_id, idempotency_key) where idempotency_key is not null do nothing"),
      first_with_key_("select id from " + schema.str() +
                      "_event_log_entries where application_id = ? and idempotency_key = ?"),
      add_words_("insert into " + schema.str() +
                 "_event_log_words (rowid, process_name, step, details) select id, process_name, step, "
                 "details from " +
                 schema.str() + "_event_log_entries where id >= ? order by id"),
      clock_(clock),
      writer_(writer),
      purge_(dialect),
      reader_(std::move(dialect)) {}

InsertedEntry SqliteEntryStore::insert_one(Connection& connection, Statement& statement, const Entry& entry,
                                           std::int64_t now) const {
  statement.reset();
  statement.with(entry.application_id, entry.correlation_id, entry.process_name, entry.process_status,
                 text_or_null(entry.step), text_or_null(entry.details), text_or_null(entry.target_system),
                 text_or_null(entry.originating_system), text_or_null(entry.user_id),
                 text_or_null(entry.idempotency_key), text_or_null(entry.extras),
                 entry.occurred_at.time_since_epoch().count(), now);
  if (statement.run() > 0) return {.id = EntryId{sqlite3_last_insert_rowid(connection.native())}};
  Statement first = connection.prepare(first_with_key_);
  first.with(entry.application_id, entry.idempotency_key);
  if (!first.step()) {
    throw Error(ErrorCode::database, "cannot store an event log entry",
                "its idempotency key is taken, but nobody has it");
  }
  return {.id = EntryId{first.integer(0)}, .duplicate = true};
}

std::vector<InsertedEntry> SqliteEntryStore::insert(std::span<const Entry> entries) {
  std::vector<InsertedEntry> inserted;
  if (entries.empty()) return inserted;
  inserted.reserve(entries.size());
  const Writer::Lease lease = writer_.acquire();
  Connection& connection = lease.connection();
  const std::int64_t now = clock_.now().time_since_epoch().count();
  WriteTransaction transaction(connection);
  {
    Statement statement = connection.prepare(insert_);
    for (const Entry& entry : entries) inserted.push_back(insert_one(connection, statement, entry, now));
  }
  const auto first =
      std::find_if(inserted.begin(), inserted.end(), [](const InsertedEntry& one) { return !one.duplicate; });
  if (first != inserted.end()) {
    // There is one writer: whatever has a higher id is ours, too.
    connection.prepare(add_words_).with(static_cast<std::int64_t>(first->id)).run();
  }
  failpoint("sqlite.entries.before_commit");
  transaction.commit();
  failpoint("sqlite.entries.after_commit");
  return inserted;
}

}  // namespace postrider::sqlite
