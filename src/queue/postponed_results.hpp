// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "storage/queue_store.hpp"

namespace postrider {

/// Results that could not be written because somebody's open transaction had locked the events' rows. Each
/// attempt may wait for the lock, so the pause between attempts grows. As many as there are claims, at most.
/// Thread-safe.
class PostponedResults {
 public:
  static constexpr Duration first_pause = std::chrono::milliseconds{100};
  static constexpr Duration longest_pause = std::chrono::seconds{15};

  explicit PostponedResults(Clock& clock) : clock_(clock) {}

  /// After an attempt: `locked` are those that have to wait (again).
  void add(std::vector<Settlement> locked) POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (locked.empty()) {
      if (waiting_.empty()) pause_ = first_pause;
      return;
    }
    std::move(locked.begin(), locked.end(), std::back_inserter(waiting_));
    due_ = clock_.steady_now() + pause_;
    pause_ = std::min(2 * pause_, longest_pause);
  }
  /// All of them, once the pause is over.
  [[nodiscard]] std::vector<Settlement> take_due() POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (waiting_.empty() || clock_.steady_now() < due_) return {};
    return std::exchange(waiting_, {});
  }
  [[nodiscard]] std::vector<Settlement> take_all() POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::exchange(waiting_, {});
  }

 private:
  Clock& clock_;
  Mutex mutex_;
  std::vector<Settlement> waiting_ POSTRIDER_GUARDED_BY(mutex_);
  SteadyPoint due_ POSTRIDER_GUARDED_BY(mutex_){};
  Duration pause_ POSTRIDER_GUARDED_BY(mutex_) = first_pause;
};

}  // namespace postrider
