// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <chrono>
#include <csignal>

namespace postrider::cli {

/// For commands that go on until somebody ends them: waits for that, for a time, or for `nudge`. Made before
/// the process has other threads, which inherit what it blocks. A reader who leaves is no reason to die:
/// writing says so instead of SIGPIPE.
class Interrupts {
 public:
  Interrupts() : owner_(pthread_self()) {
    sigemptyset(&signals_);
    for (const int one : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&signals_, one);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): there is nothing it could fail of
  }

  /// True when the command is to end.
  [[nodiscard]] bool wait_for(std::chrono::milliseconds time) const {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
    const timespec timeout{seconds.count(), std::chrono::nanoseconds(time - seconds).count()};
    const int signal = sigtimedwait(&signals_, nullptr, &timeout);
    return signal > 0 && signal != SIGUSR1;
  }
  /// Ends a wait: there may be news. From any thread.
  void nudge() const noexcept { pthread_kill(owner_, SIGUSR1); }

 private:
  pthread_t owner_;
  sigset_t signals_{};
};

}  // namespace postrider::cli
