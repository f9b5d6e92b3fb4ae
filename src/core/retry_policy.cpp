// SPDX-License-Identifier: Apache-2.0
#include "postrider/retry_policy.hpp"

#include <algorithm>

#include "postrider/error.hpp"

namespace postrider {
namespace {

constexpr Duration longest_delay = std::chrono::hours{24 * 365};

}  // namespace

ExponentialBackoffRetryPolicy::ExponentialBackoffRetryPolicy(Duration base, Duration max)
    : base_(base), max_(max) {
  if (base > Duration::zero() && base <= max && max <= longest_delay) return;
  throw Error(ErrorCode::invalid_argument,
              "retry delays of " + std::to_string(base.count()) + " to " + std::to_string(max.count()) +
                  " microseconds are refused",
              "it must hold that 0 < base <= max <= 365 days", "for example 200 ms and 60 s, the defaults");
}

Duration ExponentialBackoffRetryPolicy::delay(Attempt failed, double random) const {
  const std::int32_t doublings = std::max(static_cast<std::int32_t>(failed), 1) - 1;
  // base * 2^n <= max exactly when base <= max / 2^n in whole numbers: this side of it cannot overflow.
  const bool below_max = doublings < 63 && base_.count() <= (max_.count() >> doublings);
  const std::int64_t full = below_max ? base_.count() << doublings : max_.count();
  // At most 365 days: exact as a double. 0.5 + random may round up to 1.5, hence the bounds in whole numbers.
  const auto jittered = static_cast<std::int64_t>(static_cast<double>(full) * (0.5 + random));
  return Duration{std::clamp(jittered, (full + 1) / 2, (3 * full - 1) / 2)};
}

}  // namespace postrider
