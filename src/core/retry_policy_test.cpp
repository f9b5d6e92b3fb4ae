// SPDX-License-Identifier: Apache-2.0
#include "postrider/retry_policy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

#include "postrider/error.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
constexpr std::int64_t year = Duration{24h * 365}.count();

/// min(max, base * 2^(failed-1)), by the slow and obvious way.
std::int64_t capped(std::int64_t base, std::int64_t max, std::int32_t failed) {
  std::int64_t value = base;
  for (std::int32_t i = 1; i < failed && value < max; ++i) value *= 2;
  return std::min(value, max);
}

struct Case {
  std::int64_t base, max;
  std::int32_t failed;
  double random;
};

Case any_case() {
  Case c{};
  // Small and large magnitudes alike: uniform numbers would nearly all be close to a year.
  const auto magnitude = [](std::int64_t low) {
    const std::int64_t high = std::min(year, low << *rc::gen::inRange(0, 45));
    return *rc::gen::inRange<std::int64_t>(low, std::max(high, low) + 1);
  };
  c.base = magnitude(1);
  c.max = *rc::gen::element(c.base, magnitude(c.base), year);
  c.failed = *rc::gen::oneOf(rc::gen::inRange<std::int32_t>(1, 80),
                             rc::gen::inRange<std::int32_t>(1, std::numeric_limits<std::int32_t>::max()),
                             rc::gen::just(std::numeric_limits<std::int32_t>::max()));
  c.random = *rc::gen::element(0.0, std::nextafter(1.0, 0.0), *rc::gen::inRange(0, 1'000'000) / 1e6);
  return c;
}

RC_GTEST_PROP(RetryPolicy, HazardO8_DelayStaysWithinHalfAndOneAndAHalf, ()) {
  const Case c = any_case();
  const ExponentialBackoffRetryPolicy policy(Duration{c.base}, Duration{c.max});
  const std::int64_t delay = policy.delay(Attempt{c.failed}, c.random).count();
  const std::int64_t full = capped(c.base, c.max, c.failed);
  RC_ASSERT(delay >= 1);
  RC_ASSERT(2 * delay >= full);
  RC_ASSERT(2 * delay < 3 * full);
}

RC_GTEST_PROP(RetryPolicy, HazardO8_DelayGrowsWithRandomAndNeverShrinksWithAttempts, ()) {
  const Case c = any_case();
  const ExponentialBackoffRetryPolicy policy(Duration{c.base}, Duration{c.max});
  const auto at = [&](std::int32_t failed, double random) { return policy.delay(Attempt{failed}, random); };
  RC_ASSERT(at(c.failed, 0.0) <= at(c.failed, c.random));
  RC_ASSERT(at(c.failed, c.random) == at(c.failed, c.random));
  if (c.failed < std::numeric_limits<std::int32_t>::max()) {
    RC_ASSERT(at(c.failed, c.random) <= at(c.failed + 1, c.random));
  }
}

TEST(RetryPolicy, HazardO8_EveryPowerOfTwoUpTo200AttemptsAndTheLargestAttempt) {
  for (const std::int64_t base : {std::int64_t{1}, std::int64_t{3}, std::int64_t{200'000}, year}) {
    const ExponentialBackoffRetryPolicy policy(Duration{base}, Duration{year});
    for (std::int32_t failed = 1; failed <= 200; ++failed) {
      const std::int64_t full = capped(base, year, failed);
      // random 0.5 is a factor of 1, exact.
      EXPECT_EQ(policy.delay(Attempt{failed}, 0.5).count(), full) << "base " << base << " attempt " << failed;
    }
    EXPECT_EQ(policy.delay(Attempt{std::numeric_limits<std::int32_t>::max()}, 0.5).count(), year);
  }
}

TEST(RetryPolicy, TheDefaultsAreTheDocumentedOnes) {
  const ExponentialBackoffRetryPolicy policy;
  EXPECT_EQ(policy.delay(Attempt{1}, 0.5), 200ms);
  EXPECT_EQ(policy.delay(Attempt{2}, 0.5), 400ms);
  EXPECT_EQ(policy.delay(Attempt{9}, 0.5), 51'200ms);
  EXPECT_EQ(policy.delay(Attempt{10}, 0.5), 60'000ms);
  EXPECT_EQ(policy.delay(Attempt{1}, 0.0), 100ms);
  EXPECT_LT(policy.delay(Attempt{1}, std::nextafter(1.0, 0.0)), 300ms);
}

TEST(RetryPolicy, RefusesDelaysOutOfBounds) {
  const auto message = [](Duration base, Duration max) -> std::string {
    try {
      const ExponentialBackoffRetryPolicy policy(base, max);
      return "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
  };
  EXPECT_EQ(message(0us, 1s),
            "postrider: retry delays of 0 to 1000000 microseconds are refused: it must hold that 0 < base <= "
            "max <= "
            "365 days. Hint: for example 200 ms and 60 s, the defaults");
  EXPECT_THAT(message(-1us, 1s), ::testing::HasSubstr("retry delays of -1 to"));
  EXPECT_THAT(message(2s, 1s), ::testing::HasSubstr("0 < base <= max"));
  EXPECT_THAT(message(1s, Duration{year} + 1us), ::testing::HasSubstr("365 days"));
  EXPECT_EQ(message(1us, Duration{year}), "accepted");
  EXPECT_EQ(message(Duration{year}, Duration{year}), "accepted");
}

}  // namespace
}  // namespace postrider
