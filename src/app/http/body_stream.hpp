// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "postrider/detail/sync.hpp"

namespace postrider::http {

/// The body of a response that is written while it is sent: for events as they happen, and for what is too
/// large to be put together first. Put it into a Response, answer with that, and go on writing, from any
/// thread. Thread-safe.
///
/// It never waits and never holds more than its capacity: a client that takes less than is written is let go,
/// and `write` says so. Whoever can ask for more later does not write again before `write` said yes.
class BodyStream {
 public:
  explicit BodyStream(std::size_t capacity = 256U << 10U) : capacity_(capacity) {}

  /// False when nobody will get it: the client is gone or too slow, the server stops, or it was closed.
  [[nodiscard]] bool write(std::string_view bytes) POSTRIDER_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (closed_ || abandoned_) return false;
      if (waiting_.size() + bytes.size() > capacity_) {
        abandoned_ = true;
      } else {
        waiting_ += bytes;
      }
    }
    wake();
    return is_open();
  }
  /// The end of the body, after what was written.
  void close() POSTRIDER_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      closed_ = true;
    }
    wake();
  }
  /// False from the moment on at which `write` would say no.
  [[nodiscard]] bool is_open() const POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return !closed_ && !abandoned_;
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  // For the session that sends it.

  enum class State { open, closed, overrun };
  /// What was written since the last time, and what comes after it.
  [[nodiscard]] std::pair<std::string, State> take() POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const State state = abandoned_ ? State::overrun : closed_ ? State::closed : State::open;
    return {std::exchange(waiting_, {}), state};
  }
  /// `wake` is called after each change, from any thread.
  void attach(std::function<void()> wake) POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    wake_ = std::move(wake);
  }
  /// Nobody will take anything any more.
  void abandon() POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    abandoned_ = true;
    waiting_ = {};
    wake_ = {};
  }

 private:
  void wake() POSTRIDER_EXCLUDES(mutex_) {
    std::function<void()> call;
    {
      const MutexLock lock(mutex_);
      call = wake_;
    }
    if (call) call();
  }

  const std::size_t capacity_;
  mutable Mutex mutex_;
  std::string waiting_ POSTRIDER_GUARDED_BY(mutex_);
  std::function<void()> wake_ POSTRIDER_GUARDED_BY(mutex_);
  bool closed_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool abandoned_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

}  // namespace postrider::http
