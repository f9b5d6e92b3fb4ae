// SPDX-License-Identifier: Apache-2.0
#include "core/rfc3339.hpp"

#include <gtest/gtest.h>

namespace postrider {
namespace {

std::string back(std::string_view text) {
  const std::optional<TimePoint> time = parse_time(text);
  return time.has_value() ? format_time(*time) : "none";
}

TEST(Rfc3339, TimesComeBackInUtc) {
  EXPECT_EQ(back("2026-06-01T10:15:30.123Z"), "2026-06-01T10:15:30.123Z");
  EXPECT_EQ(back("2026-06-01T10:15:30Z"), "2026-06-01T10:15:30Z");
  EXPECT_EQ(back("2026-06-01t10:15:30.000001z"), "2026-06-01T10:15:30.000001Z");
  EXPECT_EQ(back("2026-06-01 10:15:30.5+02:00"), "2026-06-01T08:15:30.500Z");
  EXPECT_EQ(back("2026-01-01T00:30:00-01:30"), "2026-01-01T02:00:00Z");
  EXPECT_EQ(back("2026-06-01T10:15:30.123456789Z"), "2026-06-01T10:15:30.123456Z") << "cut, not rounded";
  EXPECT_EQ(back("2024-02-29T23:59:60Z"), "2024-02-29T23:59:59Z") << "a leap second";
  EXPECT_EQ(back("1000-01-01T00:00:00Z"), "1000-01-01T00:00:00Z");
  EXPECT_EQ(back("9999-12-31T23:59:59.999999Z"), "9999-12-31T23:59:59.999999Z");
  EXPECT_EQ(back("1969-12-31T23:59:59.999Z"), "1969-12-31T23:59:59.999Z") << "before 1970";
}

TEST(Rfc3339, WhatIsNoTimeIsRefused) {
  for (const char* text : {"",
                           "2026",
                           "2026-06-01",
                           "2026-06-01T10:15:30",
                           "2026-06-01T10:15Z",
                           "2026-13-01T10:15:30Z",
                           "2025-02-29T10:15:30Z",
                           "2026-06-31T10:15:30Z",
                           "2026-06-01T24:00:00Z",
                           "2026-06-01T10:60:30Z",
                           "2026-06-01T10:15:61Z",
                           "2026-06-01T10:15:30.Z",
                           "2026-06-01T10:15:30.1234567890Z",
                           "2026-06-01T10:15:30+0200",
                           "2026-06-01T10:15:30+24:00",
                           "2026-06-01T10:15:30Z ",
                           " 2026-06-01T10:15:30Z",
                           "2026-06-01T10:15:30ZZ",
                           "+2026-06-01T10:15:30Z",
                           "0999-12-31T23:59:59Z",
                           "9999-12-31T23:59:59-00:01",
                           "1000-01-01T00:00:00+00:01",
                           "1780308930",
                           "now"}) {
    EXPECT_FALSE(parse_time(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace postrider
