// SPDX-License-Identifier: Apache-2.0
#include "postrider/append_event.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "postrider/error.hpp"
#include "support/refusal.hpp"

namespace postrider {
namespace {

using test::refusal;

TEST(AppendEvent, HasWhatItWasBuiltFrom) {
  const TimePoint time{std::chrono::seconds{1'600'000'000}};
  const AppendEvent event = AppendEvent::builder("MoneyTransferred")
                                .id(EventId("e-1"))
                                .occurred_at(time)
                                .tag("to", "2")
                                .tag("from", "1")
                                .tags({{"to", "2"}, {"currency", "EUR"}})
                                .data(R"({"amount":3})")
                                .metadata("source", "test")
                                .correlation_id("request-1")
                                .causation_id("command-1")
                                .build();
  EXPECT_EQ(event.event().id(), EventId("e-1"));
  EXPECT_EQ(event.event().type(), "MoneyTransferred");
  EXPECT_EQ(event.event().occurred_at(), time);
  EXPECT_EQ(event.event().payload(), R"({"amount":3})");
  EXPECT_EQ(event.event().headers().at("source"), "test");
  EXPECT_EQ(event.tags(), (Tags{{"currency", "EUR"}, {"from", "1"}, {"to", "2"}}));
  EXPECT_EQ(event.correlation_id(), "request-1");
  EXPECT_EQ(event.causation_id(), "command-1");
}

TEST(AppendEvent, TakesTimesOfAnyPrecision) {
  const std::chrono::sys_time<std::chrono::nanoseconds> fine{
      std::chrono::nanoseconds{1'600'000'000'000'001'999}};
  EXPECT_EQ(AppendEvent::builder("A").occurred_at(fine).build().event().occurred_at(),
            TimePoint{std::chrono::microseconds{1'600'000'000'000'001}});
  const std::chrono::sys_seconds coarse{std::chrono::seconds{1'600'000'000}};
  EXPECT_EQ(AppendEvent::builder("A").occurred_at(coarse).build().event().occurred_at(), TimePoint{coarse});
}

TEST(AppendEvent, NeedsNoData) {
  const AppendEvent event = AppendEvent::builder("Opened").build();
  EXPECT_EQ(event.event().payload(), "{}");
  EXPECT_FALSE(event.event().id().empty());
  EXPECT_TRUE(event.tags().empty());
}

TEST(AppendEvent, TakesBytes) {
  const AppendEvent event = AppendEvent::builder("Scanned").bytes(std::string("\0\xff", 2));
  EXPECT_EQ(event.event().payload_kind(), PayloadKind::bytes);
  EXPECT_EQ(event.event().payload(), std::string_view("\0\xff", 2));
}

TEST(AppendEvent, BuildersMakeALiteralList) {
  const std::vector<AppendEvent> events{AppendEvent::builder("A").tag("k", "1"),
                                        AppendEvent::builder("B").data("[]")};
  EXPECT_EQ(events.at(0).tags().at(0).value, "1");
  EXPECT_EQ(events.at(1).event().type(), "B");
}

TEST(AppendEvent, RefusesWhatIsOutOfBounds) {
  EXPECT_NE(refusal([] { (void)AppendEvent::builder("A").data("{").build(); }).find("not valid JSON"),
            std::string::npos);
  EXPECT_NE(refusal([] { (void)AppendEvent::builder("").build(); }).find("type"), std::string::npos);
  EXPECT_NE(refusal([] { (void)AppendEvent::builder("A").tag("", "1").build(); }).find("key is empty"),
            std::string::npos);
  EXPECT_NE(refusal([] { (void)AppendEvent::builder("A").data("1").bytes("1").build(); }).find("both data()"),
            std::string::npos);
  EXPECT_NE(refusal([] {
              (void)AppendEvent::builder("A").correlation_id(std::string(129, 'c')).build();
            }).find("correlation id has 129 characters"),
            std::string::npos);
  EXPECT_NE(refusal([] {
              (void)AppendEvent::builder("A").causation_id(std::string(129, 'c')).build();
            }).find("causation id has 129 characters"),
            std::string::npos);

  AppendEventBuilder many = AppendEvent::builder("A");
  for (std::size_t i = 0; i < AppendEvent::max_tags; ++i) many.tag("k" + std::to_string(i), "v");
  many.tag("k0", "v");  // a repeated tag is one tag
  EXPECT_EQ(many.build().tags().size(), AppendEvent::max_tags);
  AppendEventBuilder too_many = AppendEvent::builder("A");
  for (std::size_t i = 0; i <= AppendEvent::max_tags; ++i) too_many.tag("k" + std::to_string(i), "v");
  EXPECT_NE(refusal([&] { (void)too_many.build(); }).find("65 tags"), std::string::npos);
}

TEST(AppendEvent, ABuilderIsSpentAfterwards) {
  AppendEventBuilder builder = AppendEvent::builder("A");
  (void)builder.build();
  EXPECT_NE(refusal([&] { (void)builder.build(); }).find("builder"), std::string::npos);
}

}  // namespace
}  // namespace postrider
