// SPDX-License-Identifier: Apache-2.0
#include "logger/suspicion.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace postrider::logger {
namespace {

struct FailedSend {
  int status;
  bool vouched = false;
};

struct Case {
  std::string name;
  std::vector<FailedSend> failures;
  bool any, strong, proven;
};

TEST(Suspicion, GrowsWithWhatMaySpeakOfTheEventAndWithNothingElse) {
  const std::vector<Case> cases{
      {"nothing has happened", {}, false, false, false},
      {"one error of the receiver's program", {{500}}, true, false, false},
      {"nobody answered", {{0}}, true, false, false},
      {"as often as is borne", {{500}, {500}, {500}}, true, false, false},
      {"once more", {{500}, {500}, {500}, {500}}, true, true, false},
      {"hung up on, and refused by a guard", {{0}, {403}, {0}, {403}}, true, true, false},
      {"the receiver's state speaks for the event", {{500}, {500}, {500}, {503}}, false, false, false},
      {"and so does the set-up", {{0}, {0}, {0}, {0}, {401}}, false, false, false},
      {"too busy", {{500}, {500}, {429}, {500}}, true, false, false},
      {"others were taken, and then not",
       {{500, true}, {500, true}, {500, true}, {503}, {500, true}},
       true,
       false,
       false},
      {"six times while others were taken", std::vector<FailedSend>(6, {500, true}), true, true, false},
      {"seven times", std::vector<FailedSend>(7, {500, true}), true, true, true},
      {"seven times, and one of them without",
       {{0, true}, {0, true}, {0, true}, {0, false}, {0, true}, {0, true}, {0, true}},
       true,
       true,
       false},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    Suspicion suspicion;
    for (const FailedSend& failure : one.failures) suspicion.failed(failure.status, failure.vouched, 0);
    EXPECT_EQ(suspicion.any(), one.any);
    EXPECT_EQ(suspicion.strong(), one.strong);
    EXPECT_EQ(suspicion.proven(), one.proven);
    suspicion.clear();
    EXPECT_FALSE(suspicion.any() || suspicion.strong() || suspicion.proven());
  }
}

TEST(Suspicion, OthersCountFromTheLastFailureOn) {
  Suspicion suspicion;
  EXPECT_FALSE(suspicion.others_taken(7)) << "nobody is suspected";
  suspicion.failed(500, false, 7);
  EXPECT_FALSE(suspicion.others_taken(7));
  EXPECT_TRUE(suspicion.others_taken(8));
  suspicion.failed(500, true, 8);
  EXPECT_FALSE(suspicion.others_taken(8)) << "that was before";
}

}  // namespace
}  // namespace postrider::logger
