// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <vector>

#include "postrider/detail/sync.hpp"

namespace postrider {

/// Microseconds: what all three databases store without rounding.
using Duration = std::chrono::microseconds;
/// Wall-clock time, UTC.
using TimePoint = std::chrono::sys_time<Duration>;
/// Time that never goes backwards; the only time that deadlines inside a process are measured in.
using SteadyPoint = std::chrono::steady_clock::time_point;

/// Where time comes from. Thread-safe. Everything that waits, waits through its clock, so that tests can drive it.
class Clock {
 public:
  virtual ~Clock() = default;

  [[nodiscard]] virtual TimePoint now() const = 0;
  [[nodiscard]] virtual SteadyPoint steady_now() const = 0;

  /// Releases `mutex`, waits for a notification or until `deadline` by this clock, takes `mutex` again. May wake
  /// without cause: call it in a loop.
  virtual void wait_until(CondVar& condition, Mutex& mutex, SteadyPoint deadline) POSTRIDER_REQUIRES(mutex) = 0;

  /// The computer's own clocks. Lives for ever.
  [[nodiscard]] static Clock& system() noexcept;
};

/// A clock that moves only when told to. `advance` wakes everyone whose deadline has come.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(TimePoint start = TimePoint{std::chrono::seconds{1'700'000'000}});

  [[nodiscard]] TimePoint now() const override;
  [[nodiscard]] SteadyPoint steady_now() const override;
  void wait_until(CondVar& condition, Mutex& mutex, SteadyPoint deadline) override POSTRIDER_REQUIRES(mutex);

  /// Moves both clocks forward. Must not be called while holding a mutex that somebody waits with.
  void advance(Duration by);
  /// Sets the wall clock alone, backwards too: steady time is untouched, as on a real machine.
  void set_wall(TimePoint now);
  /// How many threads wait on this clock now; lets a test advance only when its subject has gone to sleep.
  [[nodiscard]] std::size_t waiters() const;

 private:
  struct Waiter {
    CondVar* condition;
    Mutex* mutex;
  };

  mutable Mutex mutex_;
  TimePoint wall_ POSTRIDER_GUARDED_BY(mutex_);
  SteadyPoint steady_ POSTRIDER_GUARDED_BY(mutex_);
  std::vector<Waiter> waiters_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider
