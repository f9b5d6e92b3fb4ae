// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

#include "postrider/clock.hpp"

namespace postrider {

/// When people are told that a receiver is away, and when that it is back: once each, however often it is
/// tried meanwhile. One that comes and goes is told of now and then. No clock, no I/O; not thread-safe.
class SinkPresence {
 public:
  /// Between two times that people are told of an absence.
  static constexpr Duration pause = std::chrono::seconds{10};

  /// It did not take what it was given. True: to be told.
  [[nodiscard]] bool missed(SteadyPoint now) noexcept {
    if (!away_since_) away_since_ = now;
    if (told_ || (told_at_ && now - *told_at_ < pause)) return false;
    told_ = true;
    told_at_ = now;
    return true;
  }
  /// It did. For how long it was away, when that is to be told.
  [[nodiscard]] std::optional<Duration> seen(SteadyPoint now) noexcept {
    std::optional<Duration> away;
    if (told_) away = std::chrono::duration_cast<Duration>(now - *away_since_);
    away_since_.reset();
    told_ = false;
    return away;
  }

 private:
  std::optional<SteadyPoint> away_since_;
  bool told_ = false;  // of this absence
  std::optional<SteadyPoint> told_at_;
};

}  // namespace postrider
