// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "logger/limited_news.hpp"
#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/log.hpp"

namespace postrider::logger {

/// What the disk may refuse.
enum class DiskTask : std::uint8_t { write, sync, rename, remove, open, read, checkpoint, folder, count };

/// Tells people when the disk begins to refuse something and why, every ten seconds while it goes on, and
/// once when it works again. Thread-safe.
class DiskNews {
 public:
  static constexpr Duration apart = std::chrono::seconds{10};

  DiskNews(LogCallback log, Clock& clock) : log_(std::move(log)), clock_(clock) {}

  /// `what`: "cannot write events"; `error`: a negative errno; `times`: how often, or how many events.
  void failed(DiskTask task, std::string_view what, int error, std::uint64_t times = 1)
      POSTRIDER_EXCLUDES(mutex_);
  /// Costs nothing as long as nothing fails.
  void went_well(DiskTask task) {
    if (state(task).failing) recovered(task);
  }
  /// Writes of what was held back: `all`, or what is due.
  void tell_held_back(bool all) POSTRIDER_EXCLUDES(mutex_);

 private:
  struct State {
    LimitedNews news{apart};
    std::atomic<bool> failing{false};
    // Guarded by the mutex; clang cannot say so for a part of an array.
    bool told = false;
    SteadyPoint since{};
    int error = 0;
    std::string what{};
  };
  [[nodiscard]] State& state(DiskTask task) { return states_.at(static_cast<std::size_t>(task)); }
  void recovered(DiskTask task) POSTRIDER_EXCLUDES(mutex_);
  void tell(State& state, std::uint64_t times) POSTRIDER_EXCLUDES(mutex_);

  const LogCallback log_;
  Clock& clock_;
  Mutex mutex_;
  std::array<State, static_cast<std::size_t>(DiskTask::count)> states_{};
};

}  // namespace postrider::logger
