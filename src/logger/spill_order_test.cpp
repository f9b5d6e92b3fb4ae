// SPDX-License-Identifier: Apache-2.0
// Files whose numbers are in no order, because somebody has edited, joined or brought them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

#include "logger/spill_fixture.hpp"

namespace postrider::logger {
namespace {

using test::SimFolder;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAreArray;

constexpr const char* active_file = "eventlog-spillover.jsonl";

/// A line with this number, of the event that `members_of(event)` describes.
std::string line(SpillSeq number, std::size_t event) {
  std::string text;
  append_spill_line(text, number, members_of(event));
  return text;
}

/// Lines whose numbers are those of their events.
std::string lines(std::initializer_list<std::size_t> numbers) {
  std::string text;
  for (const std::size_t number : numbers) text += line(number, number);
  return text;
}

TEST(SpillOrderTest, ALastLineWithALowNumberMakesNoLaterEventVanish) {
  SimFolder folder;
  folder.put(active_file, lines({5, 9, 3}));
  SpillStore store(folder, {}, silent);
  ASSERT_EQ(write_events(store, 101, 102).size(), 2U);
  const ReadAll read = read_all(store);
  EXPECT_THAT(read.keys, ElementsAre("key-5", "key-9", "key-3", "key-101", "key-102"));
  EXPECT_EQ(read.lost, 0U);
  EXPECT_EQ(store.events(), 0U);
}

TEST(SpillOrderTest, AHighNumberInTheMiddleMakesNoLaterEventVanish) {
  SimFolder folder;
  folder.put(active_file, lines({1, 900, 2, 3}));
  SpillStore store(folder, {}, silent);
  EXPECT_EQ(store.recovered(), 3U);
  write_events(store, 101, 101);
  EXPECT_THAT(read_all(store, 1).keys, ElementsAre("key-1", "key-900", "key-2", "key-3", "key-101"));
  // Nor one that is written when the high number was replayed already.
  write_events(store, 102, 103);
  const ReadAll later = read_all(store);
  EXPECT_THAT(later.keys, ElementsAre("key-102", "key-103"));
  EXPECT_EQ(later.lost, 0U);
}

TEST(SpillOrderTest, TheNextProcessDoesNotLeaveOutWhatTheHighNumberHidBefore) {
  SimFolder folder;
  folder.put(active_file, lines({1, 900, 2}));
  {
    SpillStore store(folder, {}, silent);
    SpillReader reader(store);
    SpillBatch batch;
    ASSERT_TRUE(reader.read(batch, 2, 1 << 20));
    (void)reader.commit(batch, 2);
  }
  SpillStore store(folder, {}, silent);
  write_events(store, 101, 101);
  EXPECT_THAT(read_all(store).keys, ElementsAre("key-2", "key-101"));
}

TEST(SpillOrderTest, TwoFilesThatWereJoinedAreDeliveredBoth) {
  SimFolder folder;
  std::string joined;
  for (std::size_t i = 1; i <= 5; ++i) joined += line(i, i);
  for (std::size_t i = 1; i <= 5; ++i) joined += line(i, 10 + i);
  folder.put(active_file, joined);
  SpillStore store(folder, {}, silent);
  auto wanted = keys(1, 5);
  for (const std::string& key : keys(11, 15)) wanted.push_back(key);
  EXPECT_EQ(read_all(store).keys, wanted);
}

TEST(SpillOrderTest, AFileOfAnotherFolderIsDeliveredThoughItsNumbersWereReplayedHereLongAgo) {
  SimFolder folder;
  {
    SpillStore store(folder, {}, silent);
    write_events(store, 1, 10);
    ASSERT_EQ(read_all(store).keys.size(), 10U);
  }
  folder.put(active_file, line(1, 31) + line(2, 32) + line(3, 33));
  SpillStore store(folder, {}, silent);
  write_events(store, 101, 101);
  EXPECT_THAT(read_all(store).keys, ElementsAre("key-31", "key-32", "key-33", "key-101"));
}

TEST(SpillOrderTest, FilesWhoseNumbersOverlapAreDeliveredWhole) {
  SimFolder folder;
  folder.put("eventlog-spillover.00000000000000000001-0000.jsonl", lines({100, 101, 102}));
  folder.put(active_file, lines({2, 3}));
  SpillStore store(folder, {}, silent);
  write_events(store, 201, 202);
  const std::vector<std::string> all{"key-100", "key-101", "key-102", "key-2", "key-3", "key-201", "key-202"};
  EXPECT_THAT(read_all(store).keys, UnorderedElementsAreArray(all));
}

TEST(SpillOrderTest, WhatWasWrittenAgainAfterAFailedSyncComesOnce) {
  SimFolder folder;
  folder.put("eventlog-spillover.00000000000000000001-0000.jsonl", lines({1, 2, 3, 4}));
  folder.put("eventlog-spillover.00000000000000000003-0000.jsonl", lines({3, 4}));
  folder.put(active_file, lines({3, 4, 5}));
  for (const std::size_t batch_size : {1U, 2U, 3U, 100U}) {
    SimFolder copy;
    for (const std::string& name : folder.names()) copy.put(name, folder.content(name));
    SpillStore store(copy, {}, silent);
    const ReadAll read = read_all(store, batch_size);
    EXPECT_EQ(read.keys, keys(1, 5)) << "in batches of " << batch_size;
    EXPECT_EQ(read.lost, 0U);
  }
}

TEST(SpillOrderTest, OnlyTheSameLineIsLeftOutNotAnotherWithItsNumber) {
  SimFolder folder;
  folder.put("eventlog-spillover.00000000000000000001-0000.jsonl", lines({1, 2, 3}));
  folder.put(active_file, line(3, 30) + line(3, 3) + line(4, 4));
  SpillStore store(folder, {}, silent);
  EXPECT_THAT(read_all(store).keys, ElementsAre("key-1", "key-2", "key-3", "key-30", "key-4"));
}

TEST(SpillOrderTest, ALineOutOfTurnThatWasNotCommittedComesAgain) {
  SimFolder folder;
  folder.put(active_file, lines({5, 6, 2, 3}));
  SpillStore store(folder, {}, silent);
  SpillReader reader(store);
  SpillBatch batch;
  ASSERT_TRUE(reader.read(batch, 10, 1 << 20));
  ASSERT_EQ(batch.items.size(), 4U);
  (void)reader.commit(batch, 3);
  ASSERT_TRUE(reader.read(batch, 10, 1 << 20));
  ASSERT_EQ(batch.items.size(), 1U);
  EXPECT_EQ(batch.items[0].key, "key-3");
}

TEST(SpillOrderTest, ANumberThatNobodyCanCountOnFromIsNotCountedOnFrom) {
  const SpillLimits limits{.max_events = ~std::uint64_t{0}};  // as many as are missing before it
  for (const SpillSeq number : {~SpillSeq{0}, max_spill_seq + 1, max_spill_seq}) {
    SimFolder folder;
    folder.put(active_file, line(1, 1) + line(number, 2));
    {
      SpillStore store(folder, limits, silent);
      write_events(store, 101, 101);
    }
    SpillStore store(folder, limits, silent);
    write_events(store, 102, 102);
    EXPECT_THAT(read_all(store).keys, ElementsAre("key-1", "key-2", "key-101", "key-102")) << number;
    EXPECT_EQ(store.events(), 0U);
  }
}

}  // namespace
}  // namespace postrider::logger
