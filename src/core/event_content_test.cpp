// SPDX-License-Identifier: Apache-2.0
#include "core/event_content.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace postrider {
namespace {

using namespace std::chrono_literals;

Event changed(const std::string& type, const std::function<void(EventBuilder&)>& change) {
  EventBuilder builder = Event::builder(type);
  builder.id(EventId("a")).occurred_at(TimePoint{5s});
  change(builder);
  return builder.build();
}

std::size_t content(const std::string& type, const std::function<void(EventBuilder&)>& change) {
  return content_of(changed(type, change));
}

TEST(EventContent, IsAnotherForEachFieldThatReceiversSee) {
  const std::set<std::size_t> contents{
      content("T", [](EventBuilder& b) { b.json("1"); }),
      content("U", [](EventBuilder& b) { b.json("1"); }),
      content("T", [](EventBuilder& b) { b.json("2"); }),
      content("T", [](EventBuilder& b) { b.bytes("1"); }),
      content("T", [](EventBuilder& b) { b.json("1").header("h", "1"); }),
      content("T", [](EventBuilder& b) { b.json("1").occurred_at(TimePoint{6s}); }),
      content("T", [](EventBuilder& b) { b.json("1").tenant("1"); }),
      content("T", [](EventBuilder& b) { b.json("1").aggregate("A", "1"); }),
  };
  EXPECT_EQ(contents.size(), 8U);
}

TEST(EventContent, DoesNotDependOnWhatTheOutboxMayChange) {
  const std::size_t plain = content("T", [](EventBuilder& b) { b.json("1"); });
  EXPECT_EQ(plain, content("T", [](EventBuilder& b) { b.json("1").ordering_key("k"); }));
  EXPECT_EQ(plain, content("T", [](EventBuilder& b) { b.json("1").deliver_at(TimePoint{7s}); }));
}

TEST(EventContent, TwoEventsAreTheSameExactlyIfTheirContentIs) {
  const Event plain = changed("T", [](EventBuilder& b) { b.json("1"); });
  const Event copy = plain;
  EXPECT_TRUE(same_content(plain, copy));
  EXPECT_TRUE(same_content(plain, changed("T", [](EventBuilder& b) { b.json("1"); })));
  EXPECT_TRUE(same_content(plain, changed("T", [](EventBuilder& b) { b.json("1").ordering_key("k"); })));
  for (const Event& other : {changed("U", [](EventBuilder& b) { b.json("1"); }),
                             changed("T", [](EventBuilder& b) { b.json("2"); }),
                             changed("T", [](EventBuilder& b) { b.bytes("1"); }),
                             changed("T", [](EventBuilder& b) { b.json("1").header("h", "1"); }),
                             changed("T", [](EventBuilder& b) { b.json("1").occurred_at(TimePoint{6s}); }),
                             changed("T", [](EventBuilder& b) { b.json("1").tenant("1"); }),
                             changed("T", [](EventBuilder& b) { b.json("1").aggregate("A", "1"); })}) {
    EXPECT_FALSE(same_content(plain, other)) << other.type() << " " << other.payload();
  }
}

}  // namespace
}  // namespace postrider
