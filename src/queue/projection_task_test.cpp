// SPDX-License-Identifier: Apache-2.0
#include "queue/projection_task.hpp"

#include <gtest/gtest.h>

namespace postrider {
namespace {

using namespace std::chrono_literals;
using Decided = FailureDecision::Kind;

struct LinearOrBroken final : RetryPolicy {
  [[nodiscard]] Duration delay(Attempt failed, double random) const override {
    if (random > 0.9) throw std::runtime_error("a policy that throws");
    return std::chrono::seconds{static_cast<std::int32_t>(failed)} * (random < 0.1 ? -1 : 1);
  }
};

ProjectionOptions options(PoisonPolicy poison = PoisonPolicy::stop) {
  ProjectionOptions options;
  options.name = "p";
  options.max_failures = 3;
  options.poison = poison;
  options.retry_policy = std::make_shared<LinearOrBroken>();
  return options;
}

TEST(DecideFailure, ABatchIsTriedEntryByEntryFirst) {
  const FailureDecision decision = decide_failure({.entries = 2, .before = 2}, options(), 0.5);
  EXPECT_EQ(decision.kind, Decided::one_by_one);
  EXPECT_FALSE(decision.counted) << "which entry it was is not known yet";
  EXPECT_EQ(decision.delay, 0s);
}

TEST(DecideFailure, AnEntryIsTriedAgainWithTheDelayOfItsFailures) {
  for (const std::int32_t before : {0, 1}) {
    const FailureDecision decision = decide_failure({.before = before}, options(), 0.5);
    EXPECT_EQ(decision.kind, Decided::again);
    EXPECT_TRUE(decision.counted);
    EXPECT_EQ(decision.delay, std::chrono::seconds{before + 1});
  }
}

TEST(DecideFailure, TheLastTryIsThePolicys) {
  EXPECT_EQ(decide_failure({.before = 2}, options(PoisonPolicy::stop), 0.5).kind, Decided::stop);
  EXPECT_EQ(decide_failure({.before = 2}, options(PoisonPolicy::skip), 0.5).kind, Decided::skip);
  EXPECT_EQ(decide_failure({.before = 99}, options(PoisonPolicy::skip), 0.5).kind, Decided::skip);
}

TEST(DecideFailure, TheDatabasesFailuresNeverCount) {
  const FailureDecision decision =
      decide_failure({.entries = 9, .retryable = true, .before = 99, .troubles = 4}, options(), 0.5);
  EXPECT_EQ(decision.kind, Decided::again);
  EXPECT_FALSE(decision.counted);
  EXPECT_EQ(decision.delay, 4s);
}

TEST(DecideFailure, APolicyThatThrowsOrGoesBackInTimeDoesNoHarm) {
  EXPECT_EQ(decide_failure({}, options(), 0.95).delay, 1s);
  EXPECT_EQ(decide_failure({}, options(), 0.05).delay, 0s);
}

}  // namespace
}  // namespace postrider
