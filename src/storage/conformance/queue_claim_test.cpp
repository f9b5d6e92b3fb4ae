// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "storage/conformance/queue_fixture.hpp"
#include "storage/next_token.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class QueueClaim : public QueueConformance {
 protected:
  /// Claims everything and lets the leases end, as workers do that die.
  void claim_and_die(const std::string& owner = "dead", std::int32_t max_crashes = 0) {
    claim({.owner = owner, .max_crashes = max_crashes, .run = 100, .lease = 30s});
    clock_.advance(30s);
  }
};
POSTRIDER_FOR_EACH_BACKEND(QueueClaim);

TEST_P(QueueClaim, WritesWhoWorksOnItSinceWhen) {
  publish("a");
  clock_.advance(5s);
  const auto claimed = claim_events({.owner = "n7", .lease = 20s});
  ASSERT_EQ(claimed.size(), 1U);
  const QueueRow after = row("a");
  EXPECT_EQ(after.status, QueueStatus::processing);
  EXPECT_EQ(after.owner, "n7");
  EXPECT_EQ(after.lease_until, clock_.now() + 20s);
  EXPECT_EQ(after.started, clock_.now());
  EXPECT_EQ(after.attempts, 1);
  EXPECT_EQ(after.crashes, 0);
  EXPECT_EQ(after.token, 1);
  EXPECT_EQ(after.available, clock_.now() - 5s) << "its place in the order is kept";
  EXPECT_EQ(updated_at("a"), clock_.now());
  EXPECT_THAT(claim(), IsEmpty()) << "it is taken";
}

TEST_P(QueueClaim, HigherPriorityFirstThenAvailabilityThenId) {
  publish("late", {.deliver_in = 2s});
  publish("soon", {.deliver_in = 1s});
  publish("first");
  publish("second");
  publish("urgent-late", {.priority = 9, .deliver_in = 2s});
  publish("urgent", {.priority = 9});
  publish("middle", {.priority = 1});
  clock_.advance(2s);
  EXPECT_THAT(claim({.limit = 5}), ElementsAre("urgent", "urgent-late", "middle", "first", "second"));
  EXPECT_THAT(claim(), ElementsAre("soon", "late"));
}

TEST_P(QueueClaim, WhatIsNotAvailableWaitsWhateverItsPriority) {
  publish("urgent", {.priority = 9, .deliver_in = 1s});
  publish("plain");
  EXPECT_THAT(claim(), ElementsAre("plain"));
  clock_.advance(1s - 1us);
  EXPECT_THAT(claim(), IsEmpty());
  clock_.advance(1us);
  EXPECT_THAT(claim(), ElementsAre("urgent"));
}

TEST_P(QueueClaim, TakesNoMoreThanTheLimit) {
  publish_all({"a", "b", "c"});
  EXPECT_THAT(claim({.limit = 2}), ElementsAre("a", "b"));
  EXPECT_EQ(row("c").token, 0) << "left alone";
}

TEST_P(QueueClaim, ALimitOfNothingTakesNothing) {
  publish("a");
  publish("b", {.key = "k"});
  EXPECT_THAT(claim({.limit = 0}), IsEmpty());
  EXPECT_EQ(row("a").status, QueueStatus::pending);
  EXPECT_EQ(row("b").status, QueueStatus::pending);
}

TEST_P(QueueClaim, WhatComesLateWithAnEarlierPlaceIsFound) {
  publish_all({"a", "b"});
  clock_.advance(10s);
  publish("c");
  EXPECT_THAT(claim({.limit = 2}), ElementsAre("a", "b"));
  publish("before", {.deliver_in = -20s});
  EXPECT_THAT(claim({.limit = 1}), ElementsAre("before"));
  release("a");
  EXPECT_THAT(claim({.limit = 1}), ElementsAre("a"));
  EXPECT_THAT(claim(), ElementsAre("c"));
}

TEST_P(QueueClaim, AnAbandonedOneComesInItsPlaceBeforeNewerOnes) {
  publish("a");
  claim({.owner = "dead", .lease = 30s});
  clock_.advance(1s);
  publish("newer");
  clock_.advance(29s - 1us);
  EXPECT_THAT(claim({.limit = 1, .run = 1, .lease = 1us}), ElementsAre("newer")) << "not abandoned yet";
  clock_.advance(1us);
  const auto claimed = claim_events({.owner = "n2"});
  ASSERT_EQ(names_of(claimed), (std::vector<std::string>{"a", "newer"}));
  EXPECT_EQ(claimed[0].attempts, 2);
  EXPECT_EQ(claimed[0].crashes, 1);
  EXPECT_EQ(claimed[0].claim.token, Token{2});
  EXPECT_EQ(claimed[0].processing_started_at, clock_.now());
  const QueueRow after = row("a");
  EXPECT_EQ(after.owner, "n2");
  EXPECT_EQ(after.attempts, 2);
  EXPECT_EQ(after.crashes, 1);
}

TEST_P(QueueClaim, PriorityGoesBeforeAbandonment) {
  publish("a");
  claim_and_die();
  publish("urgent", {.priority = 1});
  EXPECT_THAT(claim(), ElementsAre("urgent", "a"));
}

TEST_P(QueueClaim, OnlySoManyAbandonedOnesAndTheOthersBehindThem) {
  publish_all({"a", "b", "c", "d"});
  claim_and_die();
  publish_all({"e", "f"});
  EXPECT_THAT(claim({.suspects = 2}), ElementsAre("a", "b", "e", "f"));
  EXPECT_EQ(row("c").token, 1) << "passed over";
  EXPECT_THAT(claim({.suspects = 0}), IsEmpty());
  EXPECT_THAT(claim({.suspects = 9}), ElementsAre("c", "d"));
}

TEST_P(QueueClaim, OnlyThoseThatCrashedOftenEnoughAreSuspects) {
  publish_all({"a", "b"});
  claim_and_die();
  claim_and_die();  // these two have crashed twice
  publish_all({"c", "d"});
  claim({.suspects = 0});
  clock_.advance(30s);  // and those once
  EXPECT_THAT(claim({.suspects = 0, .suspect_crashes = 2, .max_crashes = 9}), ElementsAre("c", "d"));
  EXPECT_THAT(claim({.suspects = 1, .suspect_crashes = 2, .max_crashes = 9}), ElementsAre("a"));
  EXPECT_THAT(claim({.suspects = 1, .suspect_crashes = 2, .max_crashes = 9}), ElementsAre("b"));
}

TEST_P(QueueClaim, ASuspectThatCameBackInPeaceIsStillOne) {
  publish_all({"a", "b", "c"});
  publish("k0", {.key = "k"});
  claim_and_die();
  claim();
  for (const char* name : {"a", "b"}) EXPECT_EQ(retry(name, 0s), Settled::applied);
  for (const char* name : {"c", "k0"}) EXPECT_EQ(release(name), Settled::applied);
  publish("new");
  EXPECT_THAT(claim({.suspects = 0}), ElementsAre("new"));
  EXPECT_EQ(claim({.suspects = 1}).size(), 1U);
  EXPECT_EQ(claim({.suspects = 9}).size(), 3U) << "and none of them goes into quarantine";
}

TEST_P(QueueClaim, LeavesTypesThatAreNotWanted) {
  publish("a", {.type = "Mine"});
  publish("b", {.type = "Yours"});
  publish("c", {.priority = 9, .type = "Theirs"});
  publish("d", {.type = "Min"});
  publish("e", {.type = "Mine\x01Yours"});
  EXPECT_THAT(claim({.without = {"Yours", "Theirs", "Mi", "Mine\x01"}}), ElementsAre("a", "d", "e"));
  EXPECT_EQ(row("b").token, 0) << "not touched";
  clock_.advance(30s);
  EXPECT_THAT(claim({.without = {"Yours", "Min", "Theirs"}}), ElementsAre("a", "e")) << "abandoned ones too";
  EXPECT_THAT(claim({.limit = 1}), ElementsAre("c"));
}

TEST_P(QueueClaim, CountersAtTheirEndStopNobody) {
  publish_all({"a", "b", "good"});
  claim({.limit = 2});
  const std::int64_t most = storage().kind() == BackendKind::sqlite
                                ? std::numeric_limits<std::int64_t>::max()
                                : std::numeric_limits<std::int32_t>::max();
  sql("update " + queue() + " set attempts = ?, crashes = ? where event_id <> ?", most, most, "good");
  clock_.advance(30s);
  EXPECT_THAT(claim({.max_crashes = 0}), ElementsAre("a", "b", "good"));
  EXPECT_EQ(release("a"), Settled::applied);
  clock_.advance(30s);
  sql("update " + queue() + " set crashes = ? where event_id = ?", most, "b");
  const QueueClaimResult result = claim_result({.max_crashes = 3});
  EXPECT_THAT(names_of(result.events), ElementsAre("a", "good"));
  EXPECT_EQ(result.quarantined.size(), 1U);
}

TEST_P(QueueClaim, InProgressWithoutALeaseIsAbandoned) {
  publish_all({"a", "b"});
  publish("k", {.key = "k"});
  claim();
  sql("update " + queue() + " set lease_until = null where event_id <> ?", "b");
  EXPECT_THAT(claim(), UnorderedElementsAre("a", "k"));
}

TEST_P(QueueClaim, HazardQ7_WhatKillsItsWorkersGoesToQuarantine) {
  const InsertedRow killer = publish("killer");
  publish("good");
  for (int crash = 0; crash < 3; ++crash) {
    const auto result = claim_result({.owner = "n" + std::to_string(crash), .max_crashes = 3});
    EXPECT_THAT(names_of(result.events), ::testing::Contains("killer"));
    EXPECT_THAT(result.quarantined, IsEmpty());
    if (crash == 0) finalize("good");
    clock_.advance(30s);
  }
  publish("next");
  const auto result = claim_result({.owner = "n3", .limit = 1, .max_crashes = 3});
  EXPECT_THAT(result.quarantined, ElementsAre(killer.id));
  EXPECT_THAT(names_of(result.events), ElementsAre("next")) << "it does not use up the limit";
  const QueueRow set_aside = row("killer");
  EXPECT_EQ(set_aside.quarantined, clock_.now());
  EXPECT_EQ(set_aside.status, QueueStatus::pending);
  EXPECT_EQ(set_aside.owner, "");
  EXPECT_FALSE(set_aside.lease_until.has_value());
  EXPECT_EQ(set_aside.crashes, 3);
  EXPECT_EQ(set_aside.attempts, 3) << "it was not claimed again";
  EXPECT_EQ(set_aside.token, 4) << "raised, so that whoever held it cannot write any more";
  EXPECT_EQ(set_aside.error, "in progress when its worker died 3 times (last: n2)");
  EXPECT_EQ(updated_at("killer"), clock_.now());
  EXPECT_EQ(finalize(held("killer")), Settled::stale);
  clock_.advance(1h);
  EXPECT_THAT(claim_result({.max_crashes = 3}).quarantined, IsEmpty()) << "once";
  EXPECT_EQ(row("killer").token, 4) << "never claimed";
}

TEST_P(QueueClaim, WithoutACrashLimitItComesBackForEver) {
  publish("a");
  for (int crash = 0; crash < 10; ++crash) {
    const auto claimed = claim_events({.max_crashes = 0});
    ASSERT_EQ(claimed.size(), 1U);
    EXPECT_EQ(claimed[0].crashes, crash);
    clock_.advance(30s);
  }
}

TEST_P(QueueClaim, ARetryIsNoCrash) {
  publish("a");
  claim();
  retry("a", 1s);
  clock_.advance(1h);
  const auto claimed = claim_events({.max_crashes = 1});
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(claimed[0].attempts, 2);
  EXPECT_EQ(claimed[0].crashes, 0);
}

TEST_P(QueueClaim, HazardQ1_HeartbeatsKeepOthersOff) {
  publish_all({"held", "lost"});
  claim({.owner = "n1", .lease = 30s});
  clock_.advance(20s);
  const Claim lost = held("lost");
  const std::vector<Claim> refs{held("held"), {lost.id, Token{99}}, {QueueId{4711}, Token{1}}};
  EXPECT_THAT(store().renew(refs, 30s), ElementsAre(held("held").id));
  EXPECT_EQ(row("held").lease_until, clock_.now() + 30s);
  clock_.advance(10s);
  EXPECT_THAT(claim({.owner = "n2"}), ElementsAre("lost"));
  EXPECT_THAT(store().renew({&lost, 1}, 30s), IsEmpty()) << "somebody else has it";
  EXPECT_EQ(row("lost").owner, "n2");
  clock_.advance(20s);
  EXPECT_THAT(claim({.owner = "n2"}), ElementsAre("held"));
  EXPECT_THAT(store().renew({}, 30s), IsEmpty());
}

TEST_P(QueueClaim, AnEndedLeaseThatNobodyTookIsRenewed) {
  publish("a");
  claim();
  clock_.advance(1h);
  const Claim mine = held("a");
  EXPECT_THAT(store().renew({&mine, 1}, 30s), ElementsAre(mine.id));
  EXPECT_THAT(claim(), IsEmpty());
}

TEST_P(QueueClaim, WhatWasGivenBackIsNotRenewed) {
  publish_all({"released", "retried", "finished"});
  claim();
  release("released");
  retry("retried", 0s);
  finalize("finished");
  const std::vector<Claim> refs{held("released"), held("retried"), held("finished")};
  EXPECT_THAT(store().renew(refs, 30s), IsEmpty()) << "it would be leased to nobody";
  EXPECT_THAT(claim(), ElementsAre("released", "retried"));
}

TEST_P(QueueClaim, FivePollersAndOneRowGiveOneWinner) {
  for (int round = 0; round < 5; ++round) {
    const std::string name = "e" + std::to_string(round);
    publish(name, round % 2 == 0 ? Job{} : Job{.key = "k" + name});
    std::mutex mutex;
    std::vector<std::string> winners;
    {
      auto other = database().open_another();
      std::vector<std::jthread> pollers;
      for (int i = 0; i < 5; ++i) {
        pollers.emplace_back([&, i] {
          QueueStore& queue = i % 2 == 0 ? store() : other->queue_store();
          const std::string owner = "n" + std::to_string(i);
          const auto claimed = queue.claim(request({.owner = owner, .limit = 10}));
          const std::lock_guard lock(mutex);
          for (std::size_t n = 0; n < claimed.events.size(); ++n) winners.push_back(owner);
        });
      }
    }
    ASSERT_EQ(winners.size(), 1U);
    EXPECT_EQ(row(name).owner, winners[0]);
    EXPECT_EQ(row(name).attempts, 1);
  }
}

TEST_P(QueueClaim, TwoClaimersNeverGetTheSameRow) {
  constexpr int rows = 400;
  {
    std::vector<Event> events;
    std::vector<NewQueueRow> batch;
    for (int i = 0; i < rows; ++i) events.push_back(event_of("e" + std::to_string(i)));
    for (std::size_t i = 0; i < events.size(); ++i) {
      batch.push_back({.event = &events[i], .priority = static_cast<int>(i % 3)});
    }
    Transaction tx = storage().begin();
    store().insert(tx, batch);
    tx.commit();
  }
  auto other = database().open_another();
  std::mutex mutex;
  std::multiset<std::string> seen;
  const auto work = [&](QueueStore& queue, const std::string& owner) {
    for (int idle = 0; idle < 3;) {
      const auto claimed = queue.claim(request({.owner = owner, .limit = 7})).events;
      idle = claimed.empty() ? idle + 1 : 0;
      std::vector<Settlement> results;
      for (const QueuedEvent& one : claimed) results.push_back({.claim = one.claim});
      for (const Settled answer : queue.settle(results)) EXPECT_EQ(answer, Settled::applied);
      const std::lock_guard lock(mutex);
      for (const QueuedEvent& one : claimed) seen.insert(one.event->id().str());
    }
  };
  {
    const std::jthread first([&] { work(store(), "n1"); });
    const std::jthread second([&] { work(other->queue_store(), "n2"); });
    const std::jthread third([&] { work(store(), "n3"); });
  }
  work(store(), "n4");
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(rows)) << "each exactly once";
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), static_cast<std::size_t>(rows));
  EXPECT_EQ(log_rows().size(), static_cast<std::size_t>(rows));
  EXPECT_THAT(queue_rows(), IsEmpty());
}

TEST_P(QueueClaim, ATokenThatCannotGrowDoesNotStopEveryClaim) {
  publish_all({"free", "other"});
  publish("keyed", {.key = "k"});
  sql("update " + queue() + " set token = ? where event_id <> ?", last_token, "other");
  EXPECT_THAT(claim(), UnorderedElementsAre("free", "keyed", "other"));
  EXPECT_EQ(held("free").token, Token{1}) << "it starts again";
  for (const char* name : {"free", "keyed", "other"}) EXPECT_EQ(finalize(name), Settled::applied) << name;
}

TEST_P(QueueClaim, ManyRowsThatAreSetAsideDoNotHideTheOneBehindThem) {
  std::vector<std::string> poisoned;
  for (int i = 0; i < 15; ++i) poisoned.push_back("p" + std::to_string(i));
  publish_all(poisoned);
  ASSERT_EQ(claim({.limit = 15}).size(), 15U);
  publish("good");
  clock_.advance(1h);
  const QueueClaimResult result = store().claim(request({.limit = 1, .max_crashes = 1}));
  ASSERT_EQ(result.events.size(), 1U);
  EXPECT_EQ(result.events[0].event->id().str(), "good");
  EXPECT_EQ(result.quarantined.size(), 15U);
}

TEST_P(QueueClaim, ARowWhoseTokenCannotGrowGoesToQuarantine) {
  publish("a");
  ASSERT_THAT(claim({.max_crashes = 1}), ElementsAre("a"));
  sql("update " + queue() + " set token = ?", last_token);
  clock_.advance(31s);
  EXPECT_THAT(claim({.max_crashes = 1}), IsEmpty());
  EXPECT_TRUE(row("a").quarantined.has_value());
  EXPECT_EQ(row("a").token, 1);
}

TEST_P(QueueClaim, ARowThatIsNoEventDoesNotStopTheBatch) {
  publish_all({"good1", "headers", "type", "good2"});
  sql("update " + queue() + " set headers = ? where event_id = ?", R"({"a": [1]})", "headers");
  sql("update " + queue() + " set event_type = ? where event_id = ?", "", "type");
  const auto claimed = claim_events();
  ASSERT_EQ(claimed.size(), 4U);
  for (std::size_t i = 0; i < claimed.size(); ++i) {
    const bool good = i == 0 || i == 3;
    EXPECT_EQ(claimed[i].event.has_value(), good) << i;
    EXPECT_EQ(claimed[i].decode_error.empty(), good) << claimed[i].decode_error;
    EXPECT_EQ(finalize(claimed[i].claim, QueueStatus::failed), Settled::applied);
  }
  EXPECT_THAT(queue_rows(), IsEmpty());
}

}  // namespace
}  // namespace postrider::conformance
