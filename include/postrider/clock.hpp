// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "postrider/detail/sync.hpp"

namespace postrider {

/// Microseconds: what all three databases store without rounding.
using Duration = std::chrono::microseconds;
/// Wall-clock time, UTC.
using TimePoint = std::chrono::sys_time<Duration>;
/// Time that never goes backwards; the only time that deadlines inside a process are measured in.
using SteadyPoint = std::chrono::steady_clock::time_point;

/// Where time comes from. Thread-safe. Everything that waits, waits through its clock, so that tests can
/// drive it.
class Clock {
 public:
  virtual ~Clock() = default;

  [[nodiscard]] virtual TimePoint now() const = 0;
  [[nodiscard]] virtual SteadyPoint steady_now() const = 0;

  /// Releases `mutex`, waits for a notification or until `deadline` by this clock, takes `mutex` again. May
  /// wake without cause: call it in a loop.
  virtual void wait_until(CondVar& condition, Mutex& mutex, SteadyPoint deadline)
      POSTRIDER_REQUIRES(mutex) = 0;

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

  /// Moves both clocks forward; throws Error(invalid_argument) when told to go back. Must not be called while
  /// holding a mutex that somebody waits with.
  void advance(Duration by);
  /// Sets the wall clock alone, backwards too: steady time is untouched, as on a real machine.
  void set_wall(TimePoint now);
  /// How many threads wait for a time that has not come; lets a test advance only when its subject has gone
  /// to sleep.
  [[nodiscard]] std::size_t waiters() const;
  /// Blocks until at least `count` threads wait. False when `timeout`, in real time, passed before.
  [[nodiscard]] bool await_waiters(std::size_t count, Duration timeout = std::chrono::seconds{10}) const;

 private:
  /// Lives on the stack of its `wait_until`, so its condition and mutex exist as long as it is in the list.
  struct Waiter {
    CondVar& condition;
    Mutex& mutex;
    SteadyPoint deadline;
    bool pinned = false;  // an `advance` is about to notify it: it must not leave yet
  };
  [[nodiscard]] std::size_t count_waiters() const POSTRIDER_REQUIRES(mutex_);

  mutable Mutex mutex_;  // taken after a waiter's own mutex, never before it
  mutable CondVar arrived_;
  CondVar unpinned_;
  TimePoint wall_ POSTRIDER_GUARDED_BY(mutex_);
  SteadyPoint steady_ POSTRIDER_GUARDED_BY(mutex_);
  std::vector<Waiter*> waiters_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider
