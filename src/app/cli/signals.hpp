// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <csignal>

namespace postrider::cli {

/// SIGTERM, SIGINT and SIGHUP, waited for by one thread. Others must be started after it is made.
class Signals {
 public:
  Signals() {
    sigemptyset(&signals_);
    for (const int one : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals_, one);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  /// The signal, or 0 when none came in that time.
  [[nodiscard]] int wait_for(std::chrono::milliseconds time) const {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    const timespec timeout{seconds.count(), std::chrono::nanoseconds(time - seconds).count()};
    const int signal = sigtimedwait(&signals_, nullptr, &timeout);
    return signal > 0 ? signal : 0;
  }
  /// From now on one more of them ends the process at once.
  void release() const { pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr); }

 private:
  sigset_t signals_{};
};

}  // namespace postrider::cli
