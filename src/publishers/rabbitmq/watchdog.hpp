// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <thread>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider {

/// Shuts a socket down when its time is over, and when it is told to close: whoever waits in a call for that
/// socket, which knows no time limit of its own, comes back with an error. Thread-safe.
class Watchdog {
 public:
  Watchdog() = default;
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// From now on it is this socket. Before it is closed, `forget` it: its number may be given to another.
  void watch(int socket) POSTRIDER_EXCLUDES(mutex_);
  void forget() POSTRIDER_EXCLUDES(mutex_);
  /// Instead of the time set before.
  void set(SteadyPoint deadline) POSTRIDER_EXCLUDES(mutex_);
  void rest() POSTRIDER_EXCLUDES(mutex_);

  /// For ever. Idempotent.
  void close() POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] bool closed() const POSTRIDER_EXCLUDES(mutex_);

 private:
  void run() POSTRIDER_EXCLUDES(mutex_);
  void shut() POSTRIDER_REQUIRES(mutex_);

  mutable Mutex mutex_;
  CondVar changed_;
  int socket_ POSTRIDER_GUARDED_BY(mutex_) = -1;
  std::optional<SteadyPoint> deadline_ POSTRIDER_GUARDED_BY(mutex_);
  bool closed_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool ending_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::thread thread_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider
