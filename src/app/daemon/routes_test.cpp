// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/routes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <optional>
#include <thread>

#include "storage/outbox_store.hpp"
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

  /// Whose events are recalled next; the test fails when nobody's are.
  static std::optional<ParkedSinks::Recall> recalled(Routes& routes) {
    auto next = std::async(std::launch::async, [&] { return routes.parked().next(); });
    if (next.wait_for(20s) != std::future_status::ready) {
      ADD_FAILURE() << "no sink is said to be back";
      routes.parked().close();
    }
    return next.get();
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
  EXPECT_EQ(refused.reason(), "sink first refuses it: too large");
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
  EXPECT_EQ(outcome.reason(), "sink only: away") << "as of several";
  EXPECT_EQ(one.remembered(), 0U);
  first_->answer(PublishResult::refused(0, "too large"));
  EXPECT_EQ(deliver(one, event_).reason(), "sink only refuses it: too large");
}

TEST_F(RoutesTest, ABacklogOfASinkThatIsAwayIsSpreadUntilItIsBack) {
  ManualClock clock;
  const auto all = routes({.clock = &clock});
  Duration longest{};
  for (int i = 0; i < 5000; ++i) {
    second_->answer(PublishResult::unavailable(0, "away"));
    const Outcome outcome = deliver(*all, Event::json("T", "{}"));
    ASSERT_EQ(outcome.kind(), Kind::retry_after);
    longest = std::max(longest, outcome.delay());
  }
  EXPECT_GE(longest, 10s);
  second_->answer(PublishResult::unavailable(0, "away"));
  third_->answer(PublishResult::unavailable(0, "away"));
  EXPECT_EQ(deliver(*all, event_).delay(), 1s) << "each sink has its own";
  second_->answer(PublishResult::unavailable(0, "away"));
  EXPECT_GE(deliver(*all, Event::json("T", "{}")).delay(), 10s);
  deliver(*all, Event::json("T", "{}"));
  second_->answer(PublishResult::unavailable(0, "away"));
  EXPECT_EQ(deliver(*all, Event::json("T", "{}")).delay(), 1s);
}

TEST_F(RoutesTest, ASinkThatComesBackAndRefusesIsBack) {
  ManualClock clock;
  Routes one({{{.sink = "only"}, first_}}, {.clock = &clock});
  for (int i = 0; i < 3; ++i) {
    first_->answer(PublishResult::unavailable(0, "away"));
    deliver(one, Event::json("T", "{}"));
  }
  first_->answer(PublishResult::refused(0, "no"));
  EXPECT_EQ(deliver(one, event_).kind(), Kind::failed);
  const auto recall = recalled(one);
  ASSERT_TRUE(recall.has_value());
  first_->hold(true);
  std::vector<std::jthread> workers;
  for (int i = 0; i < 2; ++i) {
    workers.emplace_back([&] { EXPECT_EQ(deliver(one, Event::json("T", "{}")).kind(), Kind::done); });
  }
  first_->await_batches(6);  // side by side: nobody waits for one that asks
  first_->hold(false);
}

TEST_F(RoutesTest, AnEventThatASinkFailsWithWhileItTakesOthersWaitsByItself) {
  ManualClock clock;
  Routes one({{{.sink = "only"}, first_}}, {.clock = &clock});
  EXPECT_EQ(deliver(one, event_).kind(), Kind::done);
  for (int i = 0; i < 5'000; ++i) {
    first_->answer(PublishResult::unclear(0, "HTTP 500"));
    const Outcome outcome = deliver(one, Event::json("T", "{}"));
    ASSERT_EQ(outcome.kind(), Kind::retry_after);
    ASSERT_EQ(outcome.delay(), 1s) << "the sink is not away, so nothing is spread";
    ASSERT_EQ(outcome.reason(), "sink only: HTTP 500");
  }
  EXPECT_EQ(got(first_), 5'001U);
}

TEST_F(RoutesTest, TheReasonOfOneSinkLeavesRoomForTheOthersNames) {
  const auto all = routes();
  const std::string long_story(5'000, 'x');
  for (const auto& sink : {first_, second_, third_}) sink->answer(PublishResult::unavailable(0, long_story));
  const Outcome outcome = deliver(*all, event_);
  EXPECT_LE(outcome.reason().size(), max_error_chars);
  EXPECT_THAT(outcome.reason(), HasSubstr("; sink third: xxx")) << "it is recalled by that";
}

TEST_F(RoutesTest, OneWorkerAtATimeAsksASinkThatIsAway) {
  Routes one({{{.sink = "only"}, first_}}, {});
  first_->answer(PublishResult::unavailable(0, "away"));
  deliver(one, event_);
  first_->hold(true);
  std::thread asks([&] { EXPECT_EQ(deliver(one, Event::json("Probe", "{}")).kind(), Kind::done); });
  first_->await_batches(2);
  const Outcome meanwhile = deliver(one, Event::json("T", "{}"));
  EXPECT_EQ(meanwhile.kind(), Kind::retry_after) << "it would hang with the other";
  EXPECT_EQ(meanwhile.reason(), "sink only: it was away, and another event is being tried");
  EXPECT_EQ(got(first_), 2U);
  first_->hold(false);
  asks.join();
  EXPECT_EQ(deliver(one, Event::json("T", "{}")).kind(), Kind::done);
}

TEST_F(RoutesTest, EventsAreRecalledWhenSomebodySaysThatTheSinkIsWorthIt) {
  ManualClock clock;
  Routes one({{{.sink = "only"}, first_}}, {.clock = &clock});
  first_->answer(PublishResult::unavailable(0, "later", 1h));
  EXPECT_EQ(deliver(one, event_).delay(), 1h);
  one.parked().revive();
  const auto recall = recalled(one);
  ASSERT_TRUE(recall.has_value());
  EXPECT_EQ(recall->name, "only");
}

TEST_F(RoutesTest, EventsOfASinkThatIsBackAreRecalled) {
  ManualClock clock;
  Routes one({{{.sink = "only"}, first_}}, {.clock = &clock});
  first_->answer(PublishResult::unavailable(0, "away"));
  deliver(one, event_);
  deliver(one, event_);
  const auto recall = recalled(one);
  ASSERT_TRUE(recall.has_value());
  EXPECT_EQ(recall->name, "only");
  one.parked().close();
  EXPECT_FALSE(one.parked().next().has_value());
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
