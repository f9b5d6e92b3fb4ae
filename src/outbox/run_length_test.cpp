// SPDX-License-Identifier: Apache-2.0
#include "outbox/run_length.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace postrider {
namespace {

TEST(RunLength, IsUnboundedWhileNothingFails) {
  RunLength runs;
  EXPECT_GE(runs.limit(), 10'000U);
  runs.ended(std::numeric_limits<std::size_t>::max(), 0);
  runs.ended(std::numeric_limits<std::size_t>::max(), 0);
  EXPECT_GE(runs.limit(), 10'000U);
}

TEST(RunLength, ComesToWhatIsUsuallyDeliveredBetweenFailures) {
  RunLength runs;
  for (int i = 0; i < 100; ++i) runs.ended(14, 1);
  EXPECT_GE(runs.limit(), 10U);
  EXPECT_LE(runs.limit(), 14U);
}

TEST(RunLength, OneFailureAmongManyDeliveriesChangesLittle) {
  RunLength runs;
  runs.ended(5'000, 1);
  EXPECT_GE(runs.limit(), 10'000U);
}

TEST(RunLength, IsOneWhenEverythingFails) {
  RunLength runs;
  runs.ended(0, 1'000);
  EXPECT_EQ(runs.limit(), 1U);
  runs.ended(0, std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(runs.limit(), 1U);
}

TEST(RunLength, GrowsFastOnceFailuresHaveStopped) {
  RunLength runs;
  runs.ended(0, 1'000);
  int claims = 0;
  for (; runs.limit() < 500; ++claims) runs.ended(runs.limit(), 0);
  EXPECT_LE(claims, 10) << "it doubles";
}

}  // namespace
}  // namespace postrider
