// SPDX-License-Identifier: Apache-2.0
#include "outbox/key_lanes.hpp"

#include <gtest/gtest.h>

namespace postrider {
namespace {

OutboxItem event(const char* id, const char* key = "k") {
  OutboxItem queued;
  queued.event = Event::builder("T").id(EventId{id}).json("{}").build();
  queued.ordering_key = key;
  return queued;
}

TEST(KeyLanes, OneOfAKeyRunsTheOthersWait) {
  KeyLanes lanes;
  OutboxItem a = event("a");
  OutboxItem b = event("b");
  OutboxItem other = event("o", "other");
  EXPECT_EQ(lanes.arrive(a), KeyLanes::Arrival::runs);
  EXPECT_EQ(lanes.arrive(b), KeyLanes::Arrival::waits);
  EXPECT_EQ(lanes.arrive(other), KeyLanes::Arrival::runs);

  KeyLanes::Ended ended = lanes.ended(a, true);
  ASSERT_TRUE(ended.next);
  EXPECT_EQ(ended.next->id().view(), "b");
  EXPECT_TRUE(ended.given_back.empty());
}

TEST(KeyLanes, ALaneLastsUntilEverythingIsFlushed) {
  KeyLanes lanes;
  OutboxItem a = event("a");
  OutboxItem b = event("b");
  EXPECT_EQ(lanes.arrive(a), KeyLanes::Arrival::runs);
  EXPECT_FALSE(lanes.ended(a, true).next);
  EXPECT_EQ(lanes.finished("k"), std::unordered_set<EventId>{EventId{"a"}});
  EXPECT_EQ(lanes.arrive(b), KeyLanes::Arrival::runs);
  EXPECT_FALSE(lanes.flushed("k", EventId{"a"}));
  EXPECT_TRUE(lanes.finished("k").empty());
  EXPECT_FALSE(lanes.ended(b, true).next);
  EXPECT_TRUE(lanes.flushed("k", EventId{"b"}));
  EXPECT_EQ(lanes.size(), 0U);
}

TEST(KeyLanes, AFailureGivesBackThoseBehindIt) {
  KeyLanes lanes;
  OutboxItem a = event("a");
  OutboxItem b = event("b");
  OutboxItem c = event("c");
  OutboxItem late = event("d");
  EXPECT_EQ(lanes.arrive(a), KeyLanes::Arrival::runs);
  EXPECT_EQ(lanes.arrive(b), KeyLanes::Arrival::waits);
  EXPECT_EQ(lanes.arrive(c), KeyLanes::Arrival::waits);
  const KeyLanes::Ended ended = lanes.ended(a, false);
  EXPECT_FALSE(ended.next);
  ASSERT_EQ(ended.given_back.size(), 2U);
  EXPECT_EQ(ended.given_back[0].id().view(), "b");
  EXPECT_EQ(ended.given_back[1].id().view(), "c");

  // Nobody overtakes while the failure is on its way to the database.
  EXPECT_EQ(lanes.arrive(late), KeyLanes::Arrival::turned_away);
  EXPECT_TRUE(late.event);
  EXPECT_FALSE(lanes.flushed("k", EventId{"b"}));
  EXPECT_FALSE(lanes.flushed("k", EventId{"c"}));
  EXPECT_FALSE(lanes.flushed("k", EventId{"a"})) << "a broken lane's key must not be continued at once";
  EXPECT_EQ(lanes.size(), 0U);
  EXPECT_EQ(lanes.arrive(late), KeyLanes::Arrival::runs);
}

TEST(KeyLanes, ForgetsKeysThatNobodyUses) {
  KeyLanes lanes;
  for (int i = 0; i < 100; ++i) {
    OutboxItem one = event("x", ("key" + std::to_string(i)).c_str());
    EXPECT_EQ(lanes.arrive(one), KeyLanes::Arrival::runs);
    lanes.ended(one, true);
    EXPECT_TRUE(lanes.flushed(one.ordering_key, one.id()));
  }
  EXPECT_EQ(lanes.size(), 0U);
}

}  // namespace
}  // namespace postrider
