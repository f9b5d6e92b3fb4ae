// SPDX-License-Identifier: Apache-2.0
#include "outbox/decide.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <stdexcept>

namespace postrider {
namespace {

using namespace std::chrono_literals;

const ExponentialBackoffRetryPolicy policy{200ms, 60s};
const LeaseRef lease{EventId{"e1"}, Token{7}};

Completion after(std::int32_t failed_before, const Outcome& outcome, int max_attempts = 10,
                 double random = 0.5) {
  return decide(lease, Attempt{failed_before}, outcome, {&policy, max_attempts}, random);
}

TEST(Decide, DoneKeepsTheAttemptsAndTheLease) {
  const Completion result = after(3, Outcome::done());
  EXPECT_EQ(result.kind, Completion::Kind::done);
  EXPECT_EQ(result.failed, Attempt{3});
  EXPECT_EQ(result.lease.id, lease.id);
  EXPECT_EQ(result.lease.token, Token{7});
}

TEST(Decide, AFailureIsCountedAndRetriedByThePolicy) {
  const Completion first = after(0, Outcome::failed("busy"));
  EXPECT_EQ(first.kind, Completion::Kind::retry);
  EXPECT_EQ(first.failed, Attempt{1});
  EXPECT_EQ(first.delay, 200ms);
  EXPECT_EQ(first.error, "busy");
  EXPECT_EQ(after(2, Outcome::failed("busy")).delay, 800ms);
}

TEST(Decide, TheLastAttemptIsTheOneWithTheMaximum) {
  EXPECT_EQ(after(8, Outcome::failed("x")).kind, Completion::Kind::retry);
  const Completion last = after(9, Outcome::failed("x"));
  EXPECT_EQ(last.kind, Completion::Kind::dead);
  EXPECT_EQ(last.failed, Attempt{10});
  EXPECT_EQ(last.error, "x");
  EXPECT_EQ(after(0, Outcome::failed("x"), 1).kind, Completion::Kind::dead);
}

TEST(Decide, RetryAfterIsNotCounted) {
  const Completion result = after(9, Outcome::retry_after(3s));
  EXPECT_EQ(result.kind, Completion::Kind::later);
  EXPECT_EQ(result.failed, Attempt{9});
  EXPECT_EQ(result.delay, 3s);
  EXPECT_EQ(after(0, Outcome::retry_after(-1s)).delay, 0s);
  EXPECT_EQ(after(0, Outcome::retry_after(3s, "away")).error, "away");
}

TEST(Decide, AnyDelayIsBroughtIntoBounds) {
  EXPECT_EQ(after(0, Outcome::retry_after(Duration::max())).delay, std::chrono::hours{24 * 365});
  EXPECT_EQ(after(0, Outcome::retry_after(Duration::min())).delay, 0s);
}

TEST(Decide, APolicyThatThrowsCostsAMinuteNotTheEvent) {
  struct Broken final : RetryPolicy {
    [[nodiscard]] Duration delay(Attempt, double) const override { throw std::runtime_error("oops"); }
  } broken;
  const Completion result = decide(lease, Attempt{0}, Outcome::failed("x"), {&broken, 10}, 0.5);
  EXPECT_EQ(result.kind, Completion::Kind::retry);
  EXPECT_EQ(result.delay, 1min);
}

TEST(Decide, DeadIsDeadAtOnce) {
  const Completion result = after(0, Outcome::dead("no such address"));
  EXPECT_EQ(result.kind, Completion::Kind::dead);
  EXPECT_EQ(result.failed, Attempt{1});
  EXPECT_EQ(result.error, "no such address");
}

RC_GTEST_PROP(Decide, NeverOverflowsWhateverTheRowSays, ()) {
  const auto before = *rc::gen::arbitrary<std::int32_t>();
  const int most = *rc::gen::inRange(1, 1'000'001);
  const double random = *rc::gen::inRange(0, 1000) / 1000.0;
  const Completion result = after(before, Outcome::failed("x"), most, random);
  RC_ASSERT(static_cast<std::int32_t>(result.failed) >= 1);
  RC_ASSERT(result.delay >= Duration::zero());
  RC_ASSERT(result.delay <= 90s);
  RC_ASSERT((result.kind == Completion::Kind::dead) == (static_cast<std::int32_t>(result.failed) >= most));
}

}  // namespace
}  // namespace postrider
