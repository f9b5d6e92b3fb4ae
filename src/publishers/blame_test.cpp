// SPDX-License-Identifier: Apache-2.0
#include "publishers/blame.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "publishers/guarded_sink.hpp"
#include "support/scripted_sink.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
using Kind = PublishResult::Kind;
using test::Messages;
using test::ScriptedSink;
using ::testing::HasSubstr;

class BlameTest : public ::testing::Test {
 protected:
  Blame::Of failed(const SinkMessage& message) { return blame_.failed(message, now_).of; }
  void taken(const SinkMessage& message) { blame_.taken(message, now_); }
  Blame blame_;
  SteadyPoint now_{1h};
};

TEST_F(BlameTest, IsTheReceiversAsLongAsItTakesNothing) {
  const Messages both({"A", "B"});
  for (int i = 0; i < 20; ++i) {
    for (const SinkMessage& one : both.all) EXPECT_EQ(failed(one), Blame::Of::receiver);
  }
}

TEST_F(BlameTest, IsTheEventsWhenOthersWereTakenSince) {
  const Messages all({"good", "bad"});
  taken(all.all[0]);
  EXPECT_EQ(failed(all.all[1]), Blame::Of::open) << "once says nothing";
  EXPECT_EQ(failed(all.all[1]), Blame::Of::open) << "and twice in a row as little";
  taken(all.all[0]);
  EXPECT_EQ(failed(all.all[1]), Blame::Of::event);
  EXPECT_EQ(failed(all.all[1]), Blame::Of::open) << "each time anew";
}

TEST_F(BlameTest, HoweverManyBadOnesComeTogetherTheReceiverIsThereThatHasTakenOthersOfLate) {
  taken(Messages({"good"}).all[0]);
  for (int i = 0; i < 1'000; ++i) {
    now_ += Blame::alive_for / 1'000;
    EXPECT_EQ(failed(Messages({"bad"}).all[0]), Blame::Of::open) << i;
  }
  now_ += 1ms;
  EXPECT_EQ(failed(Messages({"bad"}).all[0]), Blame::Of::receiver) << "it may have broken since";
}

TEST_F(BlameTest, OneThatItFailedWithWhileItTookOthersSaysNothingAboutItLaterEither) {
  const Messages bad({"bad"});
  taken(Messages({"good"}).all[0]);
  for (std::uint32_t times = 1; times < 100; ++times) {
    const Blame::Verdict verdict = blame_.failed(bad.all[0], now_);
    EXPECT_EQ(verdict.of, Blame::Of::open);
    EXPECT_EQ(verdict.times, times);
    now_ += 1min;
  }
  EXPECT_FALSE(blame_.alive(now_));
}

TEST_F(BlameTest, IsTheEventsThoughTheOtherWasTakenLongAgo) {
  const Messages all({"good", "bad"});
  EXPECT_EQ(failed(all.all[1]), Blame::Of::receiver);
  taken(all.all[0]);
  now_ += 1h;
  EXPECT_EQ(failed(all.all[1]), Blame::Of::event) << "between two failures";
  EXPECT_EQ(failed(all.all[1]), Blame::Of::open) << "from now on";
}

TEST_F(BlameTest, BeginsAnewForOneThatWasTaken) {
  const Messages all({"A", "B"});
  (void)failed(all.all[0]);
  for (const SinkMessage& one : all.all) taken(one);
  EXPECT_EQ(failed(all.all[0]), Blame::Of::open);
}

TEST_F(BlameTest, RemembersSoManyAndNoMore) {
  const Messages first({"first"});
  (void)failed(first.all[0]);
  for (std::size_t i = 0; i < Blame::most; ++i) (void)failed(Messages({"other"}).all[0]);
  const Messages last({"last"});
  (void)failed(last.all[0]);
  taken(Messages({"good"}).all[0]);
  EXPECT_EQ(failed(first.all[0]), Blame::Of::open) << "forgotten: one more try";
  EXPECT_EQ(failed(last.all[0]), Blame::Of::event);
}

class BlamingSinkTest : public ::testing::Test {
 protected:
  PublishResult send(const Messages& messages, PublishResult answer) {
    behind_->answer(std::move(answer));
    return sink_.send(messages.all);
  }
  ManualClock clock_;
  std::shared_ptr<ScriptedSink> behind_ = std::make_shared<ScriptedSink>();
  GuardedSink sink_{behind_, {.clock = &clock_, .log = [](LogLevel, std::string_view) {}}};
};

TEST_F(BlamingSinkTest, AnEventThatFailsAmongOthersThatAreTakenIsRefusedAndOpensNoCircuit) {
  const Messages good({"good"});
  const Messages bad({"bad"});
  EXPECT_EQ(sink_.send(good.all).kind(), Kind::all);
  EXPECT_EQ(send(bad, PublishResult::unclear(0, "HTTP 500")).kind(), Kind::unavailable) << "at first";
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(send(good, PublishResult::all()).kind(), Kind::all);
    const PublishResult result = send(bad, PublishResult::unclear(0, "HTTP 500"));
    EXPECT_EQ(result.kind(), Kind::refused);
    EXPECT_EQ(result.reason(), "HTTP 500 (and has taken others meanwhile)");
  }
  EXPECT_EQ(sink_.counts().failures, 0U);
  EXPECT_TRUE(sink_.healthy());
  EXPECT_EQ(sink_.trouble(), "");
}

TEST_F(BlamingSinkTest, ManyBadOnesThatComeForTheFirstTimeOpenNoCircuitBetweenGoodOnes) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(send(Messages({"good"}), PublishResult::all()).kind(), Kind::all);
    for (int n = 0; n < 20; ++n) {
      const PublishResult result = send(Messages({"bad"}), PublishResult::unclear(0, "HTTP 500"));
      EXPECT_EQ(result.kind(), Kind::unavailable);
      EXPECT_TRUE(result.is_unclear()) << "the sink is not away";
    }
  }
  EXPECT_FALSE(sink_.counts().circuit_open);
  EXPECT_EQ(sink_.counts().failures, 0U);
}

TEST_F(BlamingSinkTest, AReceiverThatHasTakenOthersAndFailsWithEverythingIsAwaySoonAfter) {
  EXPECT_EQ(send(Messages({"good"}), PublishResult::all()).kind(), Kind::all);
  clock_.advance(Blame::alive_for + 1ms);
  for (int i = 0; i < 5; ++i) {
    const PublishResult result = send(Messages({"any"}), PublishResult::unclear(0, "HTTP 500"));
    EXPECT_FALSE(result.is_unclear());
  }
  EXPECT_TRUE(sink_.counts().circuit_open);
}

TEST_F(BlamingSinkTest, AReceiverThatFailsWithEverythingIsAway) {
  const Messages one({"A"});
  const Messages two({"B"});
  for (int i = 0; i < 5; ++i) {
    for (const Messages* which : {&one, &two}) {
      EXPECT_EQ(send(*which, PublishResult::unclear(0, "HTTP 500")).kind(), Kind::unavailable);
    }
  }
  EXPECT_TRUE(sink_.counts().circuit_open);
  EXPECT_FALSE(sink_.healthy());
  EXPECT_THAT(sink_.trouble(), HasSubstr("HTTP 500"));
}

TEST_F(BlamingSinkTest, OnesThatItFailsWithComeBackMoreAndMoreSeldomAndKeepNoNewOneWaiting) {
  EXPECT_EQ(send(Messages({"good"}), PublishResult::all()).kind(), Kind::all);
  const Messages bad({"bad"});
  for (const Duration pause : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
    const PublishResult result = send(bad, PublishResult::unclear(0, "HTTP 500"));
    EXPECT_EQ(result.retry_after(), pause);
    EXPECT_TRUE(result.is_unclear());
    clock_.advance(pause);
  }
  EXPECT_EQ(sink_.trouble(), "HTTP 500") << "that is worth telling when nothing else is tried";
  EXPECT_TRUE(sink_.healthy());
  EXPECT_EQ(send(Messages({"good"}), PublishResult::all()).kind(), Kind::all);
  EXPECT_EQ(sink_.trouble(), "");
  EXPECT_EQ(send(bad, PublishResult::unclear(0, "HTTP 500")).kind(), Kind::refused);
}

TEST_F(BlamingSinkTest, WhatWasTakenBeforeItInABatchCounts) {
  const Messages three({"A", "bad", "C"});
  const PublishResult first = send(three, PublishResult::unclear(1, "HTTP 500"));
  EXPECT_EQ(first.kind(), Kind::unavailable);
  EXPECT_EQ(first.count(3), 1U);
  const PublishResult second = send(three, PublishResult::unclear(1, "HTTP 500"));
  EXPECT_EQ(second.kind(), Kind::refused);
  EXPECT_EQ(second.count(3), 1U);
}

TEST_F(BlamingSinkTest, WhatWasTakenBehindItCounts) {
  const Messages three({"bad", "B", "C"});
  (void)send(three, PublishResult::unclear(0, "HTTP 500"));
  const PublishResult result = send(three, PublishResult::unclear(0, "HTTP 500").with_behind({2}));
  EXPECT_EQ(result.kind(), Kind::refused);
  EXPECT_THAT(result.reason(), HasSubstr("has taken others meanwhile"));
}

}  // namespace
}  // namespace postrider
