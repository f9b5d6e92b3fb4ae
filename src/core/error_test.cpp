// SPDX-License-Identifier: Apache-2.0
#include "postrider/error.hpp"

#include <gtest/gtest.h>

#include <set>

namespace postrider {
namespace {

TEST(Error, MessageSaysWhatWhyAndHint) {
  EXPECT_STREQ(Error(ErrorCode::database, "it broke", "disk on fire", "call 112").what(),
               "postrider: it broke: disk on fire. Hint: call 112");
  EXPECT_STREQ(Error(ErrorCode::database, "it broke", "disk on fire").what(),
               "postrider: it broke: disk on fire");
  EXPECT_STREQ(Error(ErrorCode::database, "it broke", "", "call 112").what(),
               "postrider: it broke. Hint: call 112");
  EXPECT_STREQ(Error(ErrorCode::database, "it broke").what(), "postrider: it broke");
}

TEST(Error, FactsDefaultToNo) {
  const Error plain(ErrorCode::timeout, "late");
  EXPECT_EQ(plain.code(), ErrorCode::timeout);
  EXPECT_TRUE(plain.sqlstate().empty());
  EXPECT_FALSE(plain.retryable() || plain.in_doubt() || plain.connection_lost());
}

TEST(Error, FactsSurviveACopyAsException) {
  try {
    throw Error(ErrorCode::contention, {.sqlstate = "40001", .retryable = true}, "conflict",
                "serialization failure");
  } catch (const std::runtime_error& caught) {
    const auto& error = dynamic_cast<const Error&>(caught);
    const Error copy = error;
    EXPECT_EQ(copy.sqlstate(), "40001");
    EXPECT_TRUE(copy.retryable());
    EXPECT_FALSE(copy.in_doubt());
    EXPECT_STREQ(copy.what(), "postrider: conflict: serialization failure");
  }
}

TEST(Error, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::database); ++code) {
    const std::string_view name = to_string(static_cast<ErrorCode>(code));
    EXPECT_NE(name, "unknown");
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

}  // namespace
}  // namespace postrider
