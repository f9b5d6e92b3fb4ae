// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/outbox_store.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <utility>

#include "backends/sqlite/event_columns.hpp"
#include "backends/sqlite/migration_target.hpp"
#include "backends/sqlite/outbox_claim.hpp"
#include "backends/sqlite/storage.hpp"
#include "backends/sqlite/user_transaction.hpp"
#include "core/failpoint.hpp"
#include "core/utf8.hpp"
#include "postrider/error.hpp"
#include "storage/attempts.hpp"

namespace postrider::sqlite {
namespace {

void insert_row(Statement& statement, Connection& connection, const NewOutboxRow& row, std::string_view owner,
                std::int64_t now) {
  const Event& event = *row.event;
  const bool leased = row.lease > Duration::zero();
  bind_event(statement, event, row.ordering_key, now);
  int place = event_column_count;
  statement.bind(++place, event.deliver_at() ? micros(*event.deliver_at()) : now);
  statement.bind(++place, leased ? Value(owner) : Value(nullptr));
  statement.bind(++place, leased ? Value(now + row.lease.count()) : Value(nullptr));
  const int code = statement.try_step();
  if (code == SQLITE_CONSTRAINT_UNIQUE) {
    throw Error(ErrorCode::conflict, "cannot publish event " + event.id().str(),
                "an event with this id exists already",
                "give each event an id of its own; to publish at most once, treat this error as success");
  }
  if (code != SQLITE_DONE) throw connection.failure("cannot publish event " + event.id().str());
  statement.reset();
}

/// Writes lines about attempts that failed. Costs nothing as long as there are none.
class AttemptLines {
 public:
  AttemptLines(Connection& connection, const OutboxSql& sql, std::int64_t now)
      : connection_(connection), sql_(sql), now_(now) {}

  /// Before the row is changed: a line is written only if the claim still holds it, and it names the owner.
  void add(const Completion& result, AttemptOutcome outcome, std::string_view error) {
    if (!log_.has_value()) log_.emplace(connection_.prepare(sql_.log_attempt));
    log_->reset();
    log_->with(static_cast<std::int64_t>(result.failed), now_, static_cast<std::int64_t>(outcome),
               utf8_prefix(error, max_attempt_error_chars), result.lease.id.view(),
               static_cast<std::int64_t>(result.lease.token));
    if (log_->run() == 0 || !may_exceed_kept(result.lease.token)) return;
    if (!trim_.has_value()) trim_.emplace(connection_.prepare(sql_.trim_attempts));
    trim_->reset();
    trim_->with(result.lease.id.view()).run();
  }

 private:
  Connection& connection_;
  const OutboxSql& sql_;
  const std::int64_t now_;
  std::optional<Statement> log_{};
  std::optional<Statement> trim_{};
};

}  // namespace

SqliteOutboxStore::SqliteOutboxStore(const Identifier& schema, std::string storage_name, Clock& clock,
                                     Writer& writer, ConnectionPool& readers)
    : schema_(schema),
      storage_name_(std::move(storage_name)),
      sql_(schema),
      clock_(clock),
      writer_(writer),
      readers_(readers),
      file_(writer.acquire().connection().file()) {}

std::int64_t SqliteOutboxStore::now() const {
  return micros(clock_.now());
}

void SqliteOutboxStore::insert(Tx& tx, std::string_view owner, std::span<const NewOutboxRow> rows) {
  Connection& connection = connection_of(tx, file_, "cannot publish to " + storage_name_);
  if (rows.empty()) return;
  const std::int64_t at = now();
  std::optional<Savepoint> savepoint;
  if (rows.size() > 1) savepoint.emplace(connection);
  {
    Statement statement = connection.prepare(sql_.insert);
    for (const NewOutboxRow& row : rows) insert_row(statement, connection, row, owner, at);
  }
  if (savepoint.has_value()) savepoint->release();
  failpoint("outbox.insert.after");
}

std::vector<ClaimedEvent> SqliteOutboxStore::claim(const ClaimRequest& request) {
  if (request.limit == 0) return {};
  // Most looks of an idle poller find nothing: they must not take the file's one write lock for that.
  if (request.continue_keys.empty() && !anything_due()) return {};
  const Writer::Lease lease = writer_.acquire();
  LeaseTransaction transaction(lease.connection());
  OutboxClaim claim(lease.connection(), sql_, request, now());
  std::vector<ClaimedEvent> claimed = claim.run();
  failpoint("sqlite.claim.before_commit");
  transaction.commit();
  failpoint("sqlite.claim.after_commit");
  return claimed;
}

bool SqliteOutboxStore::anything_due() {
  const ConnectionPool::Lease lease = readers_.acquire();
  for (const std::string& sql : {sql_.due_free, sql_.due_ordered}) {
    Statement statement = connection_of(lease).prepare(sql);
    statement.with(now(), std::int64_t{1});
    if (statement.step()) return true;
  }
  return false;
}

std::vector<EventId> SqliteOutboxStore::renew(std::span<const LeaseRef> held, Duration lease) {
  std::vector<EventId> renewed;
  if (held.empty()) return renewed;
  renewed.reserve(held.size());
  const Writer::Lease writer = writer_.acquire();
  LeaseTransaction transaction(writer.connection());
  const std::int64_t until = now() + lease.count();
  {
    Statement statement = writer.connection().prepare(sql_.renew);
    for (const LeaseRef& ref : held) {
      if (statement.with(until, ref.id.view(), static_cast<std::int64_t>(ref.token)).run() > 0)
        renewed.push_back(ref.id);
      statement.reset();
    }
  }
  transaction.commit();
  return renewed;
}

std::size_t SqliteOutboxStore::complete(std::span<const Completion> results) {
  if (results.empty()) return 0;
  const Writer::Lease writer = writer_.acquire();
  Connection& connection = writer.connection();
  WriteTransaction transaction(connection);
  const std::int64_t at = now();
  std::int64_t changed = 0;
  {
    // Prepared when the first result of its kind comes along; most batches are all done.
    std::array<std::optional<Statement>, 5> statements;
    const auto statement = [&](Completion::Kind kind, const std::string& sql) -> Statement& {
      std::optional<Statement>& slot = statements.at(static_cast<std::size_t>(kind));
      if (!slot.has_value()) slot.emplace(connection.prepare(sql));
      slot->reset();
      return *slot;
    };
    AttemptLines lines(connection, sql_, at);
    for (const Completion& result : results) {
      const std::string_view id = result.lease.id.view();
      const auto token = static_cast<std::int64_t>(result.lease.token);
      const auto failed = static_cast<std::int64_t>(result.failed);
      const std::int64_t available = at + result.delay.count();
      switch (result.kind) {
        case Completion::Kind::done:
          changed += statement(result.kind, sql_.done).with(at, id, token).run();
          break;
        case Completion::Kind::retry: {
          const std::string error = stored_error(result.error);
          lines.add(result, AttemptOutcome::retry, error);
          changed += statement(result.kind, sql_.retry).with(failed, available, error, id, token).run();
          break;
        }
        case Completion::Kind::later:
          changed +=
              statement(result.kind, sql_.later).with(available, stored_error(result.error), id, token).run();
          break;
        case Completion::Kind::dead: {
          const std::string error = stored_error(result.error);
          lines.add(result, AttemptOutcome::dead, error);
          changed += statement(result.kind, sql_.dead).with(at, failed, error, id, token).run();
          break;
        }
        case Completion::Kind::release:
          changed += statement(result.kind, sql_.release).with(id, token).run();
          break;
      }
    }
  }
  failpoint("sqlite.complete.before_commit");
  transaction.commit();
  failpoint("sqlite.complete.after_commit");
  return static_cast<std::size_t>(changed);
}

std::vector<EventId> SqliteOutboxStore::predecessors(std::string_view key, const EventId& id,
                                                     std::size_t limit) {
  const ConnectionPool::Lease lease = readers_.acquire();
  Statement statement = connection_of(lease).prepare(sql_.predecessors);
  statement.with(key, id.view(), static_cast<std::int64_t>(limit));
  std::vector<EventId> ids;
  while (statement.step()) ids.emplace_back(statement.text(0));
  return ids;
}

void SqliteOutboxStore::check_schema() {
  const ConnectionPool::Lease lease = readers_.acquire();
  SqliteMigrationTarget target(connection_of(lease), schema_, clock_);
  require_current_schema(embedded_migrations(), target.applied(), storage_name_);
}

}  // namespace postrider::sqlite
