// SPDX-License-Identifier: Apache-2.0
#include "relay/topic.hpp"

#include <gtest/gtest.h>

#include "postrider/error.hpp"

namespace postrider {
namespace {

const Tags tags{{"from", "1"}, {"to", "2"}, {"wallet_id", ""}};

struct Case {
  const char* what;
  Topic topic;
  bool matches;
};

TEST(Topic, EveryConditionGivenMustHold) {
  const std::vector<Case> cases{
      {"a name alone: all events", {.name = "t"}, true},
      {"its type", {.name = "t", .event_types = {"Other", "Moved"}}, true},
      {"another type", {.name = "t", .event_types = {"Other"}}, false},
      {"all keys there", {.name = "t", .required_tags = {"wallet_id", "from"}}, true},
      {"one key missing", {.name = "t", .required_tags = {"wallet_id", "none"}}, false},
      {"a key, not the beginning of one", {.name = "t", .required_tags = {"wallet"}}, false},
      {"one of the keys", {.name = "t", .any_of_tags = {"none", "to"}}, true},
      {"none of the keys", {.name = "t", .any_of_tags = {"none", "nothing"}}, false},
      {"the very tag", {.name = "t", .exact_tags = {{"from", "1"}}}, true},
      {"another value", {.name = "t", .exact_tags = {{"from", "2"}}}, false},
      {"an empty value", {.name = "t", .exact_tags = {{"wallet_id", ""}}}, true},
      {"one tag of two", {.name = "t", .exact_tags = {{"from", "1"}, {"to", "3"}}}, false},
      {"all kinds",
       {.name = "t",
        .event_types = {"Moved"},
        .required_tags = {"from"},
        .any_of_tags = {"x", "to"},
        .exact_tags = {{"to", "2"}}},
       true},
      {"all kinds but one",
       {.name = "t",
        .event_types = {"Moved"},
        .required_tags = {"from"},
        .any_of_tags = {"x"},
        .exact_tags = {{"to", "2"}}},
       false},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(one.topic.matches("Moved", tags), one.matches) << one.what;
    if (one.matches) {
      EXPECT_TRUE(query_of(one.topic).matches("Moved", tags))
          << "what the store is asked for leaves out: " << one.what;
    }
  }
}

TEST(Topic, IsCheckedBeforeUse) {
  EXPECT_THROW(Topic{}.check(), Error);
  EXPECT_THROW((Topic{.name = std::string(129, 'x')}.check()), Error);
  EXPECT_THROW((Topic{.name = "t", .event_types = {""}}.check()), Error);
  EXPECT_THROW((Topic{.name = "t", .required_tags = {""}}.check()), Error);
  EXPECT_THROW((Topic{.name = "t", .any_of_tags = {std::string(65, 'k')}}.check()), Error);
  EXPECT_THROW((Topic{.name = "t", .exact_tags = {{"", "v"}}}.check()), Error);
  EXPECT_THROW((Topic{.name = "t", .required_tags = std::vector<std::string>(65, "k")}.check()), Error);
  EXPECT_NO_THROW((Topic{.name = "t", .required_tags = std::vector<std::string>(64, "k")}.check()));
}

}  // namespace
}  // namespace postrider
