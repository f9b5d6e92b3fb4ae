// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/periodic_task.hpp"
#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/log.hpp"
#include "storage/queue_store.hpp"

namespace postrider {

/// The claims of this node, until when each is safe, and their heartbeats. Thread-safe. Ends are measured on
/// the process's monotonic clock from before the database was asked, so that they are never later than the
/// ones in the table, and a wall clock that jumps changes nothing.
class HeldClaims {
 public:
  HeldClaims(QueueStore& store, Duration lease, Clock& clock, LogCallback log);

  void start() { heartbeat_.start(); }
  void stop() { heartbeat_.stop(); }

  /// `asked`: when the claim was asked for.
  void add(std::span<const QueuedEvent> events, SteadyPoint asked) POSTRIDER_EXCLUDES(mutex_);
  /// True when one of them had an ordering key: the next one of that key may go now.
  bool remove(std::span<const Settlement> settled) POSTRIDER_EXCLUDES(mutex_);
  /// False when the claim ended: a pause of the process or of the database was longer than its lease.
  [[nodiscard]] bool safe(const Claim& claim) const POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t size() const POSTRIDER_EXCLUDES(mutex_);

  /// One round: extends what has less than two thirds of its lease left. Returns how many were extended.
  std::size_t renew_due() POSTRIDER_EXCLUDES(mutex_);

 private:
  struct Held {
    Token token{};
    SteadyPoint until{};
    bool ordered = false;
  };
  void beat() noexcept;

  QueueStore& store_;
  const Duration lease_;
  Clock& clock_;
  const LogCallback log_;
  mutable Mutex mutex_;
  std::unordered_map<std::int64_t, Held> held_ POSTRIDER_GUARDED_BY(mutex_);
  PeriodicTask heartbeat_;  // last: it uses the others
};

}  // namespace postrider
