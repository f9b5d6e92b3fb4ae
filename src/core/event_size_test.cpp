// SPDX-License-Identifier: Apache-2.0
#include "core/event_size.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace postrider {
namespace {

TEST(EventSize, CountsEverythingThatIsAsLongAsSomebodyMadeIt) {
  const auto plain = [] { return std::move(Event::builder("T").id(EventId("a"))); };
  EXPECT_EQ(size_of(plain().bytes(std::string(1000, 'x')).build()), 1002U);
  EXPECT_EQ(size_of(plain().json("[]").tenant("12345").build()), 9U);
  EXPECT_EQ(size_of(plain().json("[]").aggregate("12", "345").build()), 9U);
  EXPECT_EQ(size_of(plain().json("[]").ordering_key("123").build()), 7U);
  EXPECT_EQ(size_of(plain().json("[]").header("h", "v").build()), 4U + std::string(R"({"h":"v"})").size());
}

}  // namespace
}  // namespace postrider
