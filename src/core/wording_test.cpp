// SPDX-License-Identifier: Apache-2.0
#include "core/wording.hpp"

#include <gtest/gtest.h>

namespace postrider {
namespace {

TEST(Wording, OneIsNoPlural) {
  EXPECT_EQ(counted(0, "listener"), "0 listeners");
  EXPECT_EQ(counted(1, "listener"), "1 listener");
  EXPECT_EQ(counted(2, "undelivered event"), "2 undelivered events");
  EXPECT_EQ(counted(21, "value"), "21 values");
}

TEST(Wording, ATimeIsInTheLargestUnitThatDividesIt) {
  using namespace std::chrono_literals;
  EXPECT_EQ(text_of(0us), "0 s");
  EXPECT_EQ(text_of(24h), "1 day");
  EXPECT_EQ(text_of(48h), "2 days");
  EXPECT_EQ(text_of(25h), "90000 s");
  EXPECT_EQ(text_of(1500ms), "1500 ms");
  EXPECT_EQ(text_of(1s + 7us), "1000007 us");
  EXPECT_EQ(text_of(-1s), "-1 s");
  EXPECT_EQ(text_of(-24h), "-1 days");
  EXPECT_EQ(text_of(Duration::max()), "9223372036854775807 us");
  EXPECT_EQ(text_of(Duration::min()), "-9223372036854775808 us");
}

TEST(Wording, OfAStatementItsBeginningIsEnough) {
  EXPECT_EQ(cannot_run("select 1"), "cannot run 'select 1'");
  std::string sql(80, 'x');
  sql += "ä";
  EXPECT_TRUE(cannot_run(sql).ends_with("xx…'")) << cannot_run(sql);
  EXPECT_EQ(cannot_run(sql).size(), cannot_run("").size() + 80 + std::string_view("…").size());
  EXPECT_EQ(cannot_run("\xff"), "cannot run '\uFFFD'");
}

}  // namespace
}  // namespace postrider
