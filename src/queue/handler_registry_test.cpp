// SPDX-License-Identifier: Apache-2.0
#include "queue/handler_registry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/error.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Handler handler(std::string id) {
  return {.id = std::move(id),
          .function = [](const Event&, HandlerContext&) { return EventHandledResult::success(); }};
}

std::vector<std::string> ids(const HandlerRegistry& registry, std::string_view type) {
  std::vector<std::string> found;
  for (const auto& one : *registry.find(type)) found.push_back(one->id);
  return found;
}

std::string refusal(HandlerRegistry& registry, Handler one) {
  try {
    registry.add("A", std::move(one));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "not refused";
}

TEST(HandlerRegistry, OwnTypeFirstThenAll) {
  HandlerRegistry registry;
  registry.add(std::nullopt, handler("all"));
  registry.add("A", handler("a1"));
  registry.add("A", handler("a2"));
  EXPECT_THAT(ids(registry, "A"), ElementsAre("a1", "a2", "all"));
  EXPECT_THAT(ids(registry, "B"), ElementsAre("all"));
}

TEST(HandlerRegistry, LaterOnesAreFoundToo) {
  HandlerRegistry registry;
  EXPECT_THAT(ids(registry, "A"), IsEmpty());
  registry.add("A", handler("a"));
  EXPECT_THAT(ids(registry, "A"), ElementsAre("a"));
  registry.add(std::nullopt, handler("all"));
  EXPECT_THAT(ids(registry, "A"), ElementsAre("a", "all"));
}

TEST(HandlerRegistry, ADuplicateIdIsRefusedByName) {
  HandlerRegistry registry;
  registry.add("B", handler("mail"));
  EXPECT_THAT(refusal(registry, handler("mail")), HasSubstr("'mail': a handler with this id is registered"));
}

TEST(HandlerRegistry, BadIdsAreRefused) {
  HandlerRegistry registry;
  EXPECT_THAT(refusal(registry, handler("")), HasSubstr("1 to 128 characters"));
  EXPECT_THAT(refusal(registry, handler(std::string(129, 'x'))), HasSubstr("1 to 128 characters"));
  EXPECT_THAT(refusal(registry, handler("a#b")), HasSubstr("without '#'"));
  EXPECT_THAT(refusal(registry, handler("\xff")), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal(registry, {.id = "empty"}), HasSubstr("function is empty"));
}

}  // namespace
}  // namespace postrider
