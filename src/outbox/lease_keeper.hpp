// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <thread>

#include "core/inflight.hpp"
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
  ~LeaseKeeper();

  void start();
  void stop();
  /// One round, on the calling thread. Returns how many leases were renewed. Throws what the store throws.
  std::size_t renew_due();

 private:
  void run();

  OutboxStore& store_;
  InFlightTracker& in_flight_;
  Duration lease_;
  Clock& clock_;
  LogCallback log_;

  Mutex mutex_;
  CondVar wake_;
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace postrider
