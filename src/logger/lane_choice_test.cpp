// SPDX-License-Identifier: Apache-2.0
// Which ring a thread gets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <thread>

#include "logger/lane_set.hpp"
#include "logger/logger_fixture.hpp"

namespace postrider::logger {
namespace {

namespace fs = std::filesystem;

struct LaneChoice : ::testing::Test {
  const test::TempDir temp;
  LaneOptions options{
      .mapped = true,
      .folder = temp.path().string(),
      .ring_bytes = 1 << 20,
      .log = [this](LogLevel level, std::string_view) { errors += level == LogLevel::error ? 1 : 0; }};
  int errors = 0;

  /// Of a thread that ends right after it.
  static Lane* lane_of_a_thread(
      LaneSet& set, const std::function<void(Lane&)>& use = [](Lane&) {}) {
    Lane* lane = nullptr;
    std::jthread([&] {
      lane = set.mine();
      if (lane != nullptr) use(*lane);
    }).join();
    return lane;
  }
  static void fill(Lane& lane) {
    while (lane.push(numbered(1).packed(), 0)) {
    }
  }
  static void empty(Lane& lane) {
    lane.seen(lane.drain(1'000'000, [&](const EventRef& ref) { lane.release(ref); }));
  }
  static std::size_t count(const LaneSet& set) {
    std::size_t lanes = 0;
    set.for_each([&](const Lane&) { ++lanes; });
    return lanes;
  }
  std::string path(const std::string& number) const { return temp.file("eventlog-ring." + number); }
  /// A ring with one event.
  void leave_ring(const std::string& number) {
    const std::string whole = path(number);
    const auto set = LaneSet::make(options);
    ASSERT_TRUE(set->mine()->push(numbered(1).packed(), 0));
    for (const auto& entry : fs::directory_iterator(temp.path())) {
      if (entry.path().string() != whole) fs::rename(entry.path(), whole);
    }
  }
};

TEST_F(LaneChoice, ANewThreadDoesNotGetTheFullRingOfOneThatHasEnded) {
  options.mapped = false;
  options.ring_bytes = 64 * 1024;
  const auto set = LaneSet::make(options);
  Lane* const first = lane_of_a_thread(*set, fill);
  Lane* const second = lane_of_a_thread(*set);
  EXPECT_NE(second, first) << "log() would refuse its first event";
  EXPECT_TRUE(lane_of_a_thread(*set, fill) == second) << "a free one with room comes before a new one";
  empty(*first);
  EXPECT_EQ(lane_of_a_thread(*set), first);
  EXPECT_EQ(count(*set), 2U);
}

TEST_F(LaneChoice, RingsThatNobodyEmptiesDoNotFillTheMemory) {
  options.mapped = false;
  options.ring_bytes = 64 * 1024;
  const auto set = LaneSet::make(options);
  for (int i = 0; i < 100; ++i) EXPECT_NE(lane_of_a_thread(*set, fill), nullptr);
  EXPECT_EQ(count(*set), 64U);
}

TEST_F(LaneChoice, NumbersThatSomebodyMadeUpAreNotCountedFrom) {
  for (const std::string number : {"4294967295", "18446744073709551615", "99999999999999999999999"}) {
    ASSERT_NO_FATAL_FAILURE(leave_ring(number));
    fs::copy_file(path(number), path("0"));
    const auto set = LaneSet::make(options);
    EXPECT_EQ(set->recovered(), 2U) << number;
    set->for_each(empty);
    // Three threads at once have three files.
    std::set<Lane*> lanes{set->mine()};
    std::jthread([&] {
      lanes.insert(set->mine());
      lanes.insert(lane_of_a_thread(*set));
    }).join();
    EXPECT_EQ(lanes.size(), 3U);
    for (Lane* const lane : lanes) EXPECT_TRUE(lane->survives());
    EXPECT_TRUE(fs::exists(path(number)) && fs::exists(path("0")) && fs::exists(path("1"))) << number;
    set->unlock_files();
    for (const char* const each : {number.c_str(), "0", "1"}) fs::remove(path(each));
  }
}

TEST_F(LaneChoice, AFileThatIsThereIsNeverTakenForANewOne) {
  const auto set = LaneSet::make(options);
  std::ofstream(path("0")) << "of somebody else";
  fs::create_directory(path("1"));
  EXPECT_TRUE(set->mine()->survives());
  EXPECT_TRUE(fs::exists(path("2")));
  EXPECT_EQ(fs::file_size(path("0")), 16U);
}

TEST_F(LaneChoice, ThreadsInPlainMemoryGetFilesOnceTheseCanBeMade) {
  const auto set = LaneSet::make(options);
  Lane* plain = nullptr;
  {
    const SmallFiles disk_is_full;
    plain = set->mine();
    EXPECT_FALSE(plain->survives());
    EXPECT_EQ(set->fallbacks(), 1U);
    for (int i = 0; i < 3; ++i) set->leave_plain_memory();
    EXPECT_EQ(set->mine(), plain);
    EXPECT_EQ(set->fallbacks(), 1U);
    EXPECT_TRUE(fs::is_empty(temp.path()));
  }
  ASSERT_TRUE(plain->push(numbered(1).packed(), 0));
  set->leave_plain_memory();
  EXPECT_EQ(set->fallbacks(), 1U) << "its event is not drained yet";
  empty(*plain);
  EXPECT_EQ(set->fallbacks(), 0U);
  EXPECT_TRUE(set->mine()->survives());
  EXPECT_EQ(count(*set), 2U);
  // However often that happens, it costs no more lanes, and is not told for each thread.
  EXPECT_TRUE(lane_of_a_thread(*set)->survives());
  errors = 0;
  for (int i = 1; i <= 10; ++i) {
    {
      const SmallFiles disk_is_full;
      lane_of_a_thread(*set, [&](const Lane& file) {
        EXPECT_TRUE(file.in_file());
        for (int thread = 0; thread < 5; ++thread) EXPECT_EQ(lane_of_a_thread(*set), plain);
      });
      EXPECT_EQ(set->fallbacks(), 1U);
      EXPECT_EQ(errors, i);
    }
    set->leave_plain_memory();
    EXPECT_EQ(set->fallbacks(), 0U);
  }
  EXPECT_EQ(count(*set), 3U);
}

TEST_F(LaneChoice, EmptyFilesOfAnotherSizeGoAndFullOnesAreOnlyDrained) {
  options.ring_bytes = 64 * 1024;
  {
    const auto set = LaneSet::make(options);
    Lane* const mine = set->mine();
    ASSERT_TRUE(mine->push(numbered(1).packed(), 0));
    (void)lane_of_a_thread(*set);
  }
  options.ring_bytes = 1 << 20;
  {
    const auto set = LaneSet::make(options);
    EXPECT_EQ(set->recovered(), 1U);
    EXPECT_FALSE(fs::exists(path("1"))) << "it was empty";
    EXPECT_GT(set->mine()->max_packed(), 60'000U) << "an entry of a sixteenth of ring_bytes finds its place";
    set->for_each(empty);
  }
  const auto set = LaneSet::make(options);
  EXPECT_FALSE(fs::exists(path("0"))) << "it is drained";
  EXPECT_EQ(set->recovered(), 0U);
}

TEST_F(LaneChoice, AFileOfAnotherSizeIsBetterThanPlainMemory) {
  options.ring_bytes = 64 * 1024;
  ASSERT_NO_FATAL_FAILURE(leave_ring("0"));
  options.ring_bytes = 1 << 20;
  const auto set = LaneSet::make(options);
  const SmallFiles disk_is_full;
  EXPECT_TRUE(set->mine()->survives());
}

}  // namespace
}  // namespace postrider::logger
