// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "postrider/clock.hpp"

namespace postrider {

/// So many per second, with what a tenth of a second has saved as the largest burst. Pure: time comes with
/// the calls. Not synchronised.
class RateLimit {
 public:
  /// 0: no limit.
  RateLimit(std::size_t per_second, SteadyPoint now) : per_second_(per_second), full_at_(now) {}

  /// How many of `wanted` may go now.
  [[nodiscard]] std::size_t available(std::size_t wanted, SteadyPoint now) const {
    if (per_second_ == 0) return wanted;
    const SteadyPoint oldest = now - burst();
    const auto saved = std::chrono::duration_cast<std::chrono::nanoseconds>(now - std::max(full_at_, oldest));
    if (saved.count() <= 0) return 0;
    return std::min(wanted, static_cast<std::size_t>(saved / one()));
  }
  void take(std::size_t count, SteadyPoint now) {
    if (per_second_ == 0) return;
    full_at_ = std::max(full_at_, now - burst()) + one() * static_cast<std::int64_t>(count);
  }
  /// When the next one may go.
  [[nodiscard]] SteadyPoint next(SteadyPoint now) const {
    return per_second_ == 0 ? now : std::max(full_at_, now - burst()) + one();
  }

 private:
  [[nodiscard]] std::chrono::nanoseconds one() const {
    return std::chrono::nanoseconds{std::nano::den / static_cast<std::int64_t>(per_second_)};
  }
  [[nodiscard]] std::chrono::nanoseconds burst() const {
    return std::max<std::chrono::nanoseconds>(one(), std::chrono::milliseconds{100});
  }

  std::size_t per_second_;
  SteadyPoint full_at_;  // what is saved is the time since then
};

}  // namespace postrider
