// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <functional>
#include <thread>
#include <utility>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider::cli {

/// Ends the process when an orderly end takes too long, because some thread waits for what never answers.
/// Made where that end begins; when this object dies first, nothing happens.
class LastResort {
 public:
  /// `last_words` is called right before the end, while other threads go on, and returns the exit code.
  LastResort(Duration time, std::function<int()> last_words)
      : thread_([this, time, last_words = std::move(last_words)] {
          if (wait(time)) std::_Exit(last_words());  // without destructors: they are what hangs
        }) {}
  ~LastResort() {
    {
      const MutexLock lock(mutex_);
      called_off_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  LastResort(const LastResort&) = delete;
  LastResort& operator=(const LastResort&) = delete;

 private:
  /// False when it was called off.
  [[nodiscard]] bool wait(Duration time) POSTRIDER_EXCLUDES(mutex_) {
    Clock& clock = Clock::system();
    const SteadyPoint until = clock.steady_now() + time;
    const MutexLock lock(mutex_);
    while (!called_off_ && clock.steady_now() < until) clock.wait_until(changed_, mutex_, until);
    return !called_off_;
  }

  Mutex mutex_;
  CondVar changed_;
  bool called_off_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the above
};

}  // namespace postrider::cli
