// SPDX-License-Identifier: Apache-2.0
#include "relay/pair.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace postrider {
namespace {

using namespace std::chrono_literals;

TEST(IdleBackoff, HazardS14TheTableOfTheDescription) {
  // Interval 1 s, threshold 3, multiplier 2, at most 60 s.
  const std::vector<Duration> after_poll{1s, 1s, 1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s, 60s};
  for (std::size_t i = 0; i < after_poll.size(); ++i) {
    EXPECT_EQ(idle_delay({}, 1s, static_cast<std::int64_t>(i) + 1), after_poll[i]) << "empty poll " << i + 1;
  }
  EXPECT_EQ(idle_delay({}, 1s, 0), 1s);
  EXPECT_EQ(idle_delay({}, 1s, 1'000'000'000'000), 60s) << "without overflow";
}

TEST(IdleBackoff, HazardS14NeverLongerThanTheMaximumUnlessTheIntervalIs) {
  EXPECT_EQ(idle_delay({}, 7s, 50), 56s) << "whole intervals";
  EXPECT_EQ(idle_delay({}, 90s, 50), 90s);
  EXPECT_EQ(idle_delay({.max = 500ms}, 1s, 50), 1s);
  EXPECT_EQ(idle_delay({.threshold = 0, .multiplier = 10}, 1s, 1), 10s);
  EXPECT_EQ(idle_delay({.multiplier = 1}, 1s, 50), 1s);
  EXPECT_EQ(idle_delay({.enabled = false}, 1s, 50), 1s) << "switched off";
}

struct Fixed final : RetryPolicy {
  [[nodiscard]] Duration delay(Attempt failed, double) const override {
    return std::chrono::seconds{100} * static_cast<int>(failed);
  }
};
PairOptions options(PoisonAction poison = PoisonAction::stop, int max_failures = 3) {
  PairOptions options;
  options.poison = poison;
  options.max_failures = max_failures;
  options.retry_policy = std::make_shared<Fixed>();
  return options;
}

TEST(PairHealth, HazardS14FailuresAreNoEmptyPolls) {
  const PairOptions rules = options();
  PairHealth health(rules);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(health.empty_poll(), 1s);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(health.failed_poll(), 1s) << "could not look";
  EXPECT_EQ(health.empty_poll(), 2s);
  EXPECT_TRUE(health.backoff().backing_off);
  EXPECT_EQ(health.backoff().empty_polls, 4);
  (void)health.unavailable(0, 0.5);
  EXPECT_EQ(health.empty_poll(), 1s) << "there was something, so it is not idle";
  health.published();
  EXPECT_FALSE(health.backoff().backing_off);
}

TEST(PairHealth, ARefusedEventCountsUntilItIsPoison) {
  const PairOptions rules = options();
  PairHealth health(rules);
  const auto first = health.refused(5, 10, true, 0);
  EXPECT_TRUE(first.counted);
  EXPECT_EQ(first.delay, 100s);
  EXPECT_EQ(health.refused(0, 5, true, 0).delay, 200s);
  const auto last = health.refused(0, 5, true, 0);
  EXPECT_TRUE(last.stop);
  EXPECT_TRUE(last.counted);
  EXPECT_FALSE(last.dead_letter);
}

TEST(PairHealth, AnEventBehindPublishedOnesBeginsItsOwnCount) {
  const PairOptions rules = options();
  PairHealth health(rules, 2);  // as stored
  EXPECT_FALSE(health.refused(1, 10, true, 0).stop);
  EXPECT_EQ(health.failures(), 1);
  PairHealth other(rules, 2);
  EXPECT_TRUE(other.refused(0, 10, true, 0).stop) << "a new leader goes on counting";
}

TEST(PairHealth, HazardS11APoisonedEventGoesToTheDeadLettersByPolicy) {
  const PairOptions rules = options(PoisonAction::dead_letter, 2);
  PairHealth health(rules);
  EXPECT_FALSE(health.refused(0, 10, true, 0).dead_letter);
  const auto given_up = health.refused(0, 10, true, 0);
  EXPECT_TRUE(given_up.dead_letter);
  EXPECT_FALSE(given_up.stop);
  EXPECT_EQ(health.failures(), 0) << "of the event behind it";
}

TEST(PairHealth, ABatchThatFailsAsAWholeIsTriedOneByOneUntilTheCulpritIsPassed) {
  const PairOptions rules = options(PoisonAction::dead_letter, 1);
  PairHealth health(rules);
  EXPECT_EQ(health.batch_size(PublishMode::batch), 100U);
  EXPECT_EQ(health.batch_size(PublishMode::individual), 1U);
  const auto whole = health.refused(0, 3, false, 0);
  EXPECT_FALSE(whole.counted);
  EXPECT_EQ(whole.delay, 0s);
  EXPECT_EQ(health.batch_size(PublishMode::batch), 1U);
  health.published();
  EXPECT_TRUE(health.refused(0, 1, false, 0).dead_letter) << "alone it is the culprit";
  EXPECT_EQ(health.batch_size(PublishMode::batch), 1U);
  health.published();
  EXPECT_EQ(health.batch_size(PublishMode::batch), 100U);
}

TEST(PairHealth, AReceiverThatIsAwayIsNoEventsFault) {
  const PairOptions rules = options(PoisonAction::dead_letter, 1);
  PairHealth health(rules);
  for (int i = 1; i <= 20; ++i) {
    const auto failure = health.unavailable(0, 0);
    EXPECT_FALSE(failure.counted || failure.stop || failure.dead_letter);
    EXPECT_EQ(failure.delay, 100s * i);
  }
  EXPECT_EQ(health.unavailable(3, 0).delay, 100s) << "it was there in between";
}

}  // namespace
}  // namespace postrider
