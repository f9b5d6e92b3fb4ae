// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/parking.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace postrider::daemon {
namespace {

using namespace std::chrono_literals;
using End = Parking::RecallEnd;

class ParkingTest : public ::testing::Test {
 protected:
  /// What a daemon does that tries so many events, five thousand in a second, and each again when it is due.
  /// Returns how many tries there were in each second.
  std::vector<int> tries_while_away(int events, std::chrono::seconds time) {
    std::map<SteadyPoint, int> due;
    for (int i = 0; i < events; ++i) ++due[start_ + i / 500 * 100ms];
    std::vector<int> tries(static_cast<std::size_t>(time.count()));
    for (auto next = due.begin(); next->first < start_ + time; next = due.erase(next)) {
      tries[static_cast<std::size_t>((next->first - start_) / 1s)] += next->second;
      for (int i = 0; i < next->second; ++i) {
        const Duration delay = parking_.park(1s, next->first);
        longest_ = std::max(longest_, delay);
        ++due[next->first + delay];
      }
    }
    return tries;
  }
  static int most_of(const std::vector<int>& tries, std::size_t from) {
    return *std::max_element(tries.begin() + static_cast<std::ptrdiff_t>(from), tries.end());
  }
  /// As if many were parked before.
  void fill(int events) {
    for (int i = 0; i < events; ++i) parking_.park(1s, start_);
  }

  const SteadyPoint start_{24h};
  Parking parking_;
  Duration longest_{};
};

TEST_F(ParkingTest, AFewComeBackWhenTheSinkHasAskedForThem) {
  for (const Duration asked : {1s, 5s, 60s, 3600s}) {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(parking_.park(asked, start_ + 300ms), asked);
  }
  EXPECT_EQ(parking_.park(-1s, start_), 0s);
}

TEST_F(ParkingTest, ABacklogComesBackAtABoundedPace) {
  const std::vector<int> tries = tries_while_away(20'000, 40s);
  EXPECT_LE(most_of(tries, 5), 500) << "after the first time";
  EXPECT_GE(*std::min_element(tries.begin() + 5, tries.end()), 400) << "and evenly";
  EXPECT_LE(longest_, 42s) << "no slower than that needs";
}

TEST_F(ParkingTest, TheLongerItIsAwayTheMoreSeldomTheyComeBackAndSomeGoOnAsking) {
  const std::vector<int> tries = tries_while_away(1'000, 600s);
  EXPECT_LE(std::accumulate(tries.begin(), tries.begin() + 60, 0), 10'000) << "not 500 in each second";
  EXPECT_LE(std::accumulate(tries.end() - 60, tries.end(), 0), 1'500) << "each about once in a minute";
  EXPECT_GE(*std::min_element(tries.begin(), tries.end()), static_cast<int>(Parking::probes_per_second))
      << "so that its return is seen at once";
  EXPECT_LE(longest_, Parking::longest_rest + 3s);
}

TEST_F(ParkingTest, AHugeBacklogIsSpreadEvenlyOverTheHorizonInEveryRound) {
  const std::vector<int> tries = tries_while_away(300'000, 450s);
  EXPECT_LE(most_of(tries, 62), 1100) << "300,000 in five minutes are 1,000 a second";
  EXPECT_LE(longest_, 5min + 1s);
}

TEST_F(ParkingTest, NothingIsPutOffFurtherThanTheHorizonBehindWhatWasAskedFor) {
  fill(200'000);
  for (const Duration asked : {1s, 60s, 3600s}) {
    const Duration delay = parking_.park(asked, start_);
    EXPECT_GE(delay, asked);
    EXPECT_LE(delay, asked + 5min);
  }
}

TEST_F(ParkingTest, WhatFallsDueInTheSameSecondComesInAFewShares) {
  fill(10'000);
  std::map<Duration, int> shares;
  for (int i = 0; i < 500; ++i) ++shares[parking_.park(1s, start_)];
  EXPECT_EQ(shares.size(), Parking::shares_per_second) << "not one claim for each";
}

TEST_F(ParkingTest, BeginsAnewWhenTheSinkHasTakenAnEvent) {
  fill(10'000);
  EXPECT_GT(parking_.park(1s, start_), 15s);
  parking_.answered();
  EXPECT_EQ(parking_.park(1s, start_), 1s);
}

TEST_F(ParkingTest, TheFirstSuccessRecallsWhatAnEarlierProcessHasPutOff) {
  EXPECT_FALSE(parking_.recall_at().has_value()) << "nobody knows whether it is there";
  parking_.answered();
  ASSERT_TRUE(parking_.recall_at().has_value());
  EXPECT_LE(*parking_.recall_at(), start_) << "at once";
  parking_.recall_begins();
  EXPECT_FALSE(parking_.recall_at().has_value());
  parking_.recall_ended(End::found_none, start_);
  parking_.answered();
  EXPECT_FALSE(parking_.recall_at().has_value()) << "once";
}

class ParkingRecall : public ParkingTest {
 protected:
  ParkingRecall() {
    parking_.answered();
    parking_.recall_begins();
    parking_.recall_ended(End::found_none, start_ - 1h);
  }
};

TEST_F(ParkingRecall, IsForABacklogNotForAFew) {
  for (int i = 0; i < 100; ++i) EXPECT_EQ(parking_.park(5s, start_), 5s);
  parking_.answered();
  EXPECT_FALSE(parking_.recall_at().has_value()) << "they come by themselves";
  fill(10'000);
  EXPECT_FALSE(parking_.recall_at().has_value()) << "it is away";
  parking_.answered();
  EXPECT_TRUE(parking_.recall_at().has_value());
}

TEST_F(ParkingRecall, WaitsForTheNextSuccessWhenTheSinkHasGoneAgain) {
  fill(10'000);
  parking_.answered();
  parking_.park(1s, start_);
  EXPECT_FALSE(parking_.recall_at().has_value());
  parking_.answered();
  EXPECT_TRUE(parking_.recall_at().has_value()) << "the backlog is not forgotten";
}

TEST_F(ParkingRecall, GoesOnWhileTheSinkFlickersAndEndsWhenItIsAway) {
  fill(10'000);
  parking_.answered();
  parking_.recall_begins();
  EXPECT_TRUE(parking_.goes_on(start_));
  parking_.park(1s, start_);
  EXPECT_TRUE(parking_.goes_on(start_ + 500ms));
  EXPECT_FALSE(parking_.goes_on(start_ + 1s));
  parking_.recall_ended(End::unfinished, start_ + 1s);
  parking_.answered();
  EXPECT_EQ(parking_.recall_at(), start_ + 1s + Parking::between_recalls) << "not at each flap";
}

TEST_F(ParkingRecall, IsRepeatedOnceWhenItHasFoundEvents) {
  fill(10'000);
  parking_.answered();
  parking_.recall_begins();
  parking_.recall_ended(End::found_some, start_);
  EXPECT_EQ(parking_.recall_at(), start_ + Parking::between_recalls) << "for those that were on their way";
  parking_.recall_begins();
  parking_.recall_ended(End::found_some, start_ + 5s);
  EXPECT_FALSE(parking_.recall_at().has_value()) << "a sink with a rate always has some that wait";
}

}  // namespace
}  // namespace postrider::daemon
