// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "postrider/detail/sync.hpp"

namespace postrider::detail {

/// Tells whoever in this process wants to know that something has happened. Thread-safe.
class Signal {
 public:
  using Listener = std::function<void()>;

  /// `listener` does not throw and does not use this signal; whoever notifies waits for it. Returns a number
  /// for `unsubscribe`, after which it is not running.
  [[nodiscard]] std::uint64_t subscribe(Listener listener) POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    listeners_.emplace(++last_number_, std::move(listener));
    return last_number_;
  }
  void unsubscribe(std::uint64_t number) POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    listeners_.erase(number);
  }
  void notify() noexcept POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    for (const auto& [number, listener] : listeners_) listener();
  }

 private:
  Mutex mutex_;
  std::map<std::uint64_t, Listener> listeners_ POSTRIDER_GUARDED_BY(mutex_);
  std::uint64_t last_number_ POSTRIDER_GUARDED_BY(mutex_) = 0;
};

}  // namespace postrider::detail
