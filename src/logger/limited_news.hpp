// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "postrider/clock.hpp"

namespace postrider::logger {

/// Counts what may happen very often and is to be told to people: the first time at once, then at most once a
/// minute (or as rarely as it is told), with the number of times since. Thread-safe; takes no lock.
class LimitedNews {
 public:
  static constexpr Duration apart = std::chrono::minutes{1};

  LimitedNews() = default;
  explicit LimitedNews(Duration apart_at_least) : apart_(apart_at_least) {}

  /// It happened `count` times more. Returns of how many to tell now; 0 for none.
  [[nodiscard]] std::uint64_t add(std::uint64_t count, SteadyPoint now) noexcept {
    untold_ += count;
    return due(now);
  }
  /// What was held back, when its time has come.
  [[nodiscard]] std::uint64_t due(SteadyPoint now) noexcept {
    if (untold_ == 0) return 0;
    SteadyPoint next = next_;
    // Of several at the same moment one tells for all.
    if (now < next || !next_.compare_exchange_strong(next, now + apart_)) return 0;
    return rest();
  }
  /// What was held back, at once.
  [[nodiscard]] std::uint64_t rest() noexcept { return untold_.exchange(0); }

 private:
  const Duration apart_ = apart;
  std::atomic<std::uint64_t> untold_{0};
  std::atomic<SteadyPoint> next_{SteadyPoint::min()};
};

}  // namespace postrider::logger
