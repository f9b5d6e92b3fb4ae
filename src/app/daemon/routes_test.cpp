// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/routes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "support/scripted_sink.hpp"

namespace postrider::daemon {
namespace {

using namespace std::chrono_literals;
using Kind = Outcome::Kind;
using test::ScriptedSink;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RoutesTest : public ::testing::Test {
 protected:
  std::unique_ptr<Routes> routes(Routes::Options options = {}) {
    return std::make_unique<Routes>(std::vector<Routes::Route>{{{.sink = "first"}, first_},
                                                               {{.sink = "second"}, second_},
                                                               {{.type = "T", .sink = "first"}, first_},
                                                               {{.sink = "third"}, third_}},
                                    options);
  }
  static Outcome deliver(Routes& routes, const Event& event, int failed = 0) {
    return routes(event, {.failed = Attempt{failed}, .source = Source::cold});
  }

  static std::size_t got(const std::shared_ptr<ScriptedSink>& sink) { return sink->batches().size(); }

  std::shared_ptr<ScriptedSink> first_ = std::make_shared<ScriptedSink>();
  std::shared_ptr<ScriptedSink> second_ = std::make_shared<ScriptedSink>();
  std::shared_ptr<ScriptedSink> third_ = std::make_shared<ScriptedSink>();
  const Event event_ = Event::json("T", "{}");
};

TEST_F(RoutesTest, EverySinkGetsAnEventOnce) {
  const auto all = routes();
  EXPECT_EQ(deliver(*all, event_).kind(), Kind::done);
  EXPECT_EQ(got(first_), 1U) << "two routes lead there";
  EXPECT_EQ(got(second_), 1U);
  EXPECT_EQ(got(third_), 1U);
  EXPECT_EQ(all->remembered(), 0U);
}

TEST_F(RoutesTest, OneThatIsAwayHoldsUpNeitherThoseBeforeNorThoseBehindIt) {
  const auto all = routes();
  for (int i = 0; i < 5; ++i) {
    second_->answer(PublishResult::unavailable(0, "connection refused"));
    const Outcome outcome = deliver(*all, event_);
    EXPECT_EQ(outcome.kind(), Kind::retry_after);
    EXPECT_EQ(outcome.reason(), "sink second: connection refused");
  }
  EXPECT_EQ(got(first_), 1U) << "no copy at each retry";
  EXPECT_EQ(got(third_), 1U) << "at the first attempt";
  EXPECT_EQ(got(second_), 5U);
  EXPECT_EQ(all->remembered(), 1U);
  EXPECT_EQ(deliver(*all, event_).kind(), Kind::done);
  EXPECT_EQ(got(second_), 6U);
  EXPECT_EQ(got(first_), 1U);
  EXPECT_EQ(all->remembered(), 0U);
}

TEST_F(RoutesTest, ComesBackForTheFirstThatMayBeAskedAgain) {
  const auto all = routes();
  first_->answer(PublishResult::unavailable(0, "busy", 60s));
  third_->answer(PublishResult::unavailable(0, "down", 7s));
  const Outcome outcome = deliver(*all, event_);
  EXPECT_EQ(outcome.delay(), 7s);
  EXPECT_EQ(outcome.reason(), "sink first: busy; sink third: down");
}

TEST_F(RoutesTest, DoesNotDieOfARefusalWhileAnotherSinkIsAway) {
  const auto all = routes({.max_attempts = 3});
  first_->answer(PublishResult::refused(0, "too large"));
  second_->answer(PublishResult::unavailable(0, "away"));
  const Outcome waits = deliver(*all, event_, 2);
  EXPECT_EQ(waits.kind(), Kind::retry_after) << "not counted";
  EXPECT_THAT(waits.reason(), AllOf(HasSubstr("too large"), HasSubstr("away"), Not(HasSubstr("third"))));
  first_->answer(PublishResult::refused(0, "too large"));
  const Outcome refused = deliver(*all, event_, 2);
  EXPECT_EQ(refused.kind(), Kind::failed);
  EXPECT_EQ(refused.reason(), "sink first: too large");
  EXPECT_EQ(got(second_), 2U);
  EXPECT_EQ(got(third_), 1U);
  EXPECT_EQ(all->remembered(), 0U) << "it was its last attempt: a replay is for all of them";
}

TEST_F(RoutesTest, AFailureThatIsNotTheLastIsRemembered) {
  const auto all = routes({.max_attempts = 3});
  second_->answer(PublishResult::refused(0, "no"));
  EXPECT_EQ(deliver(*all, event_, 1).kind(), Kind::failed);
  EXPECT_EQ(all->remembered(), 1U);
  EXPECT_EQ(deliver(*all, event_, 2).kind(), Kind::done);
  EXPECT_EQ(got(first_), 1U);
  EXPECT_EQ(all->remembered(), 0U);
}

TEST_F(RoutesTest, WhatIsForgottenIsSentOnceMore) {
  const auto all = routes({.remembered_events = 1});
  const Event other = Event::json("Other", "{}");
  for (const Event& one : {event_, other}) {
    second_->answer(PublishResult::unavailable(0, "away"));
    EXPECT_EQ(deliver(*all, one).kind(), Kind::retry_after);
  }
  EXPECT_EQ(deliver(*all, event_).kind(), Kind::done);
  EXPECT_EQ(got(first_), 3U);
  EXPECT_EQ(deliver(*all, other).kind(), Kind::done);
  EXPECT_EQ(got(first_), 3U) << "that one was remembered";
}

TEST_F(RoutesTest, AReplayedEventAndOneThatWasJustCommittedAreForAll) {
  const auto all = routes();
  for (const Delivery& anew : {Delivery{Attempt{0}, Source::cold, 1}, Delivery{Attempt{0}, Source::hot, 0}}) {
    second_->answer(PublishResult::unavailable(0, "away"));
    EXPECT_EQ(deliver(*all, event_).kind(), Kind::retry_after);
    const std::size_t before = got(first_);
    EXPECT_EQ((*all)(event_, anew).kind(), Kind::done);
    EXPECT_EQ(got(first_), before + 1);
  }
}

TEST_F(RoutesTest, OneRouteNeedsNoMemory) {
  Routes one({{{.sink = "only"}, first_}}, {});
  first_->answer(PublishResult::unavailable(0, "away"));
  const Outcome outcome = deliver(one, event_);
  EXPECT_EQ(outcome.kind(), Kind::retry_after);
  EXPECT_EQ(outcome.reason(), "away");
  EXPECT_EQ(one.remembered(), 0U);
}

TEST_F(RoutesTest, ServesWorkersAtTheSameTime) {
  constexpr int workers = 4;
  constexpr int events_each = 50;
  const auto all = routes();
  for (int i = 0; i < workers * events_each / 2; ++i) {
    second_->answer(PublishResult::unavailable(0, "away"));
  }
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < workers; ++i) {
      threads.emplace_back([&] {
        for (int n = 0; n < events_each; ++n) {
          const Event event = Event::json("T", "{}");
          while (deliver(*all, event).kind() != Kind::done) {
          }
        }
      });
    }
  }
  EXPECT_EQ(got(first_), static_cast<std::size_t>(workers * events_each)) << "each once";
  EXPECT_EQ(got(third_), static_cast<std::size_t>(workers * events_each));
  EXPECT_EQ(all->remembered(), 0U);
}

}  // namespace
}  // namespace postrider::daemon
