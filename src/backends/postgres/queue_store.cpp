// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/queue_store.hpp"

#include <algorithm>
#include <utility>

#include "backends/postgres/contention.hpp"
#include "backends/postgres/outbox_store.hpp"
#include "backends/postgres/queue_claim.hpp"
#include "postrider/error.hpp"
#include "storage/attempts.hpp"

namespace postrider::postgres {

ClaimMemory::Plan ClaimMemory::plan(SteadyPoint now) {
  const MutexLock lock(mutex_);
  odd_to_ordered_ = !odd_to_ordered_;
  return {.scan = cursor_.next(now),
          .look_for_ordered = ordered_.allowed(now),
          .expect_ordered = expect_ordered_,
          .odd_to_ordered = odd_to_ordered_};
}

bool ClaimMemory::full_scan_allowed(SteadyPoint now) {
  const MutexLock lock(mutex_);
  return cursor_.full_allowed(now);
}

void ClaimMemory::scanned(const ClaimCursor::Positions& last, std::optional<Duration> cost, SteadyPoint now) {
  const MutexLock lock(mutex_);
  for (std::size_t level = 0; level < last.size(); ++level) {
    if (last[level]) cursor_.claimed(static_cast<int>(level), *last[level]);
  }
  if (cost && !exact_) cursor_.full_scan_took(*cost, now);
}

void ClaimMemory::looked_for_ordered(bool found, std::optional<Duration> cost, SteadyPoint now) {
  const MutexLock lock(mutex_);
  expect_ordered_ = found;
  if (cost && !exact_) ordered_.took(*cost, now);
}

std::optional<std::string> ClaimMemory::last_key() {
  const MutexLock lock(mutex_);
  return last_key_;
}

void ClaimMemory::stopped_at(std::string key) {
  const MutexLock lock(mutex_);
  last_key_ = std::move(key);
}

PostgresQueueStore::PostgresQueueStore(const Identifier& schema, Clock* clock, WithConnection with_connection,
                                       std::function<void()> check_schema)
    : sql_(schema),
      clock_(clock),
      with_connection_(std::move(with_connection)),
      check_schema_(std::move(check_schema)),
      memory_(clock != nullptr) {}

std::optional<TimePoint> PostgresQueueStore::now() const {
  if (clock_ == nullptr) return std::nullopt;
  return clock_->now();
}

void PostgresQueueStore::run(const std::function<void(Connection&)>& work) {
  again_after_contention(3, [&] { with_connection_(work); });
}

Result PostgresQueueStore::run_one(const Statement& statement, const Params& params, std::string_view what) {
  Result result;
  run([&](Connection& connection) {
    const RollbackGuard guard(connection);
    Pipeline pipeline(connection, what);
    begin_worker(pipeline);
    pipeline.send(statement, params);
    pipeline.send_commit(true);
    result = std::move(pipeline.finish().at(2));
  });
  return result;
}

QueueClaimResult PostgresQueueStore::claim(const QueueClaimRequest& request) {
  QueueClaimResult result;
  if (request.limit == 0) return result;
  run([&](Connection& connection) {
    const RollbackGuard guard(connection);
    result = QueueClaimer(connection, sql_, request, now(), memory_).run();
  });
  trim_crashes(result);
  return result;
}

void PostgresQueueStore::trim_crashes(const QueueClaimResult& claimed) {
  std::vector<std::int64_t> ids;
  for (const QueuedEvent& one : claimed.events) {
    if (one.crashes > 0 && may_exceed_kept(one.claim.token))
      ids.push_back(static_cast<std::int64_t>(one.claim.id));
  }
  if (ids.empty()) return;
  Params params;
  params.begin_array(oid::int8, ids.size());
  for (const std::int64_t id : ids) params.element_int8(id);
  params.end_array();
  try {
    (void)run_one(sql_.trim_attempts, params, "cannot shorten the histories of queued events");
  } catch (const Error&) {
    // The events are claimed, and that counts; the next claim or result of theirs does it.
  }
}

std::vector<QueueId> PostgresQueueStore::renew(std::span<const Claim> held, Duration lease) {
  std::vector<QueueId> still_held;
  if (held.empty()) return still_held;
  std::vector<Claim> sorted(held.begin(), held.end());
  std::sort(sorted.begin(), sorted.end(), [](const Claim& a, const Claim& b) { return a.id < b.id; });
  Params params;
  params.begin_array(oid::int8, sorted.size());
  for (const Claim& claim : sorted) params.element_int8(static_cast<std::int64_t>(claim.id));
  params.end_array();
  params.begin_array(oid::int8, sorted.size());
  for (const Claim& claim : sorted) params.element_int8(static_cast<std::int64_t>(claim.token));
  params.end_array();
  params.interval(lease).timestamp(now());
  const Result rows = run_one(sql_.renew, params, "cannot renew leases of queued events");
  still_held.reserve(static_cast<std::size_t>(rows.rows()));
  for (int row = 0; row < rows.rows(); ++row) still_held.push_back(QueueId{rows.int8(row, 0)});
  return still_held;
}

}  // namespace postrider::postgres
