// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/diagnosis.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/daemon/overview_api.hpp"

namespace postrider::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Figures healthy() {
  Figures figures;
  figures.at = TimePoint{1000s};
  figures.database_up = true;
  figures.pairs.push_back({.name = {"wallets", "kafka"}, .leader = "n1"});
  figures.leaders.push_back(
      {.lease = "leader", .node = "n1", .heartbeat = TimePoint{999s}, .alive = true, .pairs = 1});
  return figures;
}

struct Case {
  const char* name;
  std::function<void(Figures&, std::vector<SinkHealth>&)> change;
  /// The worst cause; nothing: all is moving.
  std::optional<Cause> cause;
  const char* text;
};

std::vector<Case> cases() {
  return {
      {"Healthy", [](Figures&, auto&) {}, std::nullopt, "all is moving"},
      {"LagAloneIsNoCause", [](Figures& f, auto&) { f.pairs[0].lag_events = 100; }, std::nullopt,
       "all is moving"},
      {"DatabaseAway", [](Figures& f, auto&) { f = Figures{.trouble = "connection refused"}; },
       Cause::database_away, "connection refused"},
      {"PausedPair",
       [](Figures& f, auto&) {
         f.pairs[0].state = PairState::paused;
         f.pairs[0].lag_events = 7;
         f.pairs[0].lag_time = 30s;
       },
       Cause::paused_pair, "pair wallets/kafka is paused, 7 events behind, for 30 s"},
      {"PausedWithNothingToDo", [](Figures& f, auto&) { f.pairs[0].state = PairState::paused; }, std::nullopt,
       "all is moving"},
      {"FailedPair",
       [](Figures& f, auto&) {
         f.pairs[0].state = PairState::failed;
         f.pairs[0].last_error = "schema refused";
       },
       Cause::failed_pair, "wallets/kafka has stopped at an event that was refused: schema refused"},
      {"FailingPair",
       [](Figures& f, auto&) {
         f.pairs[0].error_count = 4;
         f.pairs[0].last_error = "timeout";
       },
       Cause::failing_pair, "wallets/kafka has failed 4 times and tries again: timeout"},
      {"UnhealthySinkExplainsAFailingPair",
       [](Figures& f, auto& sinks) {
         f.pairs[0].error_count = 4;
         sinks.push_back({"kafka", false});
       },
       Cause::unhealthy_sink, "sink kafka does not take events (and 1 more)"},
      {"ASinkThatIsDownIsNamedWithItsAddressAndWhatWaits",
       [](Figures& f, auto& sinks) {
         f.pairs[0].lag_events = 42;
         f.pairs.push_back({.name = {"payments", "kafka"}, .lag_events = 7});
         sinks.push_back({"kafka", false, "kafka", "Kafka at 127.0.0.1:9092: Connection refused"});
       },
       Cause::unhealthy_sink,
       "sink kafka (kafka): Kafka at 127.0.0.1:9092: Connection refused; 42 events wait"},
      {"BetweenTwoAttemptsItIsNotForgotten",
       [](Figures& f, auto& sinks) {
         f.pairs[0].lag_events = 2;
         sinks.push_back({"kafka", true, "kafka", "Kafka at 127.0.0.1:9092: Connection refused"});
       },
       Cause::unhealthy_sink,
       "sink kafka (kafka): Kafka at 127.0.0.1:9092: Connection refused; 2 events wait"},
      {"ASinkOfTheOutboxIsToldWithoutPairs",
       [](Figures&, auto& sinks) {
         sinks.push_back({"orders", true, "nats", "nats://h:4222: no route"});
       },
       Cause::unhealthy_sink, "sink orders (nats): nats://h:4222: no route"},
      {"WhatAnotherNodeHasPublishedMeanwhileIsHistory",
       [](Figures&, auto& sinks) {
         sinks.push_back({"kafka", true, "kafka", "Connection refused"});
       },
       std::nullopt, "all is moving"},
      {"TheSinkOfAnotherNodeIsToldByItsPair",
       [](Figures& f, auto&) {
         f.pairs[0].lag_events = 1;
         f.pairs[0].last_error = "the receiver is unavailable: redis://h:6379: cannot connect";
       },
       Cause::unhealthy_sink, "sink kafka: redis://h:6379: cannot connect; 1 event waits"},
      {"WhatThePairSaidLongAgoIsNoCauseWhenNothingWaits",
       [](Figures& f, auto&) { f.pairs[0].last_error = "the receiver is unavailable: no route"; },
       std::nullopt, "all is moving"},
      {"ARefusalIsNotTheSinks",
       [](Figures& f, auto&) {
         f.pairs[0].lag_events = 1;
         f.pairs[0].last_error = "event x at position 1: too large";
       },
       std::nullopt, "all is moving"},
      {"NoLeader",
       [](Figures& f, auto&) {
         f.leaders.clear();
         f.pairs[0].lag_events = 1;
       },
       Cause::no_leader, "nobody leads: 1 pair has events to publish"},
      {"APairThatNobodyLeads",
       [](Figures& f, auto&) {
         f.pairs.push_back(
             {.name = {"old", "screen"}, .head = Position{9}, .lag_events = 9, .lag_time = 18min});
       },
       Cause::unled_pair, "nobody leads pair old/screen: 9 events behind, for 18 min"},
      {"APairThatWasJustAdded",
       [](Figures& f, auto&) {
         f.pairs.push_back(
             {.name = {"old", "screen"}, .head = Position{9}, .lag_events = 9, .lag_time = 59s});
       },
       std::nullopt, "all is moving"},
      {"APairThatStandsStill",
       [](Figures& f, auto&) {
         f.pairs[0].head = Position{9};
         f.pairs[0].lag_events = 9;
         f.pairs[0].lag_time = 2min;
         f.pairs[0].last_published_at = f.at - 61s;
       },
       Cause::still_pair,
       "pair wallets/kafka publishes nothing, without an error: 9 events behind, for 2 min"},
      {"APairThatCatchesUpMoves",
       [](Figures& f, auto&) {
         f.pairs[0].head = Position{9};
         f.pairs[0].lag_events = 9;
         f.pairs[0].lag_time = 3h;
         f.pairs[0].last_published_at = f.at - 59s;
       },
       std::nullopt, "all is moving"},
      {"AStoreThatWasSetBack",
       [](Figures& f, auto&) {
         f.pairs[0].position = Position{31};
         f.pairs[0].head = Position{10};
       },
       Cause::store_set_back, "pair wallets/kafka stands at position 31, but the event store ends at 10"},
      {"ALockedTable",
       [](Figures& f, auto&) {
         f = Figures{.trouble = "it has not answered for 12 s",
                     .blocker = Blocker{.pid = 4711, .application = "psql", .open_for = 90s, .waiting = 1}};
       },
       Cause::blocking_transaction,
       "process 4711 (psql) holds a transaction open for 90 s; 1 session waits for it"},
      {"DeadNode",
       [](Figures& f, auto&) {
         f.leaders.push_back({.node = "n2", .heartbeat = TimePoint{970s}, .alive = false, .pairs = 3});
       },
       Cause::dead_node, "node n2 is dead or cut off, last heard of 30 s ago; 3 pairs were its"},
      {"ADeadNodeWithoutPairsIsHistory",
       [](Figures& f, auto&) { f.leaders.push_back({.node = "n2", .alive = false, .pairs = 0}); },
       std::nullopt, "all is moving"},
      {"AFullDisk", [](Figures& f, auto&) { f.refuses_writes = true; }, Cause::database_refuses,
       "the database answers, but does not take what is written"},
      {"BlockingTransaction",
       [](Figures& f, auto&) {
         f.pairs[0].state = PairState::failed;
         f.blocker = Blocker{.pid = 4711, .application = "psql", .open_for = 300s, .waiting = 2};
       },
       Cause::blocking_transaction,
       "process 4711 (psql) holds a transaction open for 5 min; 2 sessions wait for it (and 1 more)"},
      {"OutboxWaits",
       [](Figures& f, auto&) {
         f.outbox.pending = 9;
         f.outbox.oldest_undelivered = 3h;
       },
       Cause::outbox_waits, "9 events wait in the outbox, the oldest for 3 h"},
      {"AYoungBacklogIsNormal",
       [](Figures& f, auto&) {
         f.outbox.pending = 9;
         f.outbox.oldest_undelivered = 59s;
       },
       std::nullopt, "all is moving"},
      {"WhatIsRetriedDoesNotMove",
       [](Figures& f, auto&) {
         f.outbox = {.pending = 45,
                     .retrying = 44,
                     .oldest_undelivered = 30s,
                     .last_error = "kafka:9092: connection refused"};
       },
       Cause::outbox_waits,
       "45 events wait in the outbox, the oldest for 30 s; 44 were tried and not taken, the last error: "
       "kafka:9092: connection refused"},
      {"OneRetryIsNormal",
       [](Figures& f, auto&) {
         f.outbox = {.pending = 1, .retrying = 1, .oldest_undelivered = 9s, .last_error = "busy"};
       },
       std::nullopt, "all is moving"},
      {"QueueWaits",
       [](Figures& f, auto&) {
         f.queue.pending = 2;
         f.queue.oldest_pending = 61s;
       },
       Cause::queue_waits, "2 events wait in the queue, the oldest for 61 s"},
  };
}

class DiagnosisTest : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Causes, DiagnosisTest, ::testing::ValuesIn(cases()),
                         [](const auto& chosen) { return std::string(chosen.param.name); });

TEST_P(DiagnosisTest, NamesTheCause) {
  Figures figures = healthy();
  std::vector<SinkHealth> sinks{{"hooks", true}};
  GetParam().change(figures, sinks);
  const std::vector<Finding> findings = diagnose(&figures, {.sinks = sinks, .phase = "running"});
  EXPECT_EQ(findings.empty() ? std::nullopt : std::optional(findings.front().cause), GetParam().cause);
  EXPECT_THAT(stuck_line(findings), HasSubstr(GetParam().text));
  for (const Finding& finding : findings) EXPECT_FALSE(finding.hint.empty()) << finding.text;
}

TEST(SinkHealth, AnAbsenceThatNobodyHasSeenForLongIsHistory) {
  EXPECT_TRUE((SinkHealth{.name = "s"}).up());
  EXPECT_FALSE((SinkHealth{.name = "s", .healthy = false}).up());
  // It may be tried again, and has taken nothing yet: the API says what the metrics say.
  const SinkHealth away{.name = "s", .trouble = "connection refused", .counts = {.failures = 3}};
  EXPECT_FALSE(away.up());
  EXPECT_FALSE(sink_json(away).at("healthy").as_bool());
  EXPECT_TRUE(sink_json({.name = "s"}).at("healthy").as_bool());
  EXPECT_FALSE((SinkHealth{.name = "s", .trouble = "away", .counts = {.since_failure = 10min}}).up());
  EXPECT_TRUE((SinkHealth{.name = "s", .trouble = "away", .counts = {.since_failure = 11min}}).up());
}

TEST(Diagnosis, NobodyIsSaidToTryAgainWhoIsNotKnownToRun) {
  Figures figures = healthy();
  figures.outbox = {.pending = 1, .retrying = 1, .oldest_undelivered = 1h, .last_error = "refused"};
  const auto hint = [&](const Observer& observer, Cause cause) -> std::string {
    for (const Finding& finding : diagnose(&figures, observer)) {
      if (finding.cause == cause) return finding.hint;
    }
    return "no finding";
  };
  EXPECT_EQ(hint({.runs_outbox = true}, Cause::outbox_waits),
            "look after the receiver; they are tried again by themselves");
  EXPECT_THAT(hint({}, Cause::outbox_waits),
              HasSubstr("as long as a node with [outbox] enabled = true runs"));
  figures.pairs[0].lag_events = 1;
  figures.pairs[0].last_error = "the receiver is unavailable: no route";
  EXPECT_THAT(hint({}, Cause::unhealthy_sink), HasSubstr("it is tried again by itself")) << "somebody leads";
  figures.leaders[0].alive = false;
  EXPECT_THAT(hint({}, Cause::unhealthy_sink), HasSubstr("once a node with [relay] enabled = true runs"));
}

TEST(Diagnosis, AnErrorsOwnHintIsTheOnlyOne) {
  Figures figures = healthy();
  figures.pairs[0].error_count = 2;
  figures.pairs[0].last_error = "no such topic. Hint: create it";
  const std::vector<Finding> findings = diagnose(&figures, {});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].text, "pair wallets/kafka has failed 2 times and tries again: no such topic");
  EXPECT_EQ(findings[0].hint, "create it");
}

TEST(Diagnosis, ASinkThatSaysItselfWhatToDoIsNotContradicted) {
  const Figures figures = healthy();
  const std::vector<Finding> findings = diagnose(
      &figures,
      {.sinks = {
           {.name = "hook", .healthy = false, .type = "webhook", .trouble = "410 Gone. Hint: revive it"}}});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].text, "sink hook (webhook): 410 Gone");
  EXPECT_EQ(findings[0].hint, "revive it");
}

TEST(Diagnosis, BeforeTheFirstLookThePhaseIsTold) {
  const std::vector<Finding> findings = diagnose(nullptr, {.phase = "waiting for the database: no route"});
  EXPECT_EQ(stuck_line(findings), "waiting for the database: no route");
}

TEST(Diagnosis, TenThousandFailedPairsDoNotMakeTenThousandLines) {
  Figures figures = healthy();
  for (int i = 0; i < 10'000; ++i) {
    figures.pairs.push_back({.name = {"t" + std::to_string(i), "p"}, .state = PairState::failed});
  }
  const std::vector<Finding> findings = diagnose(&figures, {.phase = "running"});
  EXPECT_EQ(findings.size(), 5U);
  EXPECT_THAT(findings.back().text, HasSubstr("and 9995 more like it"));
}

}  // namespace
}  // namespace postrider::daemon
