// SPDX-License-Identifier: Apache-2.0
#include "publishers/rate_limit.hpp"

#include <gtest/gtest.h>

namespace postrider {
namespace {

using namespace std::chrono_literals;

TEST(RateLimit, LetsAllPassWithoutALimit) {
  RateLimit rate(0, SteadyPoint{});
  rate.take(1'000'000, SteadyPoint{});
  EXPECT_EQ(rate.available(1'000'000, SteadyPoint{}), 1'000'000U);
}

TEST(RateLimit, GivesAsManyPerSecondAsAskedFor) {
  const SteadyPoint begin{10s};
  RateLimit rate(1000, begin);
  std::size_t sent = 0;
  for (SteadyPoint now = begin; now < begin + 10s; now += 7ms) {
    const std::size_t some = rate.available(1'000'000, now);
    rate.take(some, now);
    sent += some;
  }
  EXPECT_NEAR(static_cast<double>(sent), 10'000.0, 100.0);
}

TEST(RateLimit, SavesNoMoreThanATenthOfASecond) {
  RateLimit rate(1000, SteadyPoint{});
  EXPECT_EQ(rate.available(1'000'000, SteadyPoint{1h}), 100U);
}

TEST(RateLimit, SaysWhenTheNextMayGo) {
  const SteadyPoint begin{1h};
  RateLimit rate(2, begin);
  ASSERT_EQ(rate.available(5, begin), 0U);
  EXPECT_EQ(rate.next(begin), begin + 500ms);
  EXPECT_EQ(rate.available(5, rate.next(begin)), 1U);
}

}  // namespace
}  // namespace postrider
