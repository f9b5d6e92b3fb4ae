// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider::test {

/// Counts, and lets a test wait for it.
class Wakes {
 public:
  void operator()() {
    const MutexLock lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  [[nodiscard]] int count() {
    const MutexLock lock(mutex_);
    return count_;
  }
  /// Whether there were more than `count` before a time that only a failure takes.
  [[nodiscard]] bool more_than(int count) {
    const SteadyPoint deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
    const MutexLock lock(mutex_);
    while (count_ <= count) {
      if (!changed_.wait_until(mutex_, deadline)) return count_ > count;
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int count_ POSTRIDER_GUARDED_BY(mutex_) = 0;
};

}  // namespace postrider::test
