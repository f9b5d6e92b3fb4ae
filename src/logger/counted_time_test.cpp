// SPDX-License-Identifier: Apache-2.0
#include "logger/counted_time.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

namespace postrider::logger {
namespace {

constexpr std::int64_t microsecond = 1'000;
constexpr std::int64_t millisecond = 1'000'000;
constexpr std::int64_t second = 1'000'000'000;

/// Three ticks for a nanosecond. Each look at the clock is counted, and takes its time.
struct ManualTime {
  static inline std::uint64_t counter = 0;
  static inline std::int64_t wall = 0;
  static inline std::uint64_t look_takes = 60;
  static inline int looks = 0;

  static std::uint64_t ticks() noexcept { return counter; }
  static std::int64_t nanoseconds() noexcept {
    ++looks;
    counter += look_takes;
    return wall;
  }
  static void pass(std::int64_t time) noexcept {
    counter += static_cast<std::uint64_t>(3 * time);
    wall += time;
  }
};

class CountedTimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ManualTime::counter = 7'000'000'000'000;
    ManualTime::wall = 1'780'000'000 * second;
    ManualTime::look_takes = 60;
    learn();
  }
  /// How fast the counter runs.
  void learn() {
    for (int i = 0; i < 40; ++i) {
      ManualTime::pass(millisecond);
      (void)time.now();
    }
    ManualTime::looks = 0;
  }
  void expect_right(std::int64_t within = 1) {
    EXPECT_LE(std::abs(time.now() - ManualTime::wall / 1000), within);
  }

  CountedTime<ManualTime> time;
};

TEST_F(CountedTimeTest, LooksAtTheClockOnceInAMillisecond) {
  for (int i = 0; i < 10'000; ++i) {
    ManualTime::pass(microsecond);
    expect_right();
  }
  EXPECT_GE(ManualTime::looks, 9);
  EXPECT_LE(ManualTime::looks, 12);
}

TEST_F(CountedTimeTest, IsTheClocksOwnBeforeTheCounterIsKnown) {
  CountedTime<ManualTime> fresh;
  for (int i = 0; i < 20; ++i) {
    ManualTime::pass(100 * microsecond);
    EXPECT_EQ(fresh.now(), ManualTime::wall / 1000);
  }
  EXPECT_EQ(ManualTime::looks, 20);
}

TEST_F(CountedTimeTest, FollowsAClockThatIsSetWithinAMillisecond) {
  for (const std::int64_t step : {3600 * second, -7200 * second, 50 * millisecond, -50 * millisecond}) {
    ManualTime::wall += step;
    ManualTime::pass(millisecond + microsecond);
    expect_right(0);
    for (int i = 0; i < 100; ++i) {
      ManualTime::pass(millisecond / 4);
      // What is measured across the step is never believed: it would be off by five milliseconds in each.
      expect_right();
    }
  }
}

TEST_F(CountedTimeTest, ACounterThatRunsOtherwiseIsLearntAnew) {
  for (int i = 0; i < 200; ++i) {
    ManualTime::counter += 3 * millisecond;  // twice as fast from here on
    ManualTime::pass(millisecond);
    if (i > 0) expect_right();
  }
  ManualTime::looks = 0;
  for (int i = 0; i < 100; ++i) {
    ManualTime::counter += 3 * microsecond;
    ManualTime::pass(microsecond);
    expect_right();
  }
  EXPECT_LE(ManualTime::looks, 1);
}

TEST_F(CountedTimeTest, NothingIsMeasuredByALookThatWasInterrupted) {
  ManualTime::pass(2 * millisecond);
  ManualTime::look_takes = 3 * 20 * millisecond;  // the thread had to wait between the two readings
  (void)time.now();
  ManualTime::look_takes = 60;
  ManualTime::wall += 20 * millisecond;
  EXPECT_EQ(time.now(), ManualTime::wall / 1000);
  for (int i = 0; i < 1000; ++i) {
    ManualTime::pass(50 * microsecond);
    expect_right();
  }
}

TEST_F(CountedTimeTest, AThreadThatLogsSeldomGetsTheClocksOwnTime) {
  for (int i = 0; i < 10; ++i) {
    ManualTime::pass(5 * second);
    expect_right(0);
  }
  EXPECT_EQ(ManualTime::looks, 10);
}

TEST(ProcessorTimeTest, KeepsToTheClockOfThisMachine) {
  if (!ProcessorTime::is_even()) GTEST_SKIP() << "the kernel does not tell the time by the counter here";
  CountedTime<ProcessorTime> time;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds{200};
  while (std::chrono::steady_clock::now() < end) {
    const std::int64_t before = ProcessorTime::nanoseconds() / 1000;
    const std::int64_t told = time.now();
    const std::int64_t after = ProcessorTime::nanoseconds() / 1000;
    ASSERT_GE(told, before - 100);
    ASSERT_LE(told, after + 100);
  }
}

}  // namespace
}  // namespace postrider::logger
