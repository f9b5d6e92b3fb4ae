// SPDX-License-Identifier: Apache-2.0
#include "outbox/claim_size.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace postrider {
namespace {

constexpr std::size_t mebi = std::size_t{1} << 20;

/// What a claim of up to 200 rows would ask for.
std::size_t asks(const ClaimSize& size, std::size_t bytes) {
  return std::min<std::size_t>({200, size.fitting(bytes), size.careful(bytes)});
}

TEST(ClaimSize, TheFirstClaimFitsWhateverTheSizesAre) {
  const ClaimSize size;
  EXPECT_EQ(asks(size, 64 * mebi), 64U);
  EXPECT_EQ(asks(size, mebi), 1U);
  EXPECT_EQ(asks(size, 100), 1U) << "else nothing would ever be learned";
}

TEST(ClaimSize, SmallEventsReachTheWholeBatchInAFewClaims) {
  ClaimSize size;
  int claims = 0;
  for (; asks(size, mebi) < 200; ++claims) size.claimed(asks(size, mebi), asks(size, mebi) * 300);
  EXPECT_LE(claims, 4);
  EXPECT_GE(size.fitting(64 * mebi), 100'000U);
}

TEST(ClaimSize, LargeEventsAreAskedForAsTheyFit) {
  ClaimSize size;
  size.claimed(64, 64 * 1'000'000);
  EXPECT_EQ(asks(size, 64 * mebi), 67U);
  EXPECT_EQ(asks(size, 3'500'000), 3U);
  EXPECT_EQ(asks(size, 999'999), 0U);
}

TEST(ClaimSize, SizesThatGrowCountAtOnceThoseThatShrinkByAndBy) {
  ClaimSize size;
  size.claimed(200, 200 * 100);
  size.claimed(200, 200 * 1'000'000);
  EXPECT_EQ(size.fitting(10'000'000), 10U);
  size.claimed(10, 10 * 100);
  EXPECT_EQ(size.fitting(10'000'000), 13U);
  for (int i = 0; i < 40; ++i) size.claimed(10, 10 * 100);
  EXPECT_GE(size.fitting(10'000'000), 50'000U);
}

TEST(ClaimSize, AfterQuietTimesABurstIsMetWithCare) {
  ClaimSize size;
  for (int i = 0; i < 10; ++i) size.claimed(200, 200 * 100);
  EXPECT_EQ(asks(size, 64 * mebi), 200U);
  size.claimed(0, 0);
  EXPECT_EQ(asks(size, 64 * mebi), 64U) << "they may be large this time";
  size.claimed(3, 300);
  EXPECT_EQ(asks(size, 64 * mebi), 64U);
}

}  // namespace
}  // namespace postrider
