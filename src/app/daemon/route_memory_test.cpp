// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/route_memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace postrider::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Event event(const std::string& id, std::string payload = "{}") {
  return Event::builder("T").id(EventId(id)).json(std::move(payload)).build();
}

TEST(RouteMemory, KnowsWhoHasAnEventUntilItIsForgotten) {
  RouteMemory memory(10);
  EXPECT_THAT(memory.taken(event("a")), IsEmpty());
  memory.remember(event("a"), {2});
  memory.remember(event("b"), {0, 1});
  memory.remember(event("a"), {2, 3});
  EXPECT_THAT(memory.taken(event("a")), ElementsAre(2, 3));
  EXPECT_THAT(memory.taken(event("b")), ElementsAre(0, 1));
  EXPECT_EQ(memory.size(), 2U);
  memory.forget(EventId("a"));
  memory.forget(EventId("never-seen"));
  EXPECT_THAT(memory.taken(event("a")), IsEmpty());
  EXPECT_EQ(memory.size(), 1U);
}

TEST(RouteMemory, IsBoundedAndForgetsTheFirst) {
  RouteMemory memory(2);
  memory.remember(event("a"), {1});
  memory.remember(event("b"), {1});
  memory.remember(event("a"), {1, 2});
  memory.remember(event("c"), {1});
  EXPECT_THAT(memory.taken(event("a")), IsEmpty());
  EXPECT_THAT(memory.taken(event("b")), ElementsAre(1));
  EXPECT_THAT(memory.taken(event("c")), ElementsAre(1));
  EXPECT_EQ(memory.size(), 2U);
  memory.forget(EventId("b"));
  memory.remember(event("d"), {1});
  EXPECT_THAT(memory.taken(event("c")), ElementsAre(1)) << "there was a free place";
}

TEST(RouteMemory, AnEditedEventHasBeenTakenByNobody) {
  RouteMemory memory(10);
  memory.remember(event("a", "1"), {1});
  EXPECT_THAT(memory.taken(event("a", "2")), IsEmpty());
  const Event more = Event::builder("T").id(EventId("a")).header("approved", "by hand").json("1").build();
  EXPECT_THAT(memory.taken(more), IsEmpty());
  memory.remember(event("a", "2"), {2});
  EXPECT_THAT(memory.taken(event("a", "2")), ElementsAre(2));
  EXPECT_EQ(memory.size(), 1U);
}

}  // namespace
}  // namespace postrider::daemon
