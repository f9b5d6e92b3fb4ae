// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "postrider/clock.hpp"

namespace postrider {

/// How many times an event has failed. The first failure is attempt 1.
enum class Attempt : std::int32_t {};

/// How long to wait before the next try. Implementations are pure: the same arguments give the same delay, so
/// that decisions can be tested without a clock or luck. Thread-safe.
class RetryPolicy {
 public:
  virtual ~RetryPolicy() = default;
  /// `failed` is at least 1. `random` is uniform in [0, 1).
  [[nodiscard]] virtual Duration delay(Attempt failed, double random) const = 0;
};

/// min(max, base * 2^(failed-1)) * jitter, with jitter uniform in [0.5, 1.5). Saturates instead of
/// overflowing.
class ExponentialBackoffRetryPolicy final : public RetryPolicy {
 public:
  /// Throws Error(invalid_argument) unless 0 < base <= max <= 365 days.
  explicit ExponentialBackoffRetryPolicy(Duration base = std::chrono::milliseconds{200},
                                         Duration max = std::chrono::milliseconds{60'000});
  [[nodiscard]] Duration delay(Attempt failed, double random) const override;

 private:
  Duration base_;
  Duration max_;
};

}  // namespace postrider
