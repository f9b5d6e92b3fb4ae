// SPDX-License-Identifier: Apache-2.0
#include "postrider/clock.hpp"

#include <algorithm>

#include "postrider/error.hpp"

namespace postrider {
namespace {

class SystemClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override {
    return std::chrono::floor<Duration>(std::chrono::system_clock::now());
  }
  [[nodiscard]] SteadyPoint steady_now() const override { return std::chrono::steady_clock::now(); }
  void wait_until(CondVar& condition, Mutex& mutex, SteadyPoint deadline) override POSTRIDER_REQUIRES(mutex) {
    condition.wait_until(mutex, deadline);
  }
};

}  // namespace

Clock& Clock::system() noexcept {
  // Never destroyed: threads may still ask for the time while the program's statics go.
  static SystemClock* const clock = new SystemClock;
  return *clock;
}

ManualClock::ManualClock(TimePoint start) : wall_(start), steady_(std::chrono::hours{24}) {}

TimePoint ManualClock::now() const {
  const MutexLock lock(mutex_);
  return wall_;
}

SteadyPoint ManualClock::steady_now() const {
  const MutexLock lock(mutex_);
  return steady_;
}

// No wake-up is lost, and nobody touches a condition that is gone:
// - The caller holds `mutex` from its look at the state until `wait` lets go of it, and registers in between.
// `advance`
//   either moved the time before we registered (then we see it and don't sleep), or it finds us in the list.
// - `advance` takes and frees our mutex before it notifies: by then we are asleep, not on the way there.
// - `advance` pins us while it still knows our condition and mutex, and we don't return before it lets go. It
// needs our
//   mutex for that, so we wait for it without ours.
void ManualClock::wait_until(CondVar& condition, Mutex& mutex, SteadyPoint deadline) {
  Waiter self{condition, mutex, deadline};
  {
    const MutexLock lock(mutex_);
    if (deadline <= steady_) return;
    waiters_.push_back(&self);
    arrived_.notify_all();
  }
  condition.wait(mutex);
  mutex.unlock();
  {
    const MutexLock lock(mutex_);
    while (self.pinned) unpinned_.wait(mutex_);
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &self));
  }
  mutex.lock();
}

void ManualClock::advance(Duration by) {
  if (by < Duration::zero()) {
    throw Error(ErrorCode::invalid_argument,
                "cannot advance a clock by " + std::to_string(by.count()) + " microseconds",
                "steady time never goes backwards", "set_wall() moves the wall clock either way");
  }
  std::vector<Waiter*> due;
  {
    const MutexLock lock(mutex_);
    const SteadyPoint before = steady_;
    // Those due at `before` already have been notified, or are being notified by another thread.
    for (Waiter* const waiter : waiters_) {
      if (before < waiter->deadline && waiter->deadline <= before + by) due.push_back(waiter);
    }
    for (Waiter* const waiter : due) waiter->pinned = true;
    steady_ += by;
    wall_ += by;
  }
  for (Waiter* const waiter : due) {
    { const MutexLock asleep(waiter->mutex); }
    waiter->condition.notify_all();
    const MutexLock lock(mutex_);
    waiter->pinned = false;
    unpinned_.notify_all();
  }
}

void ManualClock::set_wall(TimePoint now) {
  const MutexLock lock(mutex_);
  wall_ = now;
}

std::size_t ManualClock::count_waiters() const {
  const auto sleeping = [now = steady_](const Waiter* waiter) { return waiter->deadline > now; };
  return static_cast<std::size_t>(std::count_if(waiters_.begin(), waiters_.end(), sleeping));
}

std::size_t ManualClock::waiters() const {
  const MutexLock lock(mutex_);
  return count_waiters();
}

bool ManualClock::await_waiters(std::size_t count, Duration timeout) const {
  const SteadyPoint deadline = std::chrono::steady_clock::now() + timeout;
  const MutexLock lock(mutex_);
  while (count_waiters() < count) {
    if (!arrived_.wait_until(mutex_, deadline)) return count_waiters() >= count;
  }
  return true;
}

}  // namespace postrider
