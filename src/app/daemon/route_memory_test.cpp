// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/route_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Event event(const std::string& id, std::string payload = "{}") {
  return Event::builder("T").id(EventId(id)).occurred_at(TimePoint{}).json(std::move(payload)).build();
}

TEST(RouteMemory, KnowsWhoHasAnEventUntilItIsForgotten) {
  RouteMemory memory(10);
  EXPECT_THAT(memory.taken(event("a"), 0), IsEmpty());
  memory.remember(event("a"), 0, {2});
  memory.remember(event("b"), 0, {0, 1});
  memory.remember(event("a"), 0, {2, 3});
  EXPECT_THAT(memory.taken(event("a"), 0), ElementsAre(2, 3));
  EXPECT_THAT(memory.taken(event("b"), 0), ElementsAre(0, 1));
  EXPECT_EQ(memory.size(), 2U);
  memory.forget(EventId("a"));
  memory.forget(EventId("never-seen"));
  EXPECT_THAT(memory.taken(event("a"), 0), IsEmpty());
  EXPECT_EQ(memory.size(), 1U);
}

TEST(RouteMemory, IsBoundedAndForgetsTheFirst) {
  RouteMemory memory(2);
  memory.remember(event("a"), 0, {1});
  memory.remember(event("b"), 0, {1});
  memory.remember(event("a"), 0, {1, 2});
  memory.remember(event("c"), 0, {1});
  EXPECT_THAT(memory.taken(event("a"), 0), IsEmpty());
  EXPECT_THAT(memory.taken(event("b"), 0), ElementsAre(1));
  EXPECT_THAT(memory.taken(event("c"), 0), ElementsAre(1));
  EXPECT_EQ(memory.size(), 2U);
  memory.forget(EventId("b"));
  memory.remember(event("d"), 0, {1});
  EXPECT_THAT(memory.taken(event("c"), 0), ElementsAre(1)) << "there was a free place";
}

TEST(RouteMemory, AnEditedEventHasBeenTakenByNobody) {
  RouteMemory memory(10);
  memory.remember(event("a", "1"), 0, {1});
  EXPECT_THAT(memory.taken(event("a", "2"), 0), IsEmpty());
  const Event more = Event::builder("T")
                         .id(EventId("a"))
                         .occurred_at(TimePoint{})
                         .header("approved", "by hand")
                         .json("1")
                         .build();
  EXPECT_THAT(memory.taken(more, 0), IsEmpty());
  memory.remember(event("a", "2"), 0, {2});
  EXPECT_THAT(memory.taken(event("a", "2"), 0), ElementsAre(2));
  EXPECT_EQ(memory.size(), 1U);
}

TEST(RouteMemory, AReplayedEventHasBeenTakenByNobody) {
  RouteMemory memory(10);
  memory.remember(event("a"), 1, {1});
  EXPECT_THAT(memory.taken(event("a"), 2), IsEmpty());
  memory.remember(event("a"), 2, {2});
  EXPECT_THAT(memory.taken(event("a"), 2), ElementsAre(2));
  EXPECT_THAT(memory.taken(event("a"), 1), IsEmpty());
  EXPECT_EQ(memory.size(), 1U);
}

TEST(RouteMemory, AnIdThatIsPublishedAgainHasBeenTakenByNobody) {
  RouteMemory memory(10);
  memory.remember(event("a"), 0, {1});
  EventBuilder later = Event::builder("T");
  later.id(EventId("a")).occurred_at(TimePoint{Duration{1}}).json("{}");
  EXPECT_THAT(memory.taken(later.build(), 0), IsEmpty());
  EventBuilder other = Event::builder("Other");
  other.id(EventId("a")).occurred_at(TimePoint{}).json("{}");
  EXPECT_THAT(memory.taken(other.build(), 0), IsEmpty());
  EXPECT_THAT(memory.taken(event("a"), 0), ElementsAre(1));
}

}  // namespace
}  // namespace postrider::daemon
