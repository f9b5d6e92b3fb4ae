// SPDX-License-Identifier: Apache-2.0
#include "relay/read_ahead.hpp"

#include <gtest/gtest.h>

namespace postrider {
namespace {

class ReadAheadTest : public ::testing::Test {
 protected:
  static constexpr std::size_t page_bytes = 100;
  static Batch page(int seen) { return {.seen = Position{seen}, .more = true}; }

  ReadAhead ahead_{3 * page_bytes, page_bytes};
  ReadAhead::Lane lane_;
  ReadAhead::Lane other_;
};

TEST_F(ReadAheadTest, PagesAreReadInOrderAndTakenByWhoeverStandsBeforeThem) {
  EXPECT_TRUE(ahead_.expect(lane_, 7, Position{10}));
  const auto first = ahead_.begin();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first->pair, 7U);
  EXPECT_EQ(first->after, Position{10});
  EXPECT_FALSE(ahead_.wanted());
  EXPECT_TRUE(ahead_.take(lane_, 7, Position{10}).comes) << "another thread reads it";
  EXPECT_TRUE(ahead_.expect(lane_, 7, Position{20})) << "told before its events are made";
  ahead_.done(first, page(20));
  const auto taken = ahead_.take(lane_, 7, Position{10});
  ASSERT_TRUE(taken.page.has_value());
  EXPECT_EQ(taken.page->seen, Position{20});
  EXPECT_EQ(ahead_.begin()->after, Position{20});
}

TEST_F(ReadAheadTest, APairIsAFewPagesAheadAndGoesOnWhenOneIsTaken) {
  EXPECT_TRUE(ahead_.expect(lane_, 0, Position{10}));
  const auto first = ahead_.begin();
  EXPECT_TRUE(ahead_.expect(lane_, 0, Position{20}));
  ahead_.done(first, page(20));
  const auto second = ahead_.begin();
  EXPECT_FALSE(ahead_.expect(lane_, 0, Position{30})) << "enough";
  ahead_.done(second, page(30));
  EXPECT_FALSE(ahead_.wanted());
  EXPECT_TRUE(ahead_.take(lane_, 0, Position{10}).page.has_value());
  ASSERT_TRUE(ahead_.wanted());
  EXPECT_EQ(ahead_.begin()->after, Position{30});
}

TEST_F(ReadAheadTest, AllPagesTogetherAreBounded) {
  EXPECT_TRUE(ahead_.expect(lane_, 0, Position{10}));
  EXPECT_TRUE(ahead_.expect(lane_, 0, Position{20}));
  EXPECT_TRUE(ahead_.expect(other_, 1, Position{10}));
  EXPECT_FALSE(ahead_.expect(other_, 1, Position{20}));
  EXPECT_EQ(ahead_.bytes(), 3 * page_bytes);
  ahead_.put_back(other_, 1, Position{5}, page(10));
  EXPECT_EQ(ahead_.bytes(), 3 * page_bytes) << "read again, rather";
  const auto reading = ahead_.begin();
  ahead_.drop(lane_);
  EXPECT_EQ(ahead_.bytes(), 2 * page_bytes) << "what is being read has its memory";
  ahead_.done(reading, page(20));
  EXPECT_EQ(ahead_.bytes(), page_bytes);
  ahead_.drop(other_);
  EXPECT_EQ(ahead_.bytes(), 0U);
  EXPECT_EQ(ahead_.begin(), nullptr);
}

TEST_F(ReadAheadTest, WhoeverStandsElsewhereGetsNothing) {
  ahead_.put_back(lane_, 0, Position{10}, page(20));
  const auto taken = ahead_.take(lane_, 0, Position{5});
  EXPECT_FALSE(taken.page.has_value() || taken.comes) << "it was moved back";
  EXPECT_EQ(ahead_.bytes(), 0U);
}

TEST_F(ReadAheadTest, WhatNobodyHasBegunIsReadByThePairItself) {
  EXPECT_TRUE(ahead_.expect(lane_, 0, Position{10}));
  const auto taken = ahead_.take(lane_, 0, Position{10});
  EXPECT_FALSE(taken.page.has_value() || taken.comes);
  EXPECT_FALSE(ahead_.wanted());
  EXPECT_EQ(ahead_.bytes(), 0U);
}

TEST_F(ReadAheadTest, AFailedReadTakesThoseBehindItWithIt) {
  EXPECT_TRUE(ahead_.expect(lane_, 0, Position{10}));
  const auto first = ahead_.begin();
  EXPECT_TRUE(ahead_.expect(lane_, 0, Position{20}));
  const auto second = ahead_.begin();
  ahead_.failed(lane_, first);
  EXPECT_TRUE(lane_.pages.empty());
  ahead_.done(second, page(30));
  EXPECT_EQ(ahead_.bytes(), 0U);
}

}  // namespace
}  // namespace postrider
