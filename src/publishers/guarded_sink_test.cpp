// SPDX-License-Identifier: Apache-2.0
#include "publishers/guarded_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "postrider/error.hpp"
#include "support/scripted_sink.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
using Kind = PublishResult::Kind;
using test::Messages;
using test::ScriptedSink;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GuardedSinkTest : public ::testing::Test {
 protected:
  std::unique_ptr<GuardedSink> guard(SinkLimits limits = {}) {
    limits.clock = &clock_;
    limits.log = [this](LogLevel, std::string_view line) { log_ += std::string(line) + "\n"; };
    return std::make_unique<GuardedSink>(behind_, std::move(limits));
  }
  ManualClock clock_;
  std::shared_ptr<ScriptedSink> behind_ = std::make_shared<ScriptedSink>();
  std::string log_;
};

TEST_F(GuardedSinkTest, PassesResultsOn) {
  const auto sink = guard();
  const Messages three({"A", "B", "C"});
  EXPECT_EQ(sink->send(three.all).kind(), Kind::all);
  behind_->answer(PublishResult::refused(2, "no"));
  const PublishResult refused = sink->send(three.all);
  EXPECT_EQ(refused.kind(), Kind::refused);
  EXPECT_EQ(refused.count(3), 2U);
  EXPECT_EQ(refused.reason(), "no");
}

TEST_F(GuardedSinkTest, TellsOnceThatAReceiverIsAwayAndOnceThatItIsBack) {
  const auto sink = guard({.breaker_threshold = 0});
  const Messages one({"A"});
  (void)sink->send(one.all);
  behind_->answer(PublishResult::refused(0, "bad event"));
  (void)sink->send(one.all);
  EXPECT_EQ(log_, "") << "a refusal is the event's affair";
  for (int i = 0; i < 90; ++i) {
    behind_->answer(PublishResult::unavailable(0, "connection refused"));
    (void)sink->send(one.all);
    clock_.advance(1s);
  }
  EXPECT_EQ(log_,
            "postrider: sink 'scripted' does not take events, and is tried again: connection refused\n");
  EXPECT_EQ(sink->counts().failures, 90U);
  EXPECT_EQ(sink->counts().since_failure, 1s);
  log_.clear();
  (void)sink->send(one.all);
  (void)sink->send(one.all);
  EXPECT_EQ(log_, "postrider: sink 'scripted' takes events again, after 90s\n");
  EXPECT_EQ(sink->counts().failures, 90U);
}

TEST_F(GuardedSinkTest, OneThatComesAndGoesDoesNotFillTheLog) {
  const auto sink = guard({.breaker_threshold = 0});
  const Messages one({"A"});
  const auto lines = [&] { return std::count(log_.begin(), log_.end(), '\n'); };
  for (int i = 0; i < 9; ++i) {
    behind_->answer(PublishResult::unavailable(0, "flaps"));
    (void)sink->send(one.all);
    (void)sink->send(one.all);
    clock_.advance(1s);
  }
  EXPECT_EQ(lines(), 2) << log_;
  behind_->answer(PublishResult::unavailable(0, "stays away"));
  (void)sink->send(one.all);
  EXPECT_EQ(lines(), 2) << "not yet";
  clock_.advance(1s);
  behind_->answer(PublishResult::unavailable(0, "stays away"));
  (void)sink->send(one.all);
  EXPECT_EQ(lines(), 3) << "an absence that lasts is told after all";
  clock_.advance(5s);
  (void)sink->send(one.all);
  EXPECT_THAT(log_, HasSubstr("again, after 6s\n"));
}

TEST_F(GuardedSinkTest, SaysNothingOfWhatItsOwnEndHasCut) {
  const auto sink = guard();
  const Messages one({"A"});
  behind_->answer(PublishResult::unavailable(0, "closed"));
  behind_->hold(true);
  std::jthread sender([&] { (void)sink->send(one.all); });
  behind_->await_batches(1);
  sink->close();
  behind_->hold(false);
  sender.join();
  EXPECT_EQ(log_, "");
}

TEST_F(GuardedSinkTest, OpensTheCircuitAndProbes) {
  const auto sink = guard({.breaker_threshold = 2, .breaker_window = 30s, .breaker_reset = 5s});
  const Messages one({"A"});
  for (int i = 0; i < 2; ++i) {
    behind_->answer(PublishResult::unavailable(0, "away"));
    EXPECT_TRUE(sink->healthy());
    EXPECT_EQ(sink->send(one.all).reason(), "away");
  }
  EXPECT_FALSE(sink->healthy());
  EXPECT_TRUE(sink->counts().circuit_open);
  EXPECT_THAT(log_, HasSubstr("opens: away"));
  const PublishResult barred = sink->send(one.all);
  EXPECT_EQ(barred.kind(), Kind::unavailable);
  EXPECT_EQ(barred.retry_after(), 5s);
  EXPECT_EQ(behind_->batches().size(), 2U) << "nothing goes through an open circuit";
  clock_.advance(5s);
  EXPECT_TRUE(sink->healthy());
  EXPECT_TRUE(sink->counts().circuit_open) << "until it is tried";
  EXPECT_EQ(sink->send(one.all).kind(), Kind::all);
  EXPECT_FALSE(sink->counts().circuit_open);
}

TEST_F(GuardedSinkTest, TellsWhyTheReceiverIsAwayUntilItTakesSomething) {
  const auto sink = guard({.breaker_threshold = 1, .breaker_reset = 5s});
  const Messages one({"A"});
  EXPECT_EQ(sink->trouble(), "");
  behind_->answer(PublishResult::unavailable(0, "tcp://h:1: connection refused"));
  (void)sink->send(one.all);
  EXPECT_EQ(sink->trouble(), "tcp://h:1: connection refused");
  EXPECT_THAT(sink->send(one.all).reason(),
              HasSubstr("is open after repeated failures, the last: tcp://h:1: connection refused"));
  EXPECT_EQ(sink->trouble(), "tcp://h:1: connection refused") << "the open circuit is not the cause";
  clock_.advance(5s);
  EXPECT_TRUE(sink->healthy());
  EXPECT_EQ(sink->trouble(), "tcp://h:1: connection refused") << "nobody has tried yet";
  (void)sink->send(one.all);
  EXPECT_EQ(sink->trouble(), "");
}

TEST_F(GuardedSinkTest, ARefusalIsNoFailureOfTheReceiver) {
  const auto sink = guard({.breaker_threshold = 1});
  const Messages one({"A"});
  for (int i = 0; i < 5; ++i) {
    behind_->answer(PublishResult::refused(0, "poison"));
    EXPECT_EQ(sink->send(one.all).kind(), Kind::refused);
  }
  EXPECT_TRUE(sink->healthy());
  EXPECT_EQ(sink->trouble(), "");
}

TEST_F(GuardedSinkTest, KeepsThePauseThatAReceiverAsksFor) {
  const auto sink = guard();
  const Messages one({"A"});
  behind_->answer(PublishResult::unavailable(0, "busy", 10s));
  EXPECT_EQ(sink->send(one.all).retry_after(), 10s);
  EXPECT_FALSE(sink->healthy());
  clock_.advance(9s);
  EXPECT_EQ(sink->send(one.all).retry_after(), 1s);
  EXPECT_EQ(behind_->batches().size(), 1U);
  clock_.advance(1s);
  EXPECT_TRUE(sink->healthy());
  EXPECT_EQ(sink->send(one.all).kind(), Kind::all);
}

TEST_F(GuardedSinkTest, AnEndlessPauseIsCut) {
  const auto sink = guard();
  const Messages two({"A", "B"});
  behind_->answer(PublishResult::unavailable(1, "busy", std::chrono::hours{24 * 365}));
  const PublishResult result = sink->send(two.all);
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_EQ(result.count(2), 1U);
  EXPECT_EQ(result.reason(), "busy");
  EXPECT_EQ(result.retry_after(), 1h) << "the event that is told to wait, too";
  EXPECT_EQ(sink->send(two.all).reason(), "'scripted' has asked for a pause, and is tried again in 1h");
  EXPECT_EQ(sink->trouble(), "busy (it has asked for a pause, and is tried again in 1h)");
  clock_.advance(1h);
  EXPECT_TRUE(sink->healthy());
}

TEST_F(GuardedSinkTest, WhoKnowsBetterEndsThePause) {
  const auto sink = guard();
  const Messages one({"A"});
  behind_->answer(PublishResult::unavailable(0, "busy", 1h));
  EXPECT_EQ(sink->send(one.all).retry_after(), 1h);
  sink->revive();
  EXPECT_TRUE(sink->healthy());
  EXPECT_EQ(sink->send(one.all).kind(), Kind::all);
}

TEST_F(GuardedSinkTest, SendsNoFasterThanTheRate) {
  const auto sink = guard({.rate = 10, .patience = 500ms});
  const Messages all({"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
  std::optional<PublishResult> result;
  std::jthread sender([&] { result = sink->send(all.all); });
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(clock_.await_waiters(1));
    clock_.advance(100ms);
    behind_->await_batches(static_cast<std::size_t>(i) + 1);
  }
  sender.join();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->kind(), Kind::unavailable) << "its patience is at an end";
  EXPECT_EQ(result->count(10), 5U) << "what went before counts";
  EXPECT_THAT(result->reason(), HasSubstr("10 messages a second"));
  EXPECT_TRUE(sink->healthy()) << "the rate is nobody's failure";
}

TEST_F(GuardedSinkTest, CloseEndsAWaitForTheRate) {
  const auto sink = guard({.rate = 1, .patience = 1min});
  const Messages two({"A", "B"});
  std::optional<PublishResult> result;
  std::jthread sender([&] { result = sink->send(two.all); });
  ASSERT_TRUE(clock_.await_waiters(1));
  sink->close();
  sender.join();
  EXPECT_EQ(result->kind(), Kind::unavailable);
  EXPECT_EQ(sink->send(two.all).kind(), Kind::unavailable);
  EXPECT_FALSE(sink->healthy());
}

TEST_F(GuardedSinkTest, ThrowsNothing) {
  struct Throwing final : Sink {
    PublishResult send(std::span<const SinkMessage>) override {
      throw Error(ErrorCode::unavailable, {.retryable = true}, "cannot send", "away");
    }
    const std::string& name() const noexcept override { return called; }
    std::string called = "throwing";
  };
  GuardedSink sink(std::make_shared<Throwing>(), {.clock = &clock_, .log = {}});
  EXPECT_EQ(sink.send(Messages({"A"}).all).kind(), Kind::unavailable);
}

TEST_F(GuardedSinkTest, RefusesOptionsOutOfBounds) {
  EXPECT_THROW(guard({.rate = 10'000'001}), Error);
  EXPECT_THROW(guard({.breaker_reset = 0s}), Error);
  EXPECT_THROW((void)guarded_sink(nullptr), Error);
}

TEST_F(GuardedSinkTest, CallersThatMeetAreSentTogether) {
  const auto sink = guard();
  const Messages first({"A"});
  const Messages second({"B"});
  const Messages third({"C"});
  behind_->hold(true);
  std::jthread a([&] { EXPECT_EQ(sink->send(first.all).kind(), Kind::all); });
  behind_->await_batches(1);
  // They gather while the first batch is on its way.
  std::jthread b([&] { EXPECT_EQ(sink->send(second.all).kind(), Kind::all); });
  std::jthread c([&] { EXPECT_EQ(sink->send(third.all).kind(), Kind::all); });
  while (sink->waiting() < 2) std::this_thread::yield();
  behind_->hold(false);
  a.join();
  b.join();
  c.join();
  const auto batches = behind_->batches();
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[1].size(), 2U);
}

TEST_F(GuardedSinkTest, OnesRefusalIsNotTheOthersProblem) {
  const auto sink = guard();
  const Messages first({"A"});
  const Messages second({"B1", "B2"});
  const Messages third({"C"});
  behind_->hold(true);
  std::jthread a([&] { EXPECT_EQ(sink->send(first.all).kind(), Kind::all); });
  behind_->await_batches(1);
  behind_->answer(PublishResult::all());
  behind_->answer(PublishResult::refused(1, "B2 is poison"));
  std::jthread b([&] {
    const PublishResult result = sink->send(second.all);
    EXPECT_EQ(result.kind(), Kind::refused);
    EXPECT_EQ(result.count(2), 1U);
  });
  while (sink->waiting() < 1) std::this_thread::yield();
  std::jthread c([&] { EXPECT_EQ(sink->send(third.all).kind(), Kind::all); });
  while (sink->waiting() < 2) std::this_thread::yield();
  behind_->hold(false);
  a.join();
  b.join();
  c.join();
  EXPECT_THAT(behind_->batches(),
              ElementsAre(ElementsAre("A"), ElementsAre("B1", "B2", "C"), ElementsAre("C")));
}

class TakenBehindTest : public GuardedSinkTest {
 protected:
  /// B is refused, and C was on its way with it.
  std::vector<std::vector<std::string>> batches_when(std::vector<std::size_t> behind) {
    const auto sink = guard();
    const Messages first({"A"});
    const Messages bad({"B"});
    const Messages good({"C"});
    behind_->hold(true);
    std::jthread a([&] { EXPECT_EQ(sink->send(first.all).kind(), Kind::all); });
    behind_->await_batches(1);
    behind_->answer(PublishResult::all());
    behind_->answer(PublishResult::refused(0, "B is poison").with_behind(std::move(behind)));
    std::jthread b([&] { EXPECT_EQ(sink->send(bad.all).kind(), Kind::refused); });
    while (sink->waiting() < 1) std::this_thread::yield();
    std::jthread c([&] { EXPECT_EQ(sink->send(good.all).kind(), Kind::all); });
    while (sink->waiting() < 2) std::this_thread::yield();
    behind_->hold(false);
    a.join();
    b.join();
    c.join();
    return behind_->batches();
  }
};

TEST_F(TakenBehindTest, WhatWasTakenBehindARefusalIsNotSentAgain) {
  EXPECT_THAT(batches_when({1}), ElementsAre(ElementsAre("A"), ElementsAre("B", "C")));
}

TEST_F(TakenBehindTest, WhoNamesEventsThatThereAreNotIsNotBelieved) {
  EXPECT_THAT(batches_when({1, 2}), ElementsAre(ElementsAre("A"), ElementsAre("B", "C"), ElementsAre("C")));
}

TEST_F(TakenBehindTest, WhoCallsARefusedOneTakenIsNotBelieved) {
  EXPECT_THAT(batches_when({0, 1}), ElementsAre(ElementsAre("A"), ElementsAre("B", "C"), ElementsAre("C")));
}

TEST_F(GuardedSinkTest, WhoWaitsBehindAReceiverThatHangsIsToldWithTheFirst) {
  const auto sink = guard();
  const Messages first({"A"});
  const Messages second({"B"});
  behind_->hold(true);
  behind_->answer(PublishResult::unavailable(0, "no answer in time"));
  std::jthread a([&] { EXPECT_EQ(sink->send(first.all).kind(), Kind::unavailable); });
  behind_->await_batches(1);
  std::jthread b([&] {
    const PublishResult result = sink->send(second.all);
    EXPECT_EQ(result.kind(), Kind::unavailable);
    EXPECT_EQ(result.reason(), "no answer in time");
  });
  while (sink->waiting() < 1) std::this_thread::yield();
  behind_->hold(false);
  a.join();
  b.join();
  EXPECT_EQ(behind_->batches().size(), 1U) << "it would have hung once more";
  EXPECT_EQ(sink->send(second.all).kind(), Kind::all);
}

}  // namespace
}  // namespace postrider
