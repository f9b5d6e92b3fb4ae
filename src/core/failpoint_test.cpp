// SPDX-License-Identifier: Apache-2.0
#include "core/failpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "postrider/error.hpp"
#include "postrider/testing.hpp"

namespace postrider {
namespace {

#if defined(POSTRIDER_FAILPOINTS)

using ::testing::HasSubstr;

class Failpoint : public ::testing::Test {
 protected:
  // The child of a death test runs its test alone and from the start: it passes its first failpoint there.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  void TearDown() override { failpoints::clear(); }
};
using FailpointDeathTest = Failpoint;

bool throws(std::string_view name) {
  try {
    failpoint(name);
    return false;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_TRUE(error.retryable());
    EXPECT_EQ(error.what(), "postrider: failpoint " + std::string(name) + ": it was told to throw");
    return true;
  }
}

std::string refusal_of_plan(std::string_view text) {
  try {
    failpoints::plan(text);
    return "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
}

TEST_F(Failpoint, DoesNothingUntilTold) {
  EXPECT_NO_THROW(failpoint("test.quiet"));
  EXPECT_THAT(failpoints::seen(), ::testing::Contains("test.quiet"));
}

TEST_F(Failpoint, RunsItsActionEveryTimeUntilRemoved) {
  int runs = 0;
  failpoints::set("test.action", [&] { ++runs; });
  failpoint("test.action");
  failpoint("test.action");
  failpoint("test.other");
  EXPECT_EQ(runs, 2);
  failpoints::set("test.action", {});
  failpoint("test.action");
  EXPECT_EQ(runs, 2);
}

TEST_F(Failpoint, SeenIsSortedAndHasEachNameOnce) {
  failpoint("test.b");
  failpoint("test.a");
  failpoint("test.b");
  const std::vector<std::string> seen = failpoints::seen();
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(std::count(seen.begin(), seen.end(), "test.b"), 1);
}

TEST_F(Failpoint, AnActionMayWaitForAThreadThatPassesFailpoints) {
  testing::Signal passed;
  failpoints::set("test.wait", [&] { EXPECT_TRUE(passed.await()); });
  std::jthread waiting([] { failpoint("test.wait"); });
  failpoint("test.elsewhere");
  passed.set();
}

TEST_F(Failpoint, ThrowsAtThePlannedPassOnly) {
  failpoints::plan("test.t=throw;test.u=throw@3");
  EXPECT_TRUE(throws("test.t"));
  EXPECT_FALSE(throws("test.t"));
  EXPECT_FALSE(throws("test.u"));
  EXPECT_FALSE(throws("test.u"));
  EXPECT_TRUE(throws("test.u"));
  EXPECT_FALSE(throws("test.u"));
  failpoints::plan("test.t=throw");
  failpoints::clear();
  EXPECT_FALSE(throws("test.t"));
}

TEST_F(Failpoint, RefusesAPlanItCannotRead) {
  EXPECT_EQ(refusal_of_plan("a=explode"),
            "postrider: failpoint 'a=explode' is refused: the action is neither kill nor throw nor hang. "
            "Hint: write "
            "POSTRIDER_FAILPOINT=\"name=kill\" or \"name=throw@3\", several with ';' between them");
  EXPECT_THAT(refusal_of_plan("a"), HasSubstr("'a' is refused: it has no name and action"));
  EXPECT_THAT(refusal_of_plan("=kill"), HasSubstr("it has no name and action"));
  EXPECT_THAT(refusal_of_plan("a=kill@0"), HasSubstr("behind '@' stands no count from 1 on"));
  EXPECT_THAT(refusal_of_plan("a=kill@"), HasSubstr("no count"));
  EXPECT_THAT(refusal_of_plan("a=kill@2x"), HasSubstr("no count"));
  EXPECT_THAT(refusal_of_plan("test.half=throw;b="), HasSubstr("'b=' is refused"));
  EXPECT_FALSE(throws("test.half")) << "half a plan was taken";
  EXPECT_EQ(refusal_of_plan(";test.x=throw;;"), "accepted");
  EXPECT_EQ(refusal_of_plan(""), "accepted");
}

TEST_F(FailpointDeathTest, KillsTheProcessFromTheEnvironment) {
  EXPECT_EXIT(
      {
        setenv("POSTRIDER_FAILPOINT", "test.k=kill@3;test.t=throw@1", 1);
        failpoint("test.k");
        if (!throws("test.t")) _exit(1);
        failpoint("test.k");
        fputs("two passed\n", stderr);
        failpoint("test.k");
        _exit(2);
      },
      ::testing::KilledBySignal(SIGKILL), "two passed");
}

TEST_F(FailpointDeathTest, AnUnreadableEnvironmentThrowsAtEveryPass) {
  EXPECT_EXIT(
      {
        setenv("POSTRIDER_FAILPOINT", "test.k=kil", 1);
        int refused = 0;
        for (int i = 0; i < 2; ++i) {
          try {
            failpoint("test.other");
          } catch (const Error& error) {
            fprintf(stderr, "%s\n", error.what());
            ++refused;
          }
        }
        _exit(refused == 2 ? 7 : 1);
      },
      ::testing::ExitedWithCode(7), "failpoint 'test.k=kil' is refused");
}

#else

TEST(Failpoint, CompilesToNothing) {
  static_assert(noexcept(failpoint("anything")));
  failpoint("anything");
}

#endif

}  // namespace
}  // namespace postrider
