// SPDX-License-Identifier: Apache-2.0
#include "publishers/name_template.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/error.hpp"

namespace postrider {
namespace {

using ::testing::HasSubstr;

NameTemplate named(std::string_view text) {
  return {OptionCheck("SomeOptions"), "stream", text, 40};
}

std::string rendered(std::string_view text, std::string_view topic) {
  const Event event = Event::json("Placed", "{}");
  std::string out = "what was there before";
  named(text).render({.event = &event, .topic = topic}, out);
  return out;
}

TEST(NameTemplate, PutsValuesIntoTheirPlaces) {
  EXPECT_EQ(rendered("events", "orders"), "events");
  EXPECT_EQ(rendered("a:{topic}", "orders"), "a:orders");
  EXPECT_EQ(rendered("{type}{topic}.x", "{type}"), "Placed{type}.x") << "a value is no template";
  EXPECT_EQ(rendered("{topic}", ""), "outbox");
}

TEST(NameTemplate, LetsTheReceiverSayHowAValueIsWritten) {
  const Event event = Event::json("Placed", "{}");
  std::string out;
  named("p-{type}").render({.event = &event}, out, [](std::string& name, std::string_view value) {
    name += value.substr(0, 1);
  });
  EXPECT_EQ(out, "p-P");
}

TEST(NameTemplate, RefusesOtherBraces) {
  for (const char* text : {"", "{", "}", "{topics}", "{{topic}}", "{topic", "{topic}}"}) {
    EXPECT_THROW(named(text), Error) << text;
  }
  EXPECT_THROW(named(std::string(41, 'x')), Error);
  try {
    (void)named("x{tpye}");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("SomeOptions::stream = 'x{tpye}'"));
  }
}

}  // namespace
}  // namespace postrider
