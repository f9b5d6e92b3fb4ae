// SPDX-License-Identifier: Apache-2.0
#include "core/age.hpp"

#include <gtest/gtest.h>

#include "postrider/error.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;

TEST(ParseAge, KnowsItsUnits) {
  EXPECT_EQ(parse_age("--x", "90d"), 24h * 90);
  EXPECT_EQ(parse_age("--x", "2w"), 24h * 14);
  EXPECT_EQ(parse_age("--x", "12h"), 12h);
  EXPECT_EQ(parse_age("--x", "30m"), 30min);
  EXPECT_EQ(parse_age("--x", "1s"), 1s);
  EXPECT_EQ(parse_age("--x", "365000d"), 24h * 365'000);
  for (const char* wrong : {"", "d", "90", "0d", "-1d", "+1d", "1.5d", "90 d", "90days", "1y", "365001d",
                            "99999999999999999999d", "9223372036854775807w", " 1d"}) {
    EXPECT_THROW((void)parse_age("--x", wrong), Error) << wrong;
  }
}

TEST(ParseAge, WhatIsOutOfBoundsIsToldTheBounds) {
  for (const char* wrong : {"0s", "0d", "-1d", "365001d", "99999999999999999999d"}) {
    try {
      (void)parse_age("--older-than", wrong);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                "postrider: --older-than '" + std::string(wrong) +
                    "' is refused: it must be from 1s to 365000d, a thousand years");
    }
  }
}

TEST(Age, IsWrittenInItsLargestUnit) {
  for (const char* text : {"2w", "90d", "12h", "30m", "45s", "61s"}) {
    EXPECT_EQ(format_age(parse_age("--x", text)), text);
  }
  EXPECT_EQ(format_age(0s), "0s");
}

TEST(Age, ForAReaderIsCutToItsLargestUnit) {
  EXPECT_EQ(format_about(863'999s), "9d");
  EXPECT_EQ(format_about(47h + 59min), "47h");
  EXPECT_EQ(format_about(119min), "119m");
  EXPECT_EQ(format_about(119s), "119s");
  EXPECT_EQ(format_about(0s), "0s");
}

}  // namespace
}  // namespace postrider
