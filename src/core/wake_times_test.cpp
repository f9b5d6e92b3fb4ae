// SPDX-License-Identifier: Apache-2.0
#include "core/wake_times.hpp"

#include <gtest/gtest.h>

namespace postrider {
namespace {

using namespace std::chrono_literals;

SteadyPoint at(Duration time) {
  return SteadyPoint(time);
}

TEST(WakeTimes, TheNearestIsNextAndNeverTooEarly) {
  WakeTimes times;
  EXPECT_EQ(times.next(), SteadyPoint::max());
  times.add(at(31ms));
  times.add(at(12ms));
  EXPECT_EQ(times.next(), at(15ms));
  times.forget_until(at(14ms));
  EXPECT_EQ(times.next(), at(15ms));
  times.forget_until(at(15ms));
  EXPECT_EQ(times.next(), at(35ms));
}

TEST(WakeTimes, OfTooManyTheNearestAreKept) {
  WakeTimes times;
  for (std::size_t i = 2 * WakeTimes::most; i > 0; --i) times.add(at(WakeTimes::grain * i));
  EXPECT_EQ(times.next(), at(2 * WakeTimes::grain));
  times.forget_until(at(WakeTimes::grain * (WakeTimes::most + 1)));
  EXPECT_EQ(times.next(), SteadyPoint::max());
}

}  // namespace
}  // namespace postrider
