// SPDX-License-Identifier: Apache-2.0
#include "queue/decide_event.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace postrider {
namespace {

using namespace std::chrono_literals;
using Kind = Settlement::Kind;

/// One second per failure.
class Linear final : public RetryPolicy {
 public:
  [[nodiscard]] Duration delay(Attempt failed, double) const override {
    return std::chrono::seconds(static_cast<std::int32_t>(failed));
  }
};
class Throwing final : public RetryPolicy {
 public:
  [[nodiscard]] Duration delay(Attempt, double) const override { throw std::runtime_error("broken"); }
};

const Linear linear;

QueuedEvent attempt(std::int32_t number) {
  QueuedEvent event;
  event.claim = {QueueId{7}, Token{3}};
  event.attempts = number;
  return event;
}
HandlerStanding ok(std::string id = "ok") {
  return {.result = {.handler = std::move(id)}, .max_attempts = 10, .policy = &linear};
}
HandlerStanding transient(int failed, int max_attempts = 10) {
  return {.result = {.handler = "shaky",
                     .verdict = HandlerVerdict::transient_error,
                     .failed = Attempt{failed},
                     .error = "busy"},
          .max_attempts = max_attempts,
          .policy = &linear};
}
HandlerStanding fatal() {
  return {.result = {.handler = "fatal", .verdict = HandlerVerdict::unrecoverable_error, .error = "no"},
          .max_attempts = 10,
          .policy = &linear};
}

Settlement decide(const std::vector<HandlerStanding>& handlers, std::int32_t attempts = 1, int max = 10) {
  return decide_event(attempt(attempts), handlers, max, 0.5);
}

TEST(DecideEvent, AllSucceeded) {
  const Settlement settlement = decide({ok("a"), ok("b")});
  EXPECT_EQ(settlement.kind, Kind::finalize);
  EXPECT_EQ(settlement.status, QueueStatus::completed);
  EXPECT_EQ(settlement.claim, (Claim{QueueId{7}, Token{3}}));
  ASSERT_EQ(settlement.results.size(), 2U);
  EXPECT_EQ(settlement.results[1].handler, "b");
}

TEST(DecideEvent, TransientComesBackWithAllResults) {
  const Settlement settlement = decide({ok("a"), ok("b"), transient(2)});
  EXPECT_EQ(settlement.kind, Kind::retry);
  EXPECT_EQ(settlement.delay, 2s);
  EXPECT_EQ(settlement.error, "shaky: busy");
  EXPECT_EQ(settlement.results.size(), 3U);
}

TEST(DecideEvent, UnrecoverableEndsItForAll) {
  for (const auto& handlers :
       {std::vector{fatal(), transient(1)}, std::vector{transient(1), fatal()}, std::vector{ok(), fatal()}}) {
    const Settlement settlement = decide(handlers);
    EXPECT_EQ(settlement.kind, Kind::finalize);
    EXPECT_EQ(settlement.status, QueueStatus::completed_with_errors);
  }
}

TEST(DecideEvent, TheErrorNamesAllThatFailed) {
  EXPECT_EQ(decide({fatal(), ok(), transient(1)}).error, "fatal: no; shaky: busy");
}

TEST(DecideEvent, TheLastAttemptEndsWithErrors) {
  EXPECT_EQ(decide({transient(3)}, 9, 10).kind, Kind::retry);
  const Settlement settlement = decide({transient(3)}, 10, 10);
  EXPECT_EQ(settlement.kind, Kind::finalize);
  EXPECT_EQ(settlement.status, QueueStatus::completed_with_errors);
}

TEST(DecideEvent, AHandlersOwnLimitEndsItAlone) {
  EXPECT_EQ(decide({ok(), transient(3, 3)}).kind, Kind::finalize);
  // Another one may still come back.
  EXPECT_EQ(decide({transient(3, 3), transient(1)}).kind, Kind::retry);
}

TEST(DecideEvent, TheLongestDelayCounts) {
  HandlerStanding patient = transient(1);
  patient.asked_delay = 30s;
  EXPECT_EQ(decide({transient(4), patient}).delay, 30s);
  patient.asked_delay = 1s;
  EXPECT_EQ(decide({transient(4), patient}).delay, 4s);
}

TEST(DecideEvent, NoDelayIsOutOfBounds) {
  HandlerStanding odd = transient(1);
  odd.asked_delay = Duration::min();
  EXPECT_EQ(decide({odd}).delay, 0s);
  odd.asked_delay = Duration::max();
  EXPECT_EQ(decide({odd}).delay, 24h * 365);
  const Throwing broken;
  odd.asked_delay.reset();
  odd.policy = &broken;
  EXPECT_EQ(decide({odd}).delay, 1min);
}

}  // namespace
}  // namespace postrider
