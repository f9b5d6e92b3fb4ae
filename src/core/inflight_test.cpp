// SPDX-License-Identifier: Apache-2.0
#include "core/inflight.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace postrider {
namespace {

using namespace std::chrono_literals;
using Hold = InFlightTracker::Hold;

TEST(InFlightTracker, HoldsAnEventOnce) {
  InFlightTracker held;
  const EventId id("a");
  EXPECT_FALSE(held.contains(id));
  EXPECT_TRUE(held.try_acquire(id, {1, {}}));
  EXPECT_FALSE(held.try_acquire(id, {1, {}}));
  EXPECT_TRUE(held.try_acquire(EventId("b"), {1, {}}));
  EXPECT_EQ(held.size(), 2U);
  held.release(id);
  EXPECT_FALSE(held.contains(id));
  EXPECT_FALSE(held.find(id).has_value());
  EXPECT_TRUE(held.try_acquire(id, {2, {}}));
  held.release(EventId("never-held"));
  EXPECT_EQ(held.size(), 2U);
}

TEST(InFlightTracker, KeepsWhatIsHeldAndReturnsItOnce) {
  InFlightTracker held;
  const EventId id("a");
  const Event event = Event::json("T", "1");
  ASSERT_TRUE(held.try_acquire(id, {1, {}}, {event, 7, Source::cold}));
  ASSERT_FALSE(held.try_acquire(id, {2, {}}, {Event::json("T", "2"), 8, Source::hot}));
  held.take_over(id, {2, {}});
  EXPECT_EQ(held.event_of(id)->payload().data(), event.payload().data());
  const auto cargo = held.release(id);
  ASSERT_TRUE(cargo);
  EXPECT_EQ(cargo->event->payload(), "1");
  EXPECT_EQ(cargo->bytes, 7U);
  EXPECT_EQ(cargo->source, Source::cold);
  EXPECT_FALSE(held.release(id));
  EXPECT_FALSE(held.event_of(id));
}

TEST(InFlightTracker, ANewerTokenTakesOverAndIsStillRefused) {
  ManualClock clock;
  InFlightTracker held(clock);
  const EventId id("a");
  const SteadyPoint end = clock.steady_now() + 30s;
  ASSERT_TRUE(held.try_acquire(id, {5, end}));
  EXPECT_FALSE(held.try_acquire(id, {7, end + 1s}));
  EXPECT_EQ(held.find(id)->token, 5) << "whether it is the same is not for the tracker to say";
  held.take_over(id, {7, end + 1s});
  EXPECT_EQ(held.find(id)->token, 7);
  EXPECT_EQ(held.find(id)->lease_end, end + 1s);
  held.take_over(id, {6, end + 9s});
  held.take_over(id, {7, end + 9s});
  held.take_over(EventId("never-held"), {7, end + 9s});
  EXPECT_EQ(held.find(id)->token, 7) << "an older token replaced a newer one";
  EXPECT_EQ(held.find(id)->lease_end, end + 1s);
  EXPECT_EQ(held.size(), 1U);
}

TEST(InFlightTracker, WhatIsLostStaysHeldAndIsNotRenewed) {
  ManualClock clock;
  InFlightTracker held(clock);
  const EventId id("a");
  const SteadyPoint end = clock.steady_now() + 30s;
  ASSERT_TRUE(held.try_acquire(id, {5, end}));
  EXPECT_FALSE(held.find(id)->lost);
  held.lose(id);
  held.lose(EventId("never-held"));
  EXPECT_TRUE(held.find(id)->lost);
  EXPECT_FALSE(held.try_acquire(id, {7, end}));
  held.take_over(id, {7, end + 9s});
  EXPECT_EQ(held.find(id)->token, 5);
  EXPECT_TRUE(held.expiring_before(end + 1s).empty());
  held.release(id);
  ASSERT_TRUE(held.try_acquire(id, {7, end}));
  EXPECT_FALSE(held.find(id)->lost);
}

TEST(InFlightTracker, AfterItsTtlAnEntryGivesWay) {
  ManualClock clock;
  InFlightTracker held(clock, 10s);
  const EventId id("a");
  ASSERT_TRUE(held.try_acquire(id, {5, {}}));
  clock.advance(10s - 1us);
  EXPECT_FALSE(held.try_acquire(id, {5, {}}));
  clock.advance(1us);
  EXPECT_TRUE(held.contains(id)) << "it counts until somebody takes its place";
  EXPECT_TRUE(held.try_acquire(id, {6, {}}));
  EXPECT_EQ(held.find(id)->token, 6);
  clock.advance(9s);
  EXPECT_FALSE(held.try_acquire(id, {6, {}})) << "the time counts from the new entry on";
}

TEST(InFlightTracker, WithoutATtlAnEntryStays) {
  ManualClock clock;
  InFlightTracker held(clock);
  ASSERT_TRUE(held.try_acquire(EventId("a"), {1, {}}));
  clock.advance(24h * 365);
  EXPECT_FALSE(held.try_acquire(EventId("a"), {1, {}}));
}

TEST(InFlightTracker, TheWallClockDoesNotMatter) {
  ManualClock clock;
  InFlightTracker held(clock, 10s);
  ASSERT_TRUE(held.try_acquire(EventId("a"), {1, {}}));
  clock.set_wall(clock.now() + 24h);
  EXPECT_FALSE(held.try_acquire(EventId("a"), {1, {}}));
}

TEST(InFlightTracker, FindsLeasesThatEndSoonAndExtendsThem) {
  ManualClock clock;
  InFlightTracker held(clock);
  const SteadyPoint now = clock.steady_now();
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(held.try_acquire(EventId("e" + std::to_string(i)), {i, now + i * 1s}));
  auto soon = held.expiring_before(now + 3s);
  std::sort(soon.begin(), soon.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  ASSERT_EQ(soon.size(), 3U) << "the one that ends at that very time is not before it";
  EXPECT_EQ(soon[2].id.view(), "e2");
  EXPECT_EQ(soon[2].hold.token, 2);
  EXPECT_EQ(soon[2].hold.lease_end, now + 2s);

  held.extend(EventId("e0"), 0, now + 1h);
  held.extend(EventId("e1"), 99, now + 1h);  // the token has changed meanwhile
  held.extend(EventId("not-held"), 1, now + 1h);
  EXPECT_EQ(held.find(EventId("e0"))->lease_end, now + 1h);
  EXPECT_EQ(held.find(EventId("e1"))->lease_end, now + 1s);
  EXPECT_EQ(held.size(), 100U);
}

TEST(InFlightTracker, OfManyThreadsOneGetsTheEvent) {
  InFlightTracker held;
  constexpr int events = 200;
  std::array<std::atomic<int>, events> owners{};
  std::atomic<int> overlaps{0};
  std::vector<std::jthread> pool;
  for (int t = 0; t < 4; ++t) {
    pool.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        for (int e = 0; e < events; ++e) {
          const EventId id("e" + std::to_string(e));
          if (!held.try_acquire(id, {round, {}})) continue;
          auto& owner = owners[static_cast<std::size_t>(e)];
          if (++owner != 1) ++overlaps;
          --owner;
          held.release(id);
        }
      }
    });
  }
  pool.clear();
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(held.size(), 0U);
}

}  // namespace
}  // namespace postrider
