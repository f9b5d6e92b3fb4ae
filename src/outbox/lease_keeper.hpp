// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/inflight.hpp"
#include "core/periodic_task.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/log.hpp"
#include "storage/outbox_store.hpp"

namespace postrider {

/// Renews the leases of what this node holds for long (a slow listener, a full queue), so that nobody else
/// delivers it while this node lives. One thread; touches the database only when a lease has used up a third
/// of its time.
class LeaseKeeper {
 public:
  LeaseKeeper(OutboxStore& store, InFlightTracker& in_flight, Duration lease, Clock& clock, LogCallback log);

  void start() { rounds_.start(); }
  void stop() { rounds_.stop(); }
  /// One round, on the calling thread. Returns how many leases were renewed. Throws what the store throws.
  std::size_t renew_due();

 private:
  void round() noexcept;

  OutboxStore& store_;
  InFlightTracker& in_flight_;
  Duration lease_;
  Clock& clock_;
  LogCallback log_;
  PeriodicTask rounds_;  // last: it uses the others
};

}  // namespace postrider
