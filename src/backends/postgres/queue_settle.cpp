// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <unordered_set>
#include <utility>

#include "backends/postgres/outbox_store.hpp"
#include "backends/postgres/queue_states.hpp"
#include "backends/postgres/queue_store.hpp"
#include "backends/postgres/tx_statement.hpp"
#include "core/failpoint.hpp"
#include "storage/handler_results.hpp"
#include "storage/row_decoder.hpp"
#include "storage/settled_attempt.hpp"

namespace postrider::postgres {

namespace {

constexpr std::string_view cannot_settle = "cannot write results to the queue";

using SettleBatch = std::vector<const Settlement*>;

template <class Binder>
void bind_claims(Binder& params, const SettleBatch& batch) {
  params.begin_array(oid::int8, batch.size());
  for (const Settlement* s : batch) params.element_int8(static_cast<std::int64_t>(s->claim.id));
  params.end_array();
  params.begin_array(oid::int8, batch.size());
  for (const Settlement* s : batch) params.element_int8(static_cast<std::int64_t>(s->claim.token));
  params.end_array();
}

template <class Binder>
void bind_finalize(Binder& params, const SettleBatch& batch, std::optional<TimePoint> now) {
  bind_claims(params, batch);
  params.begin_array(oid::int2, batch.size());
  for (const Settlement* s : batch) params.element_int2(static_cast<std::int16_t>(s->status));
  params.end_array();
  if (std::all_of(batch.begin(), batch.end(), [](const Settlement* s) { return s->results.empty(); })) {
    params.null();
  } else {
    params.begin_array(oid::json, batch.size());
    for (const Settlement* s : batch) {
      if (s->results.empty()) {
        params.element_null();
      } else {
        params.element(encode_results(s->results));
      }
    }
    params.end_array();
  }
  params.timestamp(now);
}

void bind_retry(Params& params, const SettleBatch& batch, std::optional<TimePoint> now) {
  bind_claims(params, batch);
  params.begin_array(oid::interval, batch.size());
  for (const Settlement* s : batch) params.element_interval(s->delay);
  params.end_array();
  params.begin_array(oid::text, batch.size());
  for (const Settlement* s : batch) bind_error(params, s->error);
  params.end_array();

  std::vector<std::pair<QueueId, const HandlerResult*>> states;
  for (const Settlement* s : batch) {
    for (const HandlerResult* result : last_of_each_handler(s->results)) {
      states.emplace_back(s->claim.id, result);
    }
  }
  params.begin_array(oid::int8, states.size());
  for (const auto& [id, result] : states) params.element_int8(static_cast<std::int64_t>(id));
  params.end_array();
  std::vector<const HandlerResult*> results;
  results.reserve(states.size());
  for (const auto& [id, result] : states) results.push_back(result);
  bind_results(params, results);
  params.timestamp(now);
}

template <class Binder>
void bind_attempts(Binder& params, const std::vector<SettledAttempt>& attempts,
                   std::optional<TimePoint> now) {
  params.begin_array(oid::int8, attempts.size());
  for (const SettledAttempt& one : attempts) params.element_int8(static_cast<std::int64_t>(one.claim.id));
  params.end_array();
  params.begin_array(oid::int8, attempts.size());
  for (const SettledAttempt& one : attempts) params.element_int8(static_cast<std::int64_t>(one.claim.token));
  params.end_array();
  params.begin_array(oid::int2, attempts.size());
  for (const SettledAttempt& one : attempts) params.element_int2(static_cast<std::int16_t>(one.outcome));
  params.end_array();
  params.begin_array(oid::text, attempts.size());
  for (const SettledAttempt& one : attempts)
    one.error.empty() ? params.element_null() : params.element(one.error);
  params.end_array();
  params.timestamp(now);
}

template <class Binder>
void bind_ids(Binder& params, const std::vector<std::int64_t>& ids) {
  params.begin_array(oid::int8, ids.size());
  for (const std::int64_t id : ids) params.element_int8(id);
  params.end_array();
}

/// Of which there may be more than are kept.
std::vector<std::int64_t> long_histories(const std::vector<SettledAttempt>& attempts) {
  std::vector<std::int64_t> ids;
  for (const SettledAttempt& one : attempts) {
    if (may_exceed_kept(one.claim.token)) ids.push_back(static_cast<std::int64_t>(one.claim.id));
  }
  return ids;
}

/// By `place` and what was found, see QueueSql::classify.
Settled settled_of(std::int64_t found, Settlement::Kind kind) {
  if (found == 0) return Settled::unknown;
  if (found == 4) return Settled::busy;
  if (found == 1 || (found == 2 && kind != Settlement::Kind::finalize)) return Settled::repeated;
  return Settled::stale;
}

using Kinds = std::array<SettleBatch, 3>;  // by Settlement::Kind

/// In the order of their ids, as rows are locked.
std::vector<SettledAttempt> failed_attempts(const Kinds& kinds) {
  std::vector<SettledAttempt> attempts;
  for (const SettleBatch& batch : kinds) {
    for (const Settlement* one : batch) {
      if (const auto outcome = failed_outcome(*one)) attempts.push_back(settled_attempt(*one, *outcome));
    }
  }
  std::sort(attempts.begin(), attempts.end(),
            [](const SettledAttempt& a, const SettledAttempt& b) { return a.claim.id < b.claim.id; });
  return attempts;
}

/// Returns the ids that were written. `begun`: in the transaction that is open.
std::unordered_set<std::int64_t> write(Connection& connection, const QueueSql& sql, const Kinds& kinds,
                                       std::optional<TimePoint> now, bool begun = false) {
  Pipeline pipeline(connection, cannot_settle);
  if (!begun) begin_worker(pipeline);
  Params params;
  using Kind = Settlement::Kind;
  if (const std::vector<SettledAttempt> attempts = failed_attempts(kinds); !attempts.empty()) {
    bind_attempts(params, attempts, now);
    pipeline.send(sql.log_attempts, params);
    if (const std::vector<std::int64_t> ids = long_histories(attempts); !ids.empty()) {
      params.clear();
      bind_ids(params, ids);
      pipeline.send(sql.trim_attempts, params);
    }
    params.clear();
  }
  if (const SettleBatch& batch = kinds[static_cast<std::size_t>(Kind::retry)]; !batch.empty()) {
    bind_retry(params, batch, now);
    pipeline.send(sql.retry, params);
  }
  if (const SettleBatch& batch = kinds[static_cast<std::size_t>(Kind::release)]; !batch.empty()) {
    params.clear();
    bind_claims(params, batch);
    params.begin_array(oid::interval, batch.size());
    for (const Settlement* one : batch) params.element_interval(one->delay);
    params.end_array();
    params.timestamp(now);
    pipeline.send(sql.release, params);
  }
  // Last, because it takes the lock on the log's numbers.
  if (const SettleBatch& batch = kinds[static_cast<std::size_t>(Kind::finalize)]; !batch.empty()) {
    params.clear();
    bind_finalize(params, batch, now);
    pipeline.send(sql.finalize, params);
  }
  failpoint("postgres.queue.settle.before_commit");
  pipeline.send_commit(true);
  const std::vector<Result> answers = pipeline.finish();
  failpoint("postgres.queue.settle.after_commit");
  std::unordered_set<std::int64_t> written;
  for (std::size_t i = begun ? 0 : 2; i + 1 < answers.size(); ++i) {
    for (int row = 0; row < answers[i].rows(); ++row) written.insert(answers[i].int8(row, 0));
  }
  return written;
}

/// The same without those whose rows somebody else has locked.
std::unordered_set<std::int64_t> write_idle(Connection& connection, const QueueSql& sql, Kinds kinds,
                                            std::optional<TimePoint> now) {
  std::vector<std::int64_t> ids;
  for (const SettleBatch& batch : kinds) {
    for (const Settlement* one : batch) ids.push_back(static_cast<std::int64_t>(one->claim.id));
  }
  std::sort(ids.begin(), ids.end());
  Params params;
  params.begin_array(oid::int8, ids.size());
  for (const std::int64_t id : ids) params.element_int8(id);
  params.end_array();
  Pipeline pipeline(connection, cannot_settle);
  begin_worker(pipeline);
  pipeline.send(sql.lock_idle, params);
  const std::vector<Result> results = pipeline.finish();
  std::unordered_set<std::int64_t> idle;
  for (int row = 0; row < results.at(2).rows(); ++row) idle.insert(results.at(2).int8(row, 0));
  for (SettleBatch& batch : kinds) {
    std::erase_if(batch, [&](const Settlement* one) {
      return !idle.contains(static_cast<std::int64_t>(one->claim.id));
    });
  }
  return write(connection, sql, kinds, now, true);
}

}  // namespace

std::vector<Settled> PostgresQueueStore::settle(std::span<const Settlement> settlements) {
  if (settlements.empty()) return {};
  Kinds kinds;
  for (const Settlement& one : settlements) kinds[static_cast<std::size_t>(one.kind)].push_back(&one);
  for (SettleBatch& batch : kinds) {
    // Whoever locks several rows locks them in this order.
    std::sort(batch.begin(), batch.end(),
              [](const Settlement* a, const Settlement* b) { return a->claim.id < b->claim.id; });
  }
  std::unordered_set<std::int64_t> applied;
  bool waited = false;
  run([&](Connection& connection) {
    const RollbackGuard guard(connection);
    try {
      applied = waited ? write_idle(connection, sql_, kinds, now()) : write(connection, sql_, kinds, now());
    } catch (const Error& error) {
      if (error.code() == ErrorCode::contention) waited = true;
      throw;
    }
  });

  std::vector<std::optional<Settled>> answers(settlements.size());
  for (std::size_t i = 0; i < settlements.size(); ++i) {
    if (applied.contains(static_cast<std::int64_t>(settlements[i].claim.id))) answers[i] = Settled::applied;
  }
  if (applied.size() < settlements.size()) classify(settlements, answers);
  std::vector<Settled> result;
  result.reserve(answers.size());
  for (const std::optional<Settled>& answer : answers) result.push_back(answer.value_or(Settled::unknown));
  return result;
}

void PostgresQueueStore::classify(std::span<const Settlement> settlements,
                                  std::vector<std::optional<Settled>>& answers) {
  SettleBatch open;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < settlements.size(); ++i) {
    if (answers[i]) continue;
    open.push_back(&settlements[i]);
    places.push_back(i);
  }
  Params params;
  bind_claims(params, open);
  const Result found = run_one(sql_.classify, params, cannot_settle);
  for (int row = 0; row < found.rows(); ++row) {
    const std::size_t place = places.at(static_cast<std::size_t>(found.int8(row, 0) - 1));
    answers[place] = settled_of(found.int8(row, 1), settlements[place].kind);
  }
}

Settled PostgresQueueStore::settle(Tx& tx, const Settlement& settlement) {
  require_postgres(tx, cannot_settle);
  const SettleBatch batch{&settlement};
  if (const auto outcome = failed_outcome(settlement)) {
    const std::vector<SettledAttempt> attempts{settled_attempt(settlement, *outcome)};
    run_in(tx, sql_.log_attempts, cannot_settle,
           [&](auto& params) { bind_attempts(params, attempts, now()); });
    if (const std::vector<std::int64_t> ids = long_histories(attempts); !ids.empty())
      run_in(tx, sql_.trim_attempts, cannot_settle, [&](auto& params) { bind_ids(params, ids); });
  }
  const TxRows gone = run_in(tx, sql_.finalize_unnumbered, cannot_settle,
                             [&](auto& params) { bind_finalize(params, batch, now()); });
  if (gone.size() > 0) return Settled::applied;
  const TxRows found =
      run_in(tx, sql_.classify, cannot_settle, [&](auto& params) { bind_claims(params, batch); });
  return settled_of(found.int8(0, 1), settlement.kind);
}

void PostgresQueueStore::sequence_log() {
  constexpr std::string_view cannot_number = "cannot number the entries of the log";
  constexpr std::int64_t most = 1000;
  if (!run_one(sql_.any_unnumbered, {}, cannot_number).boolean(0, 0)) return;
  Params params;
  params.int8(most);
  std::int64_t numbered = most;
  while (numbered == most) {
    run([&](Connection& connection) {
      const RollbackGuard guard(connection);
      Pipeline pipeline(connection, cannot_number);
      begin_worker(pipeline);
      pipeline.send(sql_.lock_numbers);
      pipeline.send(sql_.number_log, params);
      failpoint("postgres.queue.number.before_commit");
      pipeline.send_commit(true);
      numbered = pipeline.finish().at(3).affected();
    });
  }
}

}  // namespace postrider::postgres
