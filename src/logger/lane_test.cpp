// SPDX-License-Identifier: Apache-2.0
#include "logger/lane.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>
#include <thread>

#include "logger/lane_fixture.hpp"
#include "logger/lane_set.hpp"
#include "postrider/event_log_entry.hpp"
#include "support/temp_dir.hpp"

namespace postrider::logger {
namespace {

EventLogEntry entry(std::size_t number) {
  EventLogEntry made;
  made.details("event " + std::to_string(number));
  return made;
}

std::string text_of(const EventRef& ref) {
  return std::string(EventLogEntry::unpack(ref.packed())->get(EventLogEntry::Field::details));
}

std::string key_of(const EventRef& ref) {
  std::string key;
  ref.append_key(key);
  return key;
}

struct LaneTest : ::testing::Test {
  Lane lane{LaneMemory::anonymous(lane_bytes), chunk_bytes, chunk_count, 0xabc};
  std::vector<EventRef> taken;
  std::size_t drain(std::size_t max = 1'000'000) {
    const std::size_t count = lane.drain(max, [&](const EventRef& ref) { taken.push_back(ref); });
    lane.seen(count);
    return count;
  }
  /// Until there is no room.
  std::size_t fill() {
    std::size_t count = 0;
    while (lane.push(entry(count).packed(), 7)) ++count;
    return count;
  }
};

TEST_F(LaneTest, KeepsTheOrderAndTheBytes) {
  for (std::size_t i = 0; i < 100; ++i)
    ASSERT_TRUE(lane.push(entry(i).packed(), static_cast<std::int64_t>(i)));
  EXPECT_EQ(lane.unseen(), 100U);
  EXPECT_EQ(drain(), 100U);
  EXPECT_EQ(lane.unseen(), 0U);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(text_of(taken[i]), "event " + std::to_string(i));
    EXPECT_EQ(taken[i].stamp(), TimePoint{Duration{i}});
    EXPECT_EQ(key_of(taken[i]), "0000000000000abc-" + std::to_string(i));
  }
}

TEST_F(LaneTest, IsFullUntilAWholeChunkIsReleased) {
  const std::size_t capacity = fill();
  EXPECT_GT(capacity, 200U);
  EXPECT_EQ(drain(), capacity);
  EXPECT_FALSE(lane.push(entry(0).packed(), 0)) << "drained is not released";
  std::size_t released = 0;
  while (!lane.release(taken[released])) ++released;
  EXPECT_LT(released, capacity / 2);
  EXPECT_TRUE(lane.push(entry(0).packed(), 0));
}

TEST_F(LaneTest, AnEventThatWaitsHoldsBackItsChunkAlone) {
  const std::size_t first = fill();
  drain();
  for (std::size_t i = 1; i < taken.size(); ++i) lane.release(taken[i]);
  const EventRef waiting = taken.front();
  std::size_t more = 0;
  for (int round = 0; round < 10; ++round) {
    taken.clear();
    more += fill();
    drain();
    for (const EventRef& ref : taken) lane.release(ref);
  }
  EXPECT_GE(more, first * 5) << "three of four chunks go round and round";
  EXPECT_EQ(text_of(waiting), "event 0");
}

TEST_F(LaneTest, RefusesWhatNoChunkCanHold) {
  EventLogEntry big;
  big.details(std::string(chunk_bytes, 'x'));
  EXPECT_FALSE(lane.push(big.packed(), 0));
  big.details(std::string(lane.max_packed() - 5, 'x'));
  EXPECT_TRUE(lane.push(big.packed(), 0));
}

TEST_F(LaneTest, TwoThreadsAndAReleaserAtRandom) {
  constexpr std::size_t total = 200'000;
  std::jthread producer([&] {
    for (std::size_t i = 0; i < total;) {
      if (lane.push(entry(i).packed(), 0)) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  std::mt19937 random(1);
  std::vector<EventRef> held;
  std::size_t next = 0;
  while (next < total) {
    lane.drain(100, [&](const EventRef& ref) {
      ASSERT_EQ(text_of(ref), "event " + std::to_string(next));
      ASSERT_EQ(ref.head().seq, next++);
      held.push_back(ref);
    });
    std::shuffle(held.begin(), held.end(), random);
    while (held.size() > 2) {  // as many can hold back two of the four chunks
      lane.release(held.back());
      held.pop_back();
    }
  }
}

TEST(LaneFileTest, HazardL14WhatWasPushedIsThereForTheNextProcess) {
  const test::TempDir temp;
  const std::string path = temp.file("ring");
  std::vector<std::string> keys;
  {
    Lane lane(LaneMemory::file(path, lane_bytes), chunk_bytes, chunk_count, 1);
    for (std::size_t i = 0; i < 150; ++i) ASSERT_TRUE(lane.push(entry(i).packed(), 0));
    std::vector<EventRef> taken;
    lane.drain(1000, [&](const EventRef& ref) { taken.push_back(ref); });
    for (std::size_t i = 0; i < 150; ++i) {
      if (i % 3 != 0) lane.release(taken[i]);
      if (i % 3 == 0) keys.push_back(key_of(taken[i]));
    }
  }
  Lane lane(LaneMemory::file(path, lane_bytes), chunk_bytes, chunk_count, 2);
  EXPECT_EQ(lane.recovered(), 50U);
  EXPECT_EQ(lane.damaged(), 0U);
  ASSERT_TRUE(lane.push(entry(999).packed(), 0));
  std::vector<EventRef> taken;
  lane.drain(1000, [&](const EventRef& ref) { taken.push_back(ref); });
  ASSERT_EQ(taken.size(), 51U);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(text_of(taken[i]), "event " + std::to_string(i * 3));
    EXPECT_EQ(key_of(taken[i]), keys[i]) << "the same key in the next life";
  }
  EXPECT_EQ(text_of(taken[50]), "event 999");
  EXPECT_EQ(key_of(taken[50]), "0000000000000002-0");
  for (const EventRef& ref : taken) lane.release(ref);
  std::size_t room = 0;
  while (lane.push(entry(room).packed(), 0)) ++room;
  EXPECT_GT(room, 150U) << "all chunks are in use again";
}

TEST(LaneFileTest, DamageIsNoticedAndCostsItsRecord) {
  const test::TempDir temp;
  const std::string path = temp.file("ring");
  {
    Lane lane(LaneMemory::file(path, lane_bytes), chunk_bytes, chunk_count, 1);
    for (std::size_t i = 0; i < 10; ++i) ASSERT_TRUE(lane.push(entry(i).packed(), 0));
  }
  LaneMemory memory = LaneMemory::file(path, lane_bytes);
  memory.begin()[LaneMemory::head_bytes + sizeof(ChunkHead) + 3 * 48 + 32] = '\x7f';  // the field of event 3
  Lane lane(std::move(memory), chunk_bytes, chunk_count, 2);
  EXPECT_EQ(lane.recovered(), 9U);
  EXPECT_EQ(lane.damaged(), 1U);
}

TEST(LaneSetTest, EachThreadHasItsLaneAndLeavesItToTheNext) {
  const auto set = LaneSet::make({.ring_bytes = 1 << 20});
  Lane* const mine = set->mine();
  EXPECT_EQ(set->mine(), mine);
  Lane* other = nullptr;
  std::jthread([&] { other = set->mine(); }).join();
  EXPECT_NE(other, mine);
  Lane* third = nullptr;
  std::jthread([&] { third = set->mine(); }).join();
  EXPECT_EQ(third, other) << "of the thread that has ended";
  const auto second_set = LaneSet::make({.ring_bytes = 1 << 20});
  EXPECT_NE(second_set->mine(), mine);
  EXPECT_EQ(set->mine(), mine);
}

TEST(LaneSetTest, AThreadThatOutlivesTheSetDoesNoHarm) {
  auto set = LaneSet::make({.ring_bytes = 1 << 20});
  std::atomic<int> step{0};
  std::jthread thread([&] {
    EXPECT_NE(set->mine(), nullptr);
    step = 1;
    step.notify_all();
    step.wait(1);
  });
  step.wait(0);
  set.reset();
  step = 2;
  step.notify_all();
}

TEST(LaneSetTest, ARingThatCouldNotBecomeAFileIsNotTakenForOne) {
  const test::TempDir temp;
  const auto log = [](LogLevel, std::string_view) {};
  const auto there = LaneSet::make({.mapped = true, .folder = temp.path().string(), .log = log});
  EXPECT_TRUE(there->mine()->survives());
  std::filesystem::create_directory(temp.path() / "gone");
  const auto nowhere = LaneSet::make({.mapped = true, .folder = temp.file("gone"), .log = log});
  std::filesystem::remove(temp.path() / "gone");
  EXPECT_FALSE(nowhere->mine()->survives());
}

TEST(LaneSetTest, FilesOfTheLastProcessAreTakenOver) {
  const test::TempDir temp;
  const auto log = [](LogLevel, std::string_view) {};
  LaneOptions options{.mapped = true, .folder = temp.path().string(), .ring_bytes = 1 << 20, .log = log};
  {
    const auto set = LaneSet::make(options);
    ASSERT_TRUE(set->mine()->push(entry(1).packed(), 0));
    std::jthread([&] { ASSERT_TRUE(set->mine()->push(entry(2).packed(), 0)); }).join();
  }
  EXPECT_TRUE(std::filesystem::exists(temp.path() / "eventlog-ring.1"));
  options.mapped = false;  // whatever the mode is now
  options.ring_bytes = 1 << 22;
  const auto set = LaneSet::make(options);
  EXPECT_EQ(set->recovered(), 2U);
  std::vector<std::string> found;
  set->for_each(
      [&](Lane& lane) { lane.drain(10, [&](const EventRef& ref) { found.push_back(text_of(ref)); }); });
  EXPECT_THAT(found, ::testing::ElementsAre("event 1", "event 2"));
}

}  // namespace
}  // namespace postrider::logger
