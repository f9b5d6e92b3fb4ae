// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "backends/postgres/contention.hpp"
#include "backends/postgres/outbox_store.hpp"
#include "core/failpoint.hpp"
#include "storage/attempts.hpp"
#include "storage/row_decoder.hpp"

namespace postrider::postgres {

namespace {

using Batch = std::vector<const Completion*>;

/// More groups of equal tokens than this are finished row by row in one statement.
constexpr std::size_t most_done_groups = 4;

template <class Items, class Get>
void bind_refs(Params& params, const Items& items, const Get& get) {
  params.begin_array(oid::text, items.size());
  for (const auto& item : items) params.element(get(item).id.view());
  params.end_array();
  params.begin_array(oid::int8, items.size());
  for (const auto& item : items) params.element_int8(static_cast<std::int64_t>(get(item).token));
  params.end_array();
}

void bind_refs(Params& params, const Batch& batch) {
  bind_refs(params, batch, [](const Completion* c) -> const LeaseRef& { return c->lease; });
}

void bind_failed(Params& params, const Batch& batch) {
  params.begin_array(oid::int4, batch.size());
  for (const Completion* c : batch) params.element_int4(static_cast<std::int32_t>(c->failed));
  params.end_array();
}

void bind_delays(Params& params, const Batch& batch) {
  params.begin_array(oid::interval, batch.size());
  for (const Completion* c : batch) params.element_interval(c->delay);
  params.end_array();
}

void bind_errors(Params& params, const Batch& batch) {
  params.begin_array(oid::text, batch.size());
  for (const Completion* c : batch) params.element(stored_error(c->error));
  params.end_array();
}

/// Of events that were claimed often all but the newest lines go.
bool send_trim(Pipeline& pipeline, Params& params, const OutboxSql& sql, const Batch& retried,
               const Batch& dead) {
  std::vector<std::string_view> ids;
  for (const Batch* batch : {&retried, &dead}) {
    for (const Completion* c : *batch) {
      if (may_exceed_kept(c->lease.token)) ids.push_back(c->lease.id.view());
    }
  }
  if (ids.empty()) return false;
  params.clear();
  params.begin_array(oid::text, ids.size());
  for (const std::string_view id : ids) params.element(id);
  params.end_array();
  pipeline.send(sql.trim_attempts, params);
  return true;
}

/// All rows with one token in one statement, while there are few tokens: nearly always 1, the rows of the hot
/// path.
void send_done(Pipeline& pipeline, Params& params, const OutboxSql& sql, const Batch& batch,
               std::optional<TimePoint> now) {
  std::map<Token, Batch> groups;
  for (const Completion* c : batch) groups[c->lease.token].push_back(c);
  if (groups.size() > most_done_groups) {
    params.clear();
    bind_refs(params, batch);
    params.timestamp(now);
    pipeline.send(sql.done_each, params);
    return;
  }
  for (const auto& [token, members] : groups) {
    params.clear();
    params.begin_array(oid::text, members.size());
    for (const Completion* c : members) params.element(c->lease.id.view());
    params.end_array();
    params.int8(static_cast<std::int64_t>(token)).timestamp(now);
    pipeline.send(sql.done, params);
  }
}

}  // namespace

PostgresOutboxStore::PostgresOutboxStore(const Identifier& schema, Clock* clock,
                                         WithConnection with_connection, std::function<void()> check_schema)
    : sql_(schema),
      clock_(clock),
      with_connection_(std::move(with_connection)),
      check_schema_(std::move(check_schema)) {}

std::optional<TimePoint> PostgresOutboxStore::now() const {
  if (clock_ == nullptr) return std::nullopt;
  return clock_->now();
}

void PostgresOutboxStore::run(const std::function<void(Connection&)>& work) {
  again_after_contention(3, [&] { with_connection_(work); });
}

void begin_worker(Pipeline& pipeline) {
  pipeline.send(begin_worker_statement);
  pipeline.send(settings_statement);
}

std::size_t PostgresOutboxStore::complete(std::span<const Completion> results) {
  if (results.empty()) return 0;
  std::array<Batch, 5> kinds;
  for (const Completion& result : results) kinds[static_cast<std::size_t>(result.kind)].push_back(&result);
  for (Batch& batch : kinds) {
    std::sort(batch.begin(), batch.end(),
              [](const Completion* a, const Completion* b) { return a->lease.id < b->lease.id; });
  }
  const auto of = [&](Completion::Kind kind) -> const Batch& {
    return kinds[static_cast<std::size_t>(kind)];
  };
  std::size_t changed = 0;
  run([&](Connection& connection) {
    const RollbackGuard guard(connection);
    const std::optional<TimePoint> time = now();
    failpoint("postgres.complete.before_commit");
    Pipeline pipeline(connection, "cannot write results to the outbox");
    begin_worker(pipeline);
    Params params;
    using Kind = Completion::Kind;
    if (const Batch& batch = of(Kind::done); !batch.empty()) send_done(pipeline, params, sql_, batch, time);
    if (const Batch& batch = of(Kind::retry); !batch.empty()) {
      params.clear();
      bind_refs(params, batch);
      bind_failed(params, batch);
      bind_delays(params, batch);
      bind_errors(params, batch);
      params.timestamp(time);
      pipeline.send(sql_.retry, params);
    }
    if (const Batch& batch = of(Kind::later); !batch.empty()) {
      params.clear();
      bind_refs(params, batch);
      bind_delays(params, batch);
      bind_errors(params, batch);
      params.timestamp(time);
      pipeline.send(sql_.later, params);
    }
    if (const Batch& batch = of(Kind::dead); !batch.empty()) {
      params.clear();
      bind_refs(params, batch);
      bind_failed(params, batch);
      bind_errors(params, batch);
      params.timestamp(time);
      pipeline.send(sql_.dead, params);
    }
    if (const Batch& batch = of(Kind::release); !batch.empty()) {
      params.clear();
      bind_refs(params, batch);
      pipeline.send(sql_.release, params);
    }
    const bool trimmed = send_trim(pipeline, params, sql_, of(Kind::retry), of(Kind::dead));
    pipeline.send_commit(true);
    const std::vector<Result> answers = pipeline.finish();
    failpoint("postgres.complete.after_commit");
    changed = 0;
    const std::size_t not_results = trimmed ? 2 : 1;
    for (std::size_t i = 2; i + not_results < answers.size(); ++i)
      changed += static_cast<std::size_t>(answers[i].affected());
  });
  return changed;
}

std::vector<EventId> PostgresOutboxStore::renew(std::span<const LeaseRef> held, Duration lease) {
  std::vector<EventId> still_held;
  if (held.empty()) return still_held;
  std::vector<LeaseRef> sorted(held.begin(), held.end());
  std::sort(sorted.begin(), sorted.end(), [](const LeaseRef& a, const LeaseRef& b) { return a.id < b.id; });
  run([&](Connection& connection) {
    const RollbackGuard guard(connection);
    Pipeline pipeline(connection, "cannot renew leases of outbox events");
    begin_worker(pipeline);
    Params params;
    bind_refs(params, sorted, [](const LeaseRef& ref) -> const LeaseRef& { return ref; });
    params.interval(lease).timestamp(now());
    pipeline.send(sql_.renew, params);
    pipeline.send_commit(true);
    const std::vector<Result> answers = pipeline.finish();
    const Result& renewed = answers.at(2);
    still_held.clear();
    for (int row = 0; row < renewed.rows(); ++row) still_held.emplace_back(renewed.text(row, 0));
  });
  return still_held;
}

std::vector<EventId> PostgresOutboxStore::predecessors(std::string_view key, const EventId& id,
                                                       std::size_t limit) {
  std::vector<EventId> ids;
  run([&](Connection& connection) {
    const RollbackGuard guard(connection);
    Pipeline pipeline(connection, "cannot read the events before one of the outbox");
    begin_worker(pipeline);
    Params params;
    params.text(key).text(id.view()).int8(static_cast<std::int64_t>(limit));
    pipeline.send(sql_.predecessors, params);
    pipeline.send_commit(true);
    const std::vector<Result> answers = pipeline.finish();
    const Result& rows = answers.at(2);
    ids.clear();
    for (int row = 0; row < rows.rows(); ++row) ids.emplace_back(rows.text(row, 0));
  });
  return ids;
}

}  // namespace postrider::postgres
