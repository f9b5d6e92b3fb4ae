// SPDX-License-Identifier: Apache-2.0
#include "postrider/clock.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "postrider/error.hpp"
#include "postrider/testing.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;

struct Bed {
  Mutex mutex;
  CondVar condition;
};

void sleep_in(Bed& bed, Clock& clock, SteadyPoint deadline) {
  const MutexLock lock(bed.mutex);
  while (clock.steady_now() < deadline) clock.wait_until(bed.condition, bed.mutex, deadline);
}

/// Sleeps on `clock` until `deadline`, with a mutex and a condition that are gone right afterwards.
void sleep_until(Clock& clock, SteadyPoint deadline) {
  const auto bed = std::make_unique<Bed>();
  sleep_in(*bed, clock, deadline);
}

TEST(SystemClock, TellsTheTimeAndWaits) {
  Clock& clock = Clock::system();
  EXPECT_EQ(&clock, &Clock::system());
  const auto wall = std::chrono::system_clock::now();
  EXPECT_LT(std::chrono::abs(clock.now() - wall), 1min);
  const SteadyPoint deadline = clock.steady_now() + 1ms;
  sleep_until(clock, deadline);
  EXPECT_GE(clock.steady_now(), deadline);
}

TEST(ManualClock, MovesOnlyWhenTold) {
  ManualClock clock;
  const TimePoint wall = clock.now();
  const SteadyPoint steady = clock.steady_now();
  EXPECT_EQ(wall, TimePoint{1'700'000'000s});
  clock.advance(5s);
  EXPECT_EQ(clock.now(), wall + 5s);
  EXPECT_EQ(clock.steady_now(), steady + 5s);
  clock.set_wall(TimePoint{1s});
  EXPECT_EQ(clock.now(), TimePoint{1s});
  EXPECT_EQ(clock.steady_now(), steady + 5s) << "steady time does not follow the wall clock";
}

TEST(ManualClock, RefusesToGoBack) {
  ManualClock clock;
  try {
    clock.advance(-1us);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "postrider: cannot advance a clock by -1 microseconds: steady time never goes backwards. Hint: "
        "set_wall() moves the wall clock either way");
  }
}

TEST(ManualClock, DoesNotSleepWhenTheDeadlineHasCome) {
  ManualClock clock;
  Mutex mutex;
  CondVar condition;
  const MutexLock lock(mutex);
  clock.wait_until(condition, mutex, clock.steady_now());
  clock.wait_until(condition, mutex, clock.steady_now() - 1h);
  EXPECT_EQ(clock.waiters(), 0U);
}

TEST(ManualClock, AdvanceWakesThoseWhoseDeadlineHasComeAndNoOthers) {
  ManualClock clock;
  const SteadyPoint start = clock.steady_now();
  testing::Signal early;
  testing::Signal late;
  std::jthread first([&] {
    sleep_until(clock, start + 1s);
    early.set();
  });
  std::jthread second([&] {
    sleep_until(clock, start + 2s);
    late.set();
  });
  ASSERT_TRUE(clock.await_waiters(2));
  clock.advance(999ms);
  EXPECT_EQ(clock.waiters(), 2U);
  clock.advance(1ms);
  EXPECT_EQ(clock.waiters(), 1U) << "whoever is due no longer counts, awake or not";
  EXPECT_TRUE(early.await());
  EXPECT_FALSE(late.is_set());
  clock.advance(1h);
  EXPECT_TRUE(late.await());
}

TEST(ManualClock, ANotificationWakesWithoutTime) {
  ManualClock clock;
  Mutex mutex;
  CondVar condition;
  bool ready = false;
  std::jthread waiter([&] {
    const MutexLock lock(mutex);
    while (!ready) clock.wait_until(condition, mutex, clock.steady_now() + 1h);
  });
  ASSERT_TRUE(clock.await_waiters(1));
  {
    const MutexLock lock(mutex);
    ready = true;
  }
  condition.notify_all();
  waiter.join();
  EXPECT_EQ(clock.waiters(), 0U);
}

TEST(ManualClock, AwaitWaitersGivesUp) {
  const ManualClock clock;
  EXPECT_FALSE(clock.await_waiters(1, 1ms));
  EXPECT_TRUE(clock.await_waiters(0, 0ms));
}

// Waiters come and go with short-lived mutexes and conditions while two threads advance: under the sanitizers
// this finds a notification to a condition that is gone, without them it hangs when a wake-up is lost.
TEST(ManualClock, NoWakeUpIsLostAndNoneGoesToADeadCondition) {
  ManualClock clock;
  constexpr int sleepers = 6;
  constexpr int naps = 400;
  std::atomic<int> running{sleepers};
  {
    std::vector<std::jthread> pool;
    for (int s = 0; s < sleepers; ++s) {
      pool.emplace_back([&, s] {
        for (int i = 0; i < naps; ++i) sleep_until(clock, clock.steady_now() + Duration{1 + (i * 7 + s) % 5});
        --running;
      });
    }
    for (int a = 0; a < 2; ++a) {
      pool.emplace_back([&] {
        while (running > 0) {
          clock.advance(1us);
          std::this_thread::yield();
        }
      });
    }
  }
  EXPECT_EQ(clock.waiters(), 0U);
}

// Two sleepers in one bed: the notification for the first wakes the second too, which must not leave with bed
// and all before its own notification has come.
TEST(ManualClock, WhoWokeByAnothersNotificationWaitsForItsOwn) {
  ManualClock clock;
  for (int i = 0; i < 300; ++i) {
    const SteadyPoint deadline = clock.steady_now() + 1us;
    auto bed = std::make_shared<Bed>();
    std::jthread first([&clock, bed, deadline] { sleep_in(*bed, clock, deadline); });
    std::jthread second([&clock, bed, deadline] { sleep_in(*bed, clock, deadline); });
    bed.reset();
    ASSERT_TRUE(clock.await_waiters(2));
    clock.advance(1us);
  }
}

// The same, one advance per nap: had the sleeper missed it, nobody would wake it again.
TEST(ManualClock, OneAdvanceIsEnough) {
  ManualClock clock;
  constexpr int naps = 2000;
  std::atomic<int> woken{0};
  const SteadyPoint start = clock.steady_now();
  std::jthread sleeper([&] {
    for (int i = 1; i <= naps; ++i) {
      sleep_until(clock, start + Duration{i});
      woken = i;
    }
  });
  for (int i = 1; i <= naps; ++i) {
    // Every other time without waiting for the sleeper to be asleep: then the two race.
    if (i % 2 == 0) {
      ASSERT_TRUE(clock.await_waiters(1));
    }
    clock.advance(1us);
  }
  sleeper.join();
  EXPECT_EQ(woken, naps);
}

}  // namespace
}  // namespace postrider
