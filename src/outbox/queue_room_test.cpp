// SPDX-License-Identifier: Apache-2.0
#include "outbox/queue_room.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace postrider {
namespace {

using Sizes = std::vector<std::size_t>;

TEST(QueueRoom, TakesWhatFitsInOrder) {
  QueueRoom room(10, 100);
  const QueueRoom::Reserved first = room.reserve(Sizes{40, 40, 40, 1}, 0);
  EXPECT_EQ(first.places, 2U) << "the small one must not overtake the one that does not fit";
  EXPECT_EQ(first.bytes, 80U);
  EXPECT_EQ(room.free_places(), 8U);
  EXPECT_EQ(room.free_bytes(0), 20U);
  EXPECT_EQ(room.reserve(Sizes{20}, 0).places, 1U) << "to the last byte";
  EXPECT_EQ(room.reserve(Sizes{1}, 0).places, 0U);
}

TEST(QueueRoom, PlacesAreBoundedToo) {
  QueueRoom room(2, 100);
  EXPECT_EQ(room.reserve(Sizes{1, 1, 1}, 0).places, 2U);
  EXPECT_EQ(room.reserve(Sizes{1}, 0).places, 0U);
  room.leave(1);
  EXPECT_EQ(room.reserve(Sizes{1, 1}, 0).places, 1U);
}

TEST(QueueRoom, AnEventLargerThanAllGoesAloneIntoAnEmptyQueue) {
  QueueRoom room(10, 100);
  EXPECT_FALSE(room.fits(101, 1)) << "one that runs is still in memory";
  const QueueRoom::Reserved taken = room.reserve(Sizes{500, 1}, 0);
  EXPECT_EQ(taken.places, 1U);
  EXPECT_EQ(taken.bytes, 500U);
  EXPECT_EQ(room.free_bytes(0), 0U);
  room.unreserve(500);
  room.leave(1);
  EXPECT_TRUE(room.fits(500, 0));
}

TEST(QueueRoom, WhatIsInMemoryCountsWithoutAPlace) {
  QueueRoom room(10, 100);
  EXPECT_EQ(room.reserve(Sizes{30, 30}, 60).places, 1U);
  EXPECT_EQ(room.free_bytes(60), 10U);
}

TEST(QueueRoom, TellsOnceThatThereIsRoomAgain) {
  QueueRoom room(10, 100);
  room.enter(8);
  EXPECT_FALSE(room.has_more(0)) << "nobody asked";
  room.want_more();
  EXPECT_FALSE(room.has_more(0)) << "more than half of the places are taken";
  room.leave(3);
  EXPECT_FALSE(room.has_more(51)) << "more than half of the bytes are taken";
  EXPECT_TRUE(room.has_more(50));
  EXPECT_FALSE(room.has_more(0)) << "with every event that leaves";
  room.want_more();
  EXPECT_TRUE(room.has_more(0));
}

TEST(QueueRoom, AQueueOfOneIsToldOfWhenItIsEmpty) {
  QueueRoom room(1, 1);
  room.enter(1);
  room.want_more();
  EXPECT_FALSE(room.has_more(0));
  room.leave(1);
  EXPECT_FALSE(room.has_more(1));
  EXPECT_TRUE(room.has_more(0));
}

}  // namespace
}  // namespace postrider
