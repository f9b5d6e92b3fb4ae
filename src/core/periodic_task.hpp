// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider {

/// Runs something again and again on a thread of its own, with a pause before each run (or each but the
/// first). `start` and `stop` are called by one thread at a time, any number of times.
class PeriodicTask {
 public:
  /// `run` does not throw.
  PeriodicTask(Duration pause, Clock& clock, std::function<void()> run, bool at_once = false)
      : pause_(pause), at_once_(at_once), clock_(clock), run_(std::move(run)) {}
  ~PeriodicTask() { stop(); }
  PeriodicTask(const PeriodicTask&) = delete;
  PeriodicTask& operator=(const PeriodicTask&) = delete;

  void start() POSTRIDER_EXCLUDES(mutex_) {
    if (thread_.joinable()) return;
    {
      const MutexLock lock(mutex_);
      stopping_ = false;
    }
    thread_ = std::thread([this] {
      if (at_once_) run_();
      while (wait()) run_();
    });
  }
  /// Waits for a run that is under way.
  void stop() POSTRIDER_EXCLUDES(mutex_) {
    if (!thread_.joinable()) return;
    {
      const MutexLock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }

 private:
  /// False when it is to end.
  [[nodiscard]] bool wait() POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const SteadyPoint until = clock_.steady_now() + pause_;
    while (!stopping_ && clock_.steady_now() < until) clock_.wait_until(wake_, mutex_, until);
    return !stopping_;
  }

  const Duration pause_;
  const bool at_once_;
  Clock& clock_;
  const std::function<void()> run_;
  Mutex mutex_;
  CondVar wake_;
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace postrider
