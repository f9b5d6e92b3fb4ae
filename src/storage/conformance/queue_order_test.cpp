// SPDX-License-Identifier: Apache-2.0
// Events with an ordering key: one after the other, whoever works on them.
#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "storage/conformance/queue_fixture.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class QueueOrder : public QueueConformance {
 protected:
  /// `count` events for each of these keys, named by their key and number; an empty key: without.
  void publish_many(const std::vector<std::string>& keys, int count, const Job& job = {}) {
    std::vector<Event> events;
    std::vector<std::string_view> of;
    for (int i = 0; i < count; ++i) {
      for (const std::string& key : keys) {
        events.push_back(event_of((key.empty() ? "free" : key) + "-" + std::to_string(i), job));
        of.emplace_back(key);
      }
    }
    std::vector<NewQueueRow> rows;
    for (std::size_t i = 0; i < events.size(); ++i) {
      rows.push_back({.event = &events[i], .priority = job.priority, .ordering_key = of[i]});
    }
    Transaction tx = storage().begin();
    store().insert(tx, rows);
    tx.commit();
  }
  static std::ptrdiff_t count_ordered(const std::vector<QueuedEvent>& events) {
    return std::count_if(events.begin(), events.end(),
                         [](const QueuedEvent& one) { return !one.ordering_key.empty(); });
  }
};
POSTRIDER_FOR_EACH_BACKEND(QueueOrder);

TEST_P(QueueOrder, OnlyTheHeadOfAKey) {
  publish_all({"a", "b"}, {.key = "k"});
  publish("other", {.key = "l"});
  EXPECT_THAT(claim(), UnorderedElementsAre("a", "other"));
  EXPECT_THAT(claim({.owner = "n2"}), IsEmpty()) << "a is still in progress";
  finalize("a");
  EXPECT_THAT(claim({.owner = "n2"}), ElementsAre("b"));
}

TEST_P(QueueOrder, ARunIsTheHeadAndWhatFollowsIt) {
  publish_all({"a", "b", "c"}, {.key = "k"});
  EXPECT_THAT(claim({.run = 2}), ElementsAre("a", "b"));
  EXPECT_THAT(claim({.run = 2}), IsEmpty());
  finalize("a");
  EXPECT_THAT(claim({.run = 2}), IsEmpty()) << "the head is b now, and b is in progress";
  finalize("b");
  EXPECT_THAT(claim({.run = 2}), ElementsAre("c"));
}

TEST_P(QueueOrder, RunsOfSeveralKeysAreTogetherAndInOrder) {
  publish_many({"x", "y", "z"}, 3);
  const auto claimed = claim({.run = 3});
  ASSERT_EQ(claimed.size(), 9U);
  for (std::size_t i = 0; i < 9; i += 3) {
    const std::string key = claimed[i].substr(0, 1);
    EXPECT_THAT(std::vector(claimed.begin() + static_cast<std::ptrdiff_t>(i),
                            claimed.begin() + static_cast<std::ptrdiff_t>(i) + 3),
                ElementsAre(key + "-0", key + "-1", key + "-2"));
  }
}

TEST_P(QueueOrder, ARunFillsTheLimitWhenThereIsNothingElse) {
  publish_many({"k"}, 9);
  EXPECT_THAT(claim({.limit = 4, .run = 100}), ElementsAre("k-0", "k-1", "k-2", "k-3"));
}

TEST_P(QueueOrder, ARunEndsAtTheFirstThatIsNotAvailable) {
  publish("a", {.key = "k"});
  publish("b", {.key = "k", .deliver_in = 5s});
  publish("c", {.key = "k"});
  EXPECT_THAT(claim({.run = 3}), ElementsAre("a"));
  finalize("a");
  EXPECT_THAT(claim({.run = 3}), IsEmpty()) << "b holds c back";
  clock_.advance(5s);
  EXPECT_THAT(claim({.run = 3}), ElementsAre("b", "c"));
}

TEST_P(QueueOrder, PriorityAndTimeDoNotOvertakeWithinAKey) {
  publish("a", {.key = "k", .deliver_in = 1s});
  publish("b", {.priority = 9, .key = "k"});
  EXPECT_THAT(claim(), IsEmpty());
  clock_.advance(1s);
  EXPECT_THAT(claim({.run = 9}), ElementsAre("a", "b"));
}

TEST_P(QueueOrder, ARetryOfTheHeadHoldsItsKeyAndNoOther) {
  publish_all({"a", "b"}, {.key = "k"});
  publish_all({"x", "y"}, {.key = "l"});
  claim();
  retry("a", 5s);
  finalize("x");
  EXPECT_THAT(claim(), ElementsAre("y"));
  clock_.advance(5s - 1us);
  EXPECT_THAT(claim(), IsEmpty());
  clock_.advance(1us);
  EXPECT_THAT(claim(), ElementsAre("a"));
}

TEST_P(QueueOrder, WhatWasGivenBackGoesFirstAgain) {
  publish_all({"a", "b", "c"}, {.key = "k"});
  claim({.run = 3});
  release("a");
  EXPECT_THAT(claim({.run = 3}), ElementsAre("a")) << "b is still in progress";
  finalize("a");
  release("b");
  EXPECT_THAT(claim({.run = 3}), ElementsAre("b")) << "and so is c";
}

TEST_P(QueueOrder, AnAbandonedHeadIsTakenWithItsRun) {
  publish_all({"a", "b"}, {.key = "k"});
  claim({.run = 2});
  publish("c", {.key = "k"});
  clock_.advance(30s);
  const auto claimed = claim_events({.owner = "n2", .run = 3});
  ASSERT_EQ(names_of(claimed), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(claimed[0].attempts, 2);
  EXPECT_EQ(claimed[0].crashes, 1);
  EXPECT_EQ(claimed[1].crashes, 1);
  EXPECT_EQ(claimed[2].crashes, 0);
}

TEST_P(QueueOrder, AbandonedHeadsCountForTheirLimit) {
  publish_many({"x", "y", "z"}, 1);
  claim();
  clock_.advance(30s);
  publish_many({"new"}, 1);
  const auto claimed = claim({.suspects = 1});
  EXPECT_EQ(claimed.size(), 2U) << "one of the three, and the new one";
  EXPECT_THAT(claimed, ::testing::Contains("new-0"));
  EXPECT_THAT(claim({.suspects = 0}), IsEmpty());
  EXPECT_EQ(claim({.suspects = 9}).size(), 2U);
}

TEST_P(QueueOrder, AKeyWaitsBehindAHeadThatIsNotWanted) {
  publish("a0", {.key = "a", .type = "Yours"});
  publish("a1", {.key = "a"});
  publish("b0", {.key = "b"});
  publish("b1", {.key = "b", .type = "Yours"});
  publish("b2", {.key = "b"});
  EXPECT_THAT(claim({.run = 9, .without = {"Yours"}}), ElementsAre("b0")) << "its run ends before b1";
  EXPECT_EQ(finalize("b0"), Settled::applied);
  EXPECT_THAT(claim({.run = 9, .without = {"Yours"}}), IsEmpty());
  EXPECT_THAT(claim({.run = 9}), ElementsAre("a0", "a1", "b1", "b2"));
}

TEST_P(QueueOrder, AHeadInQuarantineDoesNotHoldItsKey) {
  const InsertedRow killer = publish("killer", {.key = "k"});
  publish("b", {.key = "k"});
  claim();
  clock_.advance(30s);
  const auto first = claim_result({.max_crashes = 1});
  EXPECT_THAT(first.quarantined, ElementsAre(killer.id));
  EXPECT_EQ(row("killer").quarantined, clock_.now());
  EXPECT_EQ(row("killer").error, "in progress when its worker died 1 times (last: n1)");
  // Whether with the same claim or with the next one.
  std::vector<std::string> others = names_of(first.events);
  for (const std::string& name : claim()) others.push_back(name);
  EXPECT_THAT(others, ElementsAre("b"));
}

TEST_P(QueueOrder, SuspectsWithoutAKeyDoNotLeaveTheRoomBehindAHeadInQuarantineEmpty) {
  publish("suspect");
  claim();
  clock_.advance(30s);
  claim();
  release("suspect");  // it has crashed once, and is free
  publish_all({"killer", "b"}, {.key = "k"});
  claim({.suspects = 0});
  clock_.advance(30s);
  publish_all({"c", "d"});
  EXPECT_EQ(claim({.limit = 3, .suspects = 1, .max_crashes = 1, .run = 2}).size(), 3U);
}

TEST_P(QueueOrder, KeysTakeTurns) {
  publish_many({"x", "y", "z"}, 4);
  std::vector<std::string> keys;
  for (int i = 0; i < 12; ++i) {
    const auto claimed = claim_events({.limit = 1});
    ASSERT_EQ(claimed.size(), 1U);
    keys.push_back(claimed[0].ordering_key);
    finalize(claimed[0].claim);
  }
  for (std::size_t i = 0; i < 12; i += 3) {
    EXPECT_EQ(std::set<std::string>({keys[i], keys[i + 1], keys[i + 2]}).size(), 3U) << "from claim " << i;
  }
}

TEST_P(QueueOrder, ABusyKeyDoesNotStarveALaterOne) {
  publish_many({"a"}, 50);
  publish("last", {.key = "z"});
  std::vector<std::string> seen;
  for (int i = 0; i < 2; ++i) {
    const auto claimed = claim_events({.limit = 5, .run = 5});
    for (const QueuedEvent& one : claimed) {
      seen.push_back(one.event->id().str());
      finalize(one.claim);
    }
  }
  EXPECT_THAT(seen, ::testing::Contains("last"));
}

TEST_P(QueueOrder, EachKindGetsHalfWhenBothHaveEnough) {
  publish_many({""}, 20, {.priority = 9});
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) keys.push_back("k" + std::to_string(i));
  publish_many(keys, 1);
  const auto claimed = claim_events({.limit = 10});
  ASSERT_EQ(claimed.size(), 10U);
  EXPECT_EQ(count_ordered(claimed), 5);
}

TEST_P(QueueOrder, WhatOneKindLeavesTheOtherTakes) {
  publish_many({""}, 2);
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) keys.push_back("k" + std::to_string(i));
  publish_many(keys, 1);
  auto claimed = claim_events({.limit = 10});
  ASSERT_EQ(claimed.size(), 10U);
  EXPECT_EQ(count_ordered(claimed), 8);
  claim_events({.limit = 11});
  publish_many({""}, 20);
  claimed = claim_events({.limit = 10});
  ASSERT_EQ(claimed.size(), 10U);
  EXPECT_EQ(count_ordered(claimed), 1);
}

TEST_P(QueueOrder, OneAtATimeNeitherKindStarves) {
  publish_many({"", "x", "y"}, 10);
  std::ptrdiff_t ordered = 0;
  for (int i = 0; i < 8; ++i) {
    const auto claimed = claim_events({.limit = 1});
    ASSERT_EQ(claimed.size(), 1U);
    ordered += count_ordered(claimed);
    finalize(claimed[0].claim);
  }
  EXPECT_EQ(ordered, 4);
}

TEST_P(QueueOrder, HeadsThatAreSetAsideTakeNoRoomFromTheKeysBehindThem) {
  for (const std::string key : {"k1", "k2", "k3", "k4", "k5"}) publish(key + "-0", {.key = key});
  ASSERT_EQ(claim({.limit = 4, .run = 1}).size(), 4U);
  clock_.advance(1h);
  // The walk begins behind the last key of the claim before: some of these come in its second lap.
  for (int lap = 0; lap < 2; ++lap) {
    const QueueClaimResult result = store().claim(request({.limit = 2, .max_crashes = 1, .run = 1}));
    EXPECT_EQ(result.quarantined.size(), lap == 0 ? 4U : 1U);
    EXPECT_EQ(result.events.size(), lap == 0 ? 1U : 0U);
    clock_.advance(1h);
  }
}

TEST_P(QueueOrder, ARunThatIsSetAsideTakesNoRoomFromTheNextKeysRun) {
  for (const char* name : {"k1-0", "k1-1"}) publish(name, {.key = "k1"});
  publish("k3-0", {.key = "k3"});  // the last to be claimed, so that the next walk begins with k1
  ASSERT_EQ(claim({.run = 2}).size(), 3U);
  for (const char* name : {"k2-0", "k2-1"}) publish(name, {.key = "k2"});
  publish_all({"f1", "f2", "f3"});
  clock_.advance(1h);
  const QueueClaimResult result = claim_result({.limit = 4, .max_crashes = 1, .run = 2});
  EXPECT_THAT(names_of(result.events), ElementsAre("k2-0", "k2-1", "f1", "f2")) << "half of them with a key";
  for (const char* name : {"k1-0", "k1-1"}) EXPECT_TRUE(row(name).quarantined.has_value()) << name;
}

TEST_P(QueueOrder, ManyKeysThatWaitHideNoneThatCanGo) {
  std::vector<std::string> keys;
  for (int i = 10'000; i < 12'500; ++i) keys.push_back("k" + std::to_string(i));
  publish_many(keys, 1, {.deliver_in = 1h});
  const auto claimed_by_and_by = [&] {
    std::vector<std::string> seen;
    for (int i = 0; i < 3; ++i) {
      for (const std::string& name : claim()) seen.push_back(name);
    }
    return seen;
  };
  publish("last", {.key = "z"});
  EXPECT_THAT(claimed_by_and_by(), ElementsAre("last"));
  publish("first", {.key = "a"});
  EXPECT_THAT(claimed_by_and_by(), ElementsAre("first"));
}

TEST_P(QueueOrder, AKeyIsNeverWorkedOnTwiceAtOnceAndKeepsItsOrder) {
  constexpr int per_key = 25;
  const std::vector<std::string> keys{"k1", "k2", "k3", "k4"};
  publish_many(keys, per_key);
  auto other = database().open_another();
  std::mutex mutex;
  std::map<std::string, std::string> busy;
  std::map<std::string, std::vector<std::string>> done;
  const auto work = [&](QueueStore& queue, const std::string& owner) {
    for (int idle = 0; idle < 5;) {
      const auto claimed = queue.claim(request({.owner = owner, .limit = 6, .run = 3})).events;
      idle = claimed.empty() ? idle + 1 : 0;
      std::vector<Settlement> results;
      for (const QueuedEvent& one : claimed) {
        const std::lock_guard lock(mutex);
        const auto [place, fresh] = busy.try_emplace(one.ordering_key, owner);
        EXPECT_EQ(place->second, owner) << "two at once on " << one.ordering_key;
        done[one.ordering_key].push_back(one.event->id().str());
        results.push_back({.claim = one.claim});
      }
      {
        const std::lock_guard lock(mutex);
        for (const QueuedEvent& one : claimed) busy.erase(one.ordering_key);
      }
      for (const Settled answer : queue.settle(results)) EXPECT_EQ(answer, Settled::applied);
    }
  };
  {
    const std::jthread first([&] { work(store(), "n1"); });
    const std::jthread second([&] { work(other->queue_store(), "n2"); });
    const std::jthread third([&] { work(store(), "n3"); });
  }
  work(store(), "n4");
  for (const std::string& key : keys) {
    std::vector<std::string> expected;
    for (int i = 0; i < per_key; ++i) expected.push_back(key + "-" + std::to_string(i));
    EXPECT_EQ(done[key], expected);
  }
}

}  // namespace
}  // namespace postrider::conformance
