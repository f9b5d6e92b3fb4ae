// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/queue_store.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "backends/sqlite/event_columns.hpp"
#include "backends/sqlite/migration_target.hpp"
#include "backends/sqlite/storage.hpp"
#include "backends/sqlite/user_transaction.hpp"
#include "core/failpoint.hpp"
#include "postrider/error.hpp"
#include "storage/handler_results.hpp"
#include "storage/settled_attempt.hpp"

namespace postrider::sqlite {
namespace {

/// A block takes its time even when it is nearly empty.
constexpr std::size_t least_block = 4;

}  // namespace

SqliteQueueStore::SqliteQueueStore(const Identifier& schema, std::string storage_name, Clock& clock,
                                   Writer& writer, ConnectionPool& readers)
    : schema_(schema),
      storage_name_(std::move(storage_name)),
      sql_(schema),
      clock_(clock),
      writer_(writer),
      readers_(readers),
      file_(writer.acquire().connection().file()) {}

std::int64_t SqliteQueueStore::now() const {
  return micros(clock_.now());
}

// ---- insert

std::vector<InsertedRow> SqliteQueueStore::insert(Tx& tx, std::span<const NewQueueRow> rows) {
  Connection& connection = connection_of(tx, file_, "cannot publish to " + storage_name_);
  std::vector<InsertedRow> inserted;
  if (rows.empty()) return inserted;
  inserted.reserve(rows.size());
  const std::int64_t at = now();
  std::optional<Savepoint> savepoint;
  if (rows.size() > 1) savepoint.emplace(connection);
  {
    Statement statement = connection.prepare(sql_.insert);
    for (const NewQueueRow& row : rows) inserted.push_back(insert_row(connection, statement, row, at));
  }
  if (savepoint.has_value()) savepoint->release();
  failpoint("queue.insert.after");
  return inserted;
}

InsertedRow SqliteQueueStore::insert_row(Connection& connection, Statement& statement, const NewQueueRow& row,
                                         std::int64_t now) {
  const Event& event = *row.event;
  bind_event(statement, event, row.ordering_key, now);
  int place = event_column_count;
  statement.bind(++place, now);
  statement.bind(++place, event.deliver_at() ? micros(*event.deliver_at()) : now);
  statement.bind(++place, row.priority);
  statement.bind(++place, text_or_null(row.dedupe_key));
  const std::int64_t changed = statement.run();
  statement.reset();
  if (changed > 0) return {.id = QueueId{sqlite3_last_insert_rowid(connection.native())}};
  Statement duplicate = connection.prepare(sql_.duplicate);
  duplicate.with(row.dedupe_key);
  return {.id = QueueId{duplicate.step() ? duplicate.integer(0) : 0}, .duplicate = true};
}

// ---- claim

QueueClaimResult SqliteQueueStore::claim(const QueueClaimRequest& request) {
  if (request.limit == 0) return {};
  if (std::optional<QueueClaimResult> fresh = claim_fresh(request)) return *std::move(fresh);
  // Most looks of an idle poller find nothing: they must not take the file's one write lock for that. After a
  // full claim there is most likely more.
  if (!more_) {
    if (const std::optional<QueueClaimResult> nothing = look_in_vain(request)) return *nothing;
  }
  const Writer::Lease lease = writer_.acquire();
  LeaseTransaction transaction(lease.connection());
  QueueClaim claim(lease.connection(), sql_, request, now(), turn());
  QueueClaimResult result = claim.run();
  failpoint("sqlite.queue.claim.before_commit");
  transaction.commit();
  failpoint("sqlite.queue.claim.after_commit");
  set_turn(claim.turn());
  more_ = result.events.size() == request.limit;
  return result;
}

std::optional<QueueClaimResult> SqliteQueueStore::claim_fresh(const QueueClaimRequest& request) {
  const std::int64_t at = now();
  std::optional<std::vector<QueuedEvent>> fresh;
  {
    const ConnectionPool::Lease reader = readers_.acquire();
    fresh = QueueClaim(connection_of(reader), sql_, request, at, {}).find_fresh();
  }
  if (!fresh.has_value()) return std::nullopt;
  if (fresh->empty()) return QueueClaimResult{};
  failpoint("sqlite.queue.claim.found");
  const Writer::Lease lease = writer_.acquire();
  LeaseTransaction transaction(lease.connection());
  if (!QueueClaim(lease.connection(), sql_, request, at, {}).take_fresh(*fresh)) return std::nullopt;
  failpoint("sqlite.queue.claim.before_commit");
  transaction.commit();
  failpoint("sqlite.queue.claim.after_commit");
  return QueueClaimResult{.events = *std::move(fresh), .quarantined = {}};
}

std::optional<QueueClaimResult> SqliteQueueStore::look_in_vain(const QueueClaimRequest& request) {
  const ConnectionPool::Lease lease = readers_.acquire();
  const QueueTurn from = turn();
  QueueClaim claim(connection_of(lease), sql_, request, now(), from);
  if (claim.look()) return std::nullopt;
  // Nothing to be had up to here: the next look goes on behind.
  set_turn({.key = claim.turn().key, .odd_to_keys = from.odd_to_keys});
  return QueueClaimResult{.events = {}, .quarantined = {}, .more = claim.more()};
}

QueueTurn SqliteQueueStore::turn() const {
  const MutexLock lock(mutex_);
  return turn_;
}

void SqliteQueueStore::set_turn(QueueTurn turn) {
  const MutexLock lock(mutex_);
  turn_ = std::move(turn);
}

std::vector<QueueId> SqliteQueueStore::renew(std::span<const Claim> held, Duration lease) {
  std::vector<QueueId> renewed;
  if (held.empty()) return renewed;
  renewed.reserve(held.size());
  const Writer::Lease writer = writer_.acquire();
  LeaseTransaction transaction(writer.connection());
  const std::int64_t until = now() + lease.count();
  {
    Statement statement = writer.connection().prepare(sql_.renew);
    for (const Claim& one : held) {
      const auto id = static_cast<std::int64_t>(one.id);
      if (statement.with(until, id, static_cast<std::int64_t>(one.token)).run() > 0)
        renewed.push_back(one.id);
      statement.reset();
    }
  }
  transaction.commit();
  return renewed;
}

// ---- settle

std::vector<Settled> SqliteQueueStore::settle(std::span<const Settlement> settlements) {
  std::vector<Settled> answers(settlements.size());
  if (settlements.empty()) return answers;
  const Writer::Lease writer = writer_.acquire();
  Connection& connection = writer.connection();
  WriteTransaction transaction(connection);
  const std::int64_t at = now();
  log_attempts(connection, settlements, at);
  std::vector<std::size_t> finalized;
  for (std::size_t i = 0; i < settlements.size(); ++i) {
    if (settlements[i].kind == Settlement::Kind::finalize) {
      finalized.push_back(i);
    } else {
      answers[i] = settle_one(connection, settlements[i], at);
    }
  }
  for (std::span<const std::size_t> rest = finalized; !rest.empty();) {
    const auto block = rest.first(std::min(rest.size(), block_size));
    rest = rest.subspan(block.size());
    if (block.size() >= least_block) {
      finalize_block(connection, settlements, block, at, answers);
    } else {
      for (const std::size_t i : block) answers[i] = settle_one(connection, settlements[i], at);
    }
  }
  failpoint("sqlite.queue.settle.before_commit");
  transaction.commit();
  failpoint("sqlite.queue.settle.after_commit");
  return answers;
}

void SqliteQueueStore::log_attempts(Connection& connection, std::span<const Settlement> settlements,
                                    std::int64_t now) {
  std::optional<Statement> log;  // most batches need none
  for (const Settlement& settlement : settlements) {
    const std::optional<AttemptOutcome> outcome = failed_outcome(settlement);
    if (!outcome.has_value()) continue;
    const SettledAttempt attempt = settled_attempt(settlement, *outcome);
    const auto id = static_cast<std::int64_t>(attempt.claim.id);
    if (!log.has_value()) log.emplace(connection.prepare(sql_.log_attempt));
    log->reset();
    log->with(now, static_cast<std::int64_t>(*outcome), text_or_null(attempt.error), id,
              static_cast<std::int64_t>(attempt.claim.token));
    if (log->run() > 0 && may_exceed_kept(attempt.claim.token))
      connection.prepare(sql_.trim_attempts).with(id).run();
  }
}

void SqliteQueueStore::finalize_block(Connection& connection, std::span<const Settlement> settlements,
                                      std::span<const std::size_t> places, std::int64_t now,
                                      std::vector<Settled>& answers) {
  std::vector<std::string> results;
  results.reserve(places.size());
  std::size_t logged = 0;
  {
    Statement to_log = connection.prepare(sql_.to_log_block);
    int place = 0;
    for (const std::size_t i : places) {
      const Settlement& one = settlements[i];
      results.push_back(encode_results(one.results));
      to_log.bind(++place, static_cast<std::int64_t>(one.claim.id));
      to_log.bind(++place, static_cast<std::int64_t>(one.claim.token));
      to_log.bind(++place, static_cast<std::int64_t>(one.status));
      to_log.bind(++place, text_or_null(results.back()));
    }
    to_log.bind(to_log.parameters(), now);
    logged = static_cast<std::size_t>(to_log.run());
  }
  Statement remove = connection.prepare(sql_.remove_block);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Settlement& one = settlements[places[i]];
    const bool applied = logged == places.size() || holds(connection, one.claim);
    answers[places[i]] = applied ? Settled::applied : why_not(connection, one);
    if (applied) remove.bind(static_cast<int>(i) + 1, static_cast<std::int64_t>(one.claim.id));
  }
  remove.run();
}

Settled SqliteQueueStore::settle(Tx& tx, const Settlement& settlement) {
  Connection& connection = connection_of(tx, file_, "cannot finalize on " + storage_name_);
  Savepoint savepoint(connection);
  const std::int64_t at = now();
  log_attempts(connection, {&settlement, 1}, at);
  const Settled answer = settle_one(connection, settlement, at);
  savepoint.release();
  return answer;
}

Settled SqliteQueueStore::settle_one(Connection& connection, const Settlement& settlement, std::int64_t now) {
  const auto id = static_cast<std::int64_t>(settlement.claim.id);
  const auto token = static_cast<std::int64_t>(settlement.claim.token);
  switch (settlement.kind) {
    case Settlement::Kind::finalize: {
      const std::string results = encode_results(settlement.results);
      Statement to_log = connection.prepare(sql_.to_log);
      to_log.with(static_cast<std::int64_t>(settlement.status), now, text_or_null(results), id, token);
      if (to_log.run() == 0) return why_not(connection, settlement);
      connection.prepare(sql_.remove).with(id).run();
      return Settled::applied;
    }
    case Settlement::Kind::retry: {
      const std::string error = stored_error(settlement.error);
      Statement retry = connection.prepare(sql_.retry);
      retry.with(now + settlement.delay.count(), text_or_null(error), now, id, token);
      if (retry.run() == 0) return why_not(connection, settlement);
      store(connection, settlement.claim.id, settlement.results, now);
      return Settled::applied;
    }
    case Settlement::Kind::release:
      // Without a delay it is available as before.
      if (connection.prepare(sql_.release)
              .with(settlement.delay > Duration::zero() ? now + settlement.delay.count() : 0, now, id, token)
              .run() == 0)
        return why_not(connection, settlement);
      return Settled::applied;
  }
  throw Error(ErrorCode::invalid_argument, "cannot settle an event", "there is no such kind of settlement");
}

Settled SqliteQueueStore::why_not(Connection& connection, const Settlement& settlement) {
  const auto id = static_cast<std::int64_t>(settlement.claim.id);
  const auto token = static_cast<std::int64_t>(settlement.claim.token);
  Statement queued = connection.prepare(sql_.find);
  if (queued.with(id).step()) {
    const bool given_back = queued.integer(0) == token;
    const bool again = given_back && settlement.kind != Settlement::Kind::finalize;
    return again ? Settled::repeated : Settled::stale;
  }
  Statement logged = connection.prepare(sql_.find_logged);
  if (!logged.with(id).step()) return Settled::unknown;
  return logged.integer(0) == token ? Settled::repeated : Settled::stale;
}

// ---- states

std::vector<QueueStore::EventState> SqliteQueueStore::load_states(std::span<const QueueId> ids) {
  std::vector<EventState> found;
  if (ids.empty()) return found;
  const ConnectionPool::Lease lease = readers_.acquire();
  Statement statement = connection_of(lease).prepare(sql_.states);
  for (const QueueId id : ids) {
    statement.with(static_cast<std::int64_t>(id));
    while (statement.step()) {
      const std::int64_t failed =
          std::clamp<std::int64_t>(statement.integer(2), 0, std::numeric_limits<std::int32_t>::max());
      found.push_back({.id = id,
                       .result = {.handler = std::string(statement.text(0)),
                                  .verdict = static_cast<HandlerVerdict>(statement.integer(1)),
                                  .failed = Attempt{static_cast<std::int32_t>(failed)},
                                  .error = std::string(statement.text(3))}});
    }
    statement.reset();
  }
  return found;
}

bool SqliteQueueStore::save_states(const Claim& claim, std::span<const HandlerResult> results) {
  const Writer::Lease writer = writer_.acquire();
  WriteTransaction transaction(writer.connection());
  const bool saved = save(writer.connection(), claim, results);
  if (saved) transaction.commit();
  return saved;
}

bool SqliteQueueStore::save_states(Tx& tx, const Claim& claim, std::span<const HandlerResult> results) {
  Connection& connection = connection_of(tx, file_, "cannot store a handler's state on " + storage_name_);
  Savepoint savepoint(connection);
  const bool saved = save(connection, claim, results);
  savepoint.release();
  return saved;
}

std::vector<std::string> SqliteQueueStore::done_in(Tx& tx, QueueId id) {
  Connection& connection = connection_of(tx, file_, "cannot read a handler's state on " + storage_name_);
  std::vector<std::string> done;
  Statement statement = connection.prepare(sql_.done);
  statement.with(static_cast<std::int64_t>(id));
  while (statement.step()) done.emplace_back(statement.text(0));
  return done;
}

bool SqliteQueueStore::holds(Connection& connection, const Claim& claim) {
  Statement held = connection.prepare(sql_.held);
  return held.with(static_cast<std::int64_t>(claim.id), static_cast<std::int64_t>(claim.token)).step();
}

bool SqliteQueueStore::save(Connection& connection, const Claim& claim,
                            std::span<const HandlerResult> results) {
  if (!holds(connection, claim)) return false;
  store(connection, claim.id, results, now());
  return true;
}

void SqliteQueueStore::store(Connection& connection, QueueId id, std::span<const HandlerResult> results,
                             std::int64_t now) {
  if (results.empty()) return;
  Statement statement = connection.prepare(sql_.save_state);
  for (const HandlerResult& one : results) {
    const std::string error = stored_error(one.error);
    statement
        .with(static_cast<std::int64_t>(id), one.handler, static_cast<std::int64_t>(one.verdict),
              static_cast<std::int64_t>(one.failed), text_or_null(error), now)
        .run();
    statement.reset();
  }
}

std::size_t SqliteQueueStore::clean_states(std::size_t limit) {
  // Searched for without the write lock. An id never comes back, so what is left over stays so.
  std::vector<std::pair<std::int64_t, std::string>> left;
  {
    const ConnectionPool::Lease lease = readers_.acquire();
    Statement statement = connection_of(lease).prepare(sql_.left_states);
    statement.with(static_cast<std::int64_t>(limit));
    while (statement.step()) left.emplace_back(statement.integer(0), statement.text(1));
  }
  if (left.empty()) return 0;
  const Writer::Lease writer = writer_.acquire();
  WriteTransaction transaction(writer.connection());
  std::int64_t deleted = 0;
  {
    Statement statement = writer.connection().prepare(sql_.delete_state);
    for (const auto& [id, handler] : left) {
      deleted += statement.with(id, handler).run();
      statement.reset();
    }
  }
  transaction.commit();
  return static_cast<std::size_t>(deleted);
}

void SqliteQueueStore::check_schema() {
  const ConnectionPool::Lease lease = readers_.acquire();
  SqliteMigrationTarget target(connection_of(lease), schema_, clock_);
  require_current_schema(embedded_migrations(), target.applied(), storage_name_);
}

}  // namespace postrider::sqlite
