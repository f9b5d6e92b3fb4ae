// SPDX-License-Identifier: Apache-2.0
#include "app/api/error_groups.hpp"

#include <gtest/gtest.h>

namespace postrider::api {
namespace {

DeadError death(const char* id, const char* error, int second, const char* type = "T") {
  return {
      .id = EventId(id), .type = type, .died_at = TimePoint{std::chrono::seconds{second}}, .error = error};
}

TEST(ErrorGroups, PatternsLeaveOutWhatDiffers) {
  EXPECT_EQ(error_pattern("order 4711 not found"), "order # not found");
  EXPECT_EQ(error_pattern("order 01JX4K2N9V-ab not found"), "order # not found");
  EXPECT_EQ(error_pattern("HTTP 503: busy"), "HTTP 503: busy");
  EXPECT_EQ(error_pattern("HTTP 5030, HTTP 40x"), "HTTP #, HTTP #") << "no status";
  EXPECT_EQ(error_pattern("http://127.0.0.1:18099/in/4711 refuses it"),
            "http://127.0.0.1:18099/in/# refuses it");
  EXPECT_EQ(error_pattern("https://"), "https://");
  EXPECT_EQ(error_pattern("no-such-host"), "no-such-host");
  EXPECT_EQ(error_pattern("Zürich #1"), "Zürich #");
  EXPECT_EQ(error_pattern(""), "");
}

TEST(ErrorGroups, TheSameErrorOfTheSameTypeIsOneGroup) {
  const std::vector<DeadError> errors{death("e4", "order 4 not found", 40), death("e3", "timeout", 30),
                                      death("e2", "order 2 not found", 20, "Other"),
                                      death("e1", "order 1 not found", 10)};
  const ErrorGroups all = group_errors(errors, 10);
  ASSERT_EQ(all.groups.size(), 3U);
  EXPECT_EQ(all.groups[0].pattern, "order # not found");
  EXPECT_EQ(all.groups[0].type, "T");
  EXPECT_EQ(all.groups[0].contains, " not found");
  EXPECT_EQ(all.groups[0].events, 2);
  EXPECT_EQ(all.groups[0].example.str(), "e4");
  EXPECT_EQ(all.groups[0].first, TimePoint{std::chrono::seconds{10}});
  EXPECT_EQ(all.groups[0].last, TimePoint{std::chrono::seconds{40}});
  EXPECT_EQ(all.others, 0);
  const ErrorGroups one = group_errors(errors, 1);
  EXPECT_EQ(one.groups.size(), 1U);
  EXPECT_EQ(one.others, 2);
}

TEST(ErrorGroups, TheFilterOfOneSelectsNoneOfAnother) {
  const ErrorGroups all = group_errors(
      {death("e3", "the receiver says to 3: no", 30), death("e2", "the receiver says to 2: too large", 20),
       death("e1", "the receiver says to 1: no", 10),
       death("e0", "the receiver says to 0: too large", 9, "Other")},
      10);
  ASSERT_EQ(all.groups.size(), 3U);
  EXPECT_EQ(all.groups[0].contains, ": no");
  EXPECT_EQ(all.groups[1].contains, "the receiver says to ") << "alone with its type";
  EXPECT_EQ(all.groups[2].contains, ": too large");
}

}  // namespace
}  // namespace postrider::api
