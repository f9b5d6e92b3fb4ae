// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "storage/conformance/store_fixture.hpp"
#include "storage/lease_store.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LeaseVerbs : public StoreConformance {
 protected:
  LeaseStore& store() { return storage().lease_store(); }
  std::optional<Epoch> acquire(std::string_view owner, const std::vector<std::string>& dead = {}) {
    return store().acquire("leader", owner, 10s, false, dead);
  }
  static LeaseFence fence(std::string owner, int epoch) { return {"leader", std::move(owner), Epoch{epoch}}; }
};
POSTRIDER_FOR_EACH_BACKEND(LeaseVerbs);

TEST_P(LeaseVerbs, OneHolderAtATimeUntilItsTimeIsOver) {
  EXPECT_EQ(acquire("a"), Epoch{1});
  EXPECT_EQ(acquire("b"), std::nullopt);
  EXPECT_EQ(acquire("a"), std::nullopt) << "not twice either: two threads would both believe it";
  clock_.advance(9s);
  EXPECT_EQ(acquire("b"), std::nullopt);
  clock_.advance(1s);
  EXPECT_EQ(acquire("b"), Epoch{2});
  EXPECT_FALSE(store().renew(fence("a", 1), 10s, false)) << "late";
  EXPECT_FALSE(store().release(fence("a", 1)));
  ASSERT_THAT(store().list(), SizeIs(1));
  EXPECT_EQ(store().list()[0].owner, "b");
}

TEST_P(LeaseVerbs, RenewingKeepsItAlsoWhenItsTimeWasOver) {
  ASSERT_TRUE(acquire("a"));
  clock_.advance(9s);
  EXPECT_TRUE(store().renew(fence("a", 1), 10s, true));
  clock_.advance(9s);
  EXPECT_EQ(acquire("b"), std::nullopt);
  clock_.advance(9s);
  EXPECT_TRUE(store().renew(fence("a", 1), 10s, true)) << "nobody has taken it";
  EXPECT_EQ(acquire("b"), std::nullopt);
}

TEST_P(LeaseVerbs, GivenBackItIsFreeAtOnceAndTheEpochGrows) {
  ASSERT_TRUE(acquire("a"));
  EXPECT_TRUE(store().release(fence("a", 1)));
  EXPECT_FALSE(store().list()[0].held);
  EXPECT_FALSE(store().renew(fence("a", 1), 10s, false));
  EXPECT_EQ(acquire("b"), Epoch{2});
}

TEST_P(LeaseVerbs, ADeadHoldersTimeNeedNotBeWaitedFor) {
  ASSERT_TRUE(acquire("a"));
  EXPECT_EQ(acquire("b", {"x", "y"}), std::nullopt);
  EXPECT_EQ(acquire("b", {"x", "a"}), Epoch{2});
  EXPECT_EQ(store().list()[0].owner, "b");
}

TEST_P(LeaseVerbs, OfManyWhoTryOneGetsIt) {
  for (int round = 1; round <= 5; ++round) {
    std::atomic<int> got{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {
        try {
          if (acquire("node" + std::to_string(i)) == Epoch{round}) ++got;
        } catch (const Error& error) {
          EXPECT_TRUE(error.retryable()) << error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(got, 1) << "round " << round;
    clock_.advance(10s);
  }
}

TEST_P(LeaseVerbs, ListTellsWhoSinceWhenAndHowAlive) {
  const TimePoint begin = clock_.now();
  ASSERT_TRUE(store().acquire("node/a", "a", 10s, true, {}));
  ASSERT_TRUE(store().acquire("node/b", "b", 10s, false, {}));
  clock_.advance(6s);
  ASSERT_TRUE(store().renew({"node/b", "b", Epoch{1}}, 10s, false));
  clock_.advance(4s);
  const std::vector<LeaseRow> rows = store().list();
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_EQ(rows[0].name, "node/a");
  EXPECT_TRUE(rows[0].locked);
  EXPECT_FALSE(rows[0].held);
  EXPECT_EQ(rows[0].heartbeat, begin);
  EXPECT_TRUE(rows[1].held);
  EXPECT_FALSE(rows[1].locked);
  EXPECT_EQ(rows[1].since, begin);
  EXPECT_EQ(rows[1].heartbeat, begin + 6s);
  EXPECT_EQ(rows[1].epoch, Epoch{1});
}

TEST_P(LeaseVerbs, WhoIsAnnouncedLivesForThatTimeAndHoldsNothing) {
  const TimePoint begin = clock_.now();
  ASSERT_TRUE(acquire("a"));
  store().announce("standby/b", 10s);
  clock_.advance(9s);
  store().announce("standby/b", 10s);
  clock_.advance(9s);
  std::vector<LeaseRow> rows = store().list();
  ASSERT_THAT(rows, SizeIs(2));
  EXPECT_FALSE(rows[0].waits) << "a holds a lease, whether its time is over or not";
  EXPECT_EQ(rows[1].name, "standby/b");
  EXPECT_EQ(rows[1].owner, "");
  EXPECT_TRUE(rows[1].waits);
  EXPECT_FALSE(rows[1].held) << "whoever holds nothing can lead nothing";
  EXPECT_EQ(rows[1].epoch, Epoch{0});
  EXPECT_EQ(rows[1].since, begin);
  EXPECT_EQ(rows[1].heartbeat, begin + 9s);
  clock_.advance(1s);
  EXPECT_FALSE(store().list()[1].waits) << "not heard of for ten seconds";
  store().announce("standby/b", 10s);
  EXPECT_EQ(store().list()[1].since, clock_.now()) << "it was gone meanwhile";
  store().withdraw("standby/b");
  store().withdraw("standby/b");
  EXPECT_THAT(store().list(), SizeIs(1));
}

TEST_P(LeaseVerbs, AnnouncingAndWithdrawingLeaveALeaseAlone) {
  ASSERT_TRUE(acquire("a"));
  store().announce("leader", 60s);
  store().withdraw("leader");
  ASSERT_THAT(store().list(), SizeIs(1));
  EXPECT_EQ(store().list()[0].owner, "a");
  clock_.advance(10s);
  EXPECT_FALSE(store().list()[0].held) << "its own time, not the announced one";
}

TEST_P(LeaseVerbs, AStandbyIsForgottenLikeANode) {
  store().announce("standby/b", 10s);
  clock_.advance(1h);
  EXPECT_EQ(store().forget("standby/", 1h), 0U) << "over for less than that";
  clock_.advance(10s);
  EXPECT_EQ(store().forget("standby/", 1h), 1U);
}

TEST_P(LeaseVerbs, ForgetsNodesThatAreLongGoneAndNothingElse) {
  ASSERT_TRUE(store().acquire("leader", "a", 10s, false, {}));
  ASSERT_TRUE(store().acquire("node/old", "old", 10s, false, {}));
  ASSERT_TRUE(store().acquire("node/back", "back", 10s, false, {}));
  ASSERT_TRUE(store().release({"node/back", "back", Epoch{1}}));
  clock_.advance(1h);
  ASSERT_TRUE(store().acquire("node/new", "new", 10s, false, {}));
  clock_.advance(30min);
  EXPECT_EQ(store().forget("node/", 1h), 2U);
  EXPECT_THAT(store().list(), SizeIs(2)) << "leader, whose epoch must not begin again, and new";
}

TEST_P(LeaseVerbs, ALockIsFreeInTheMomentItsHolderIsGone) {
  NodeLocks* const locks = storage().node_locks();
  ASSERT_NE(locks, nullptr);
  const std::vector<std::string> nodes{"a", "b"};
  EXPECT_THAT(locks->free(nodes), ElementsAre("a", "b"));
  std::unique_ptr<NodeLocks::Held> held = locks->hold("a");
  ASSERT_NE(held, nullptr);
  EXPECT_TRUE(held->still_held());
  const auto other = database().open_another();
  EXPECT_THAT(other->node_locks()->free(nodes), ElementsAre("b"));
  EXPECT_THAT(locks->free(nodes), ElementsAre("b"));
  EXPECT_EQ(other->node_locks()->hold("a"), nullptr) << "taken";
  const std::unique_ptr<NodeLocks::Held> second = other->node_locks()->hold("b");
  EXPECT_THAT(locks->free(nodes), IsEmpty());
  held.reset();
  for (int i = 0; i < 2000 && locks->free(nodes).empty(); ++i) std::this_thread::yield();
  EXPECT_THAT(locks->free(nodes), ElementsAre("a"));
}

}  // namespace
}  // namespace postrider::conformance
