// SPDX-License-Identifier: Apache-2.0
#include "postrider/async_logger.hpp"

#include <thread>

#include "logger/logger_fixture.hpp"

namespace postrider::logger {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

using AsyncLogger = LoggerFixture;

TEST_F(AsyncLogger, DeliversInBatchesAndInOrder) {
  AsyncEventLogger logger(client, options());
  log_numbers(logger, 1, 500);
  ASSERT_TRUE(logger.flush());
  EXPECT_EQ(client->details(), numbers(1, 500));
  for (const std::size_t size : client->sizes()) EXPECT_LE(size, 50U);
  const std::vector<std::string> keys = client->keys();
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), 500U);
  const LoggerStats stats = logger.stats();
  EXPECT_EQ(stats.delivered, 500U);
  EXPECT_EQ(stats.pending(), 0U);
  expect_balance(stats);
}

TEST_F(AsyncLogger, TakesAListAndTheBuildersOptions) {
  ManualClock clock;
  testing::RecordingMetrics metrics;
  std::string last_line;
  const auto logger = AsyncEventLogger::builder()
                          .client(client)
                          .options(options())
                          .batch_size(10)
                          .queue_capacity(1000)
                          .fsync(FsyncMode::group)
                          .full_policy(FullPolicy::block)
                          .block_timeout(2s)
                          .replay_rate(1000)
                          .retry_budget(0.25)
                          .spillover_path(temp.file("other"))
                          .max_batch_wait(0us)
                          .enabled(true)
                          .application_id("shop")
                          .originating_system("SHOP")
                          .user_id("7")
                          .clock(clock)
                          .metrics(metrics)
                          .log([&](LogLevel, std::string_view text) { last_line = text; })
                          .build();
  const std::vector<EventLogEntry> entries{numbered(1), numbered(2), numbered(3)};
  EXPECT_EQ(logger->log(entries), 3U);
  ASSERT_TRUE(logger->flush());
  EXPECT_THAT(client->details(), ElementsAre("1", "2", "3"));
  EXPECT_EQ(logger->options().batch_size, 10U);
  EXPECT_EQ(logger->options().fsync, FsyncMode::group);
  EXPECT_EQ(logger->options().full_policy, FullPolicy::block);
  EXPECT_EQ(logger->options().block_timeout, 2s);
  EXPECT_EQ(logger->options().replay_rate, 1000U);
  EXPECT_EQ(logger->options().retry_budget, 0.25);
  EXPECT_TRUE(std::filesystem::exists(temp.path() / "other"));
  EXPECT_EQ(logger->options().application_id, "shop");
  EXPECT_EQ(logger->options().originating_system, "SHOP");
  EXPECT_EQ(logger->options().user_id, "7");
  EXPECT_EQ(logger->options().clock, &clock);
  EXPECT_EQ(logger->options().metrics, &metrics);
  logger->shutdown();
  EXPECT_THAT(last_line, ::testing::HasSubstr("3 logged, 3 delivered"));
}

TEST_F(AsyncLogger, RefusesOptionsOutOfBoundsByName) {
  const auto refused = [&](const char* name, auto change) {
    LoggerOptions changed = options(false);
    change(changed);
    try {
      AsyncEventLogger logger(client, changed);
      FAIL() << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(name));
    }
  };
  refused("queue_capacity", [](LoggerOptions& o) { o.queue_capacity = 0; });
  refused("max_retries", [](LoggerOptions& o) { o.max_retries = -1; });
  refused("max_retry_delay", [](LoggerOptions& o) { o.max_retry_delay = 0us; });
  refused("retry_budget", [](LoggerOptions& o) { o.retry_budget = -1; });
  refused("circuit_breaker_threshold", [](LoggerOptions& o) { o.circuit_breaker_threshold = 0; });
  refused("batch_size", [](LoggerOptions& o) { o.batch_size = 0; });
  refused("sender_threads", [](LoggerOptions& o) { o.sender_threads = 0; });
  refused("max_spillover_events", [](LoggerOptions& o) { o.max_spillover_events = 0; });
  refused("max_spillover_bytes", [](LoggerOptions& o) { o.max_spillover_bytes = 1; });
  refused("ring_bytes", [](LoggerOptions& o) { o.ring_bytes = 1; });
  refused("ring", [](LoggerOptions& o) { o.ring = RingMode::mapped; });
  EXPECT_THROW(AsyncEventLogger(nullptr, options(false)), Error);
}

TEST_F(AsyncLogger, DefaultsAreTheSeeds) {
  const LoggerOptions defaults;
  EXPECT_EQ(defaults.queue_capacity, 10'000U);
  EXPECT_EQ(defaults.max_retries, 3);
  EXPECT_EQ(defaults.base_retry_delay, 1000ms);
  EXPECT_EQ(defaults.max_retry_delay, 30'000ms);
  EXPECT_EQ(defaults.circuit_breaker_threshold, 5);
  EXPECT_EQ(defaults.circuit_breaker_reset, 30'000ms);
  EXPECT_EQ(defaults.spillover_path, "");
  EXPECT_EQ(defaults.replay_interval, 10'000ms);
  EXPECT_EQ(defaults.max_spillover_events, 10'000U);
  EXPECT_EQ(defaults.max_spillover_bytes, 50U * 1024 * 1024);
  EXPECT_EQ(defaults.batch_size, 50U);
  EXPECT_EQ(defaults.sender_threads, 1U);
  EXPECT_EQ(defaults.max_batch_wait, 100ms);
}

// The five triggers.

TEST_F(AsyncLogger, Trigger1AFullQueueGoesToDisk) {
  LoggerOptions small = options();
  small.queue_capacity = 5;
  AsyncEventLogger logger(client, small);
  ASSERT_NO_FATAL_FAILURE(fill_queue_of_five(logger));
  EXPECT_FALSE(logger.flush(0us)) << "HazardL17: one is in flight, and five are queued";
  for (std::size_t i = 6; i <= 20; ++i) {  // one by one: the way to the disk is a queue of five, too
    logger.log(numbered(i));
    ASSERT_TRUE(await(logger, [&](const LoggerStats& stats) { return stats.spilled == i - 5; }));
  }
  client->release();
  ASSERT_TRUE(logger.flush());
  LoggerStats stats = logger.stats();
  EXPECT_EQ(stats.on_disk, 15U);
  expect_balance(stats);
  logger.replay_soon();
  ASSERT_TRUE(client->await_delivered(21));
  EXPECT_EQ(client->details(), numbers(0, 20));
}

TEST_F(AsyncLogger, Trigger2ExhaustedRetriesGoToDisk) {
  LoggerOptions patient = options();
  patient.circuit_breaker_threshold = 1000;
  client->down();
  AsyncEventLogger logger(client, patient);
  logger.log(numbered(1));
  ASSERT_TRUE(logger.flush());
  EXPECT_EQ(client->requests(), 4U) << "once, and three retries";
  const LoggerStats stats = logger.stats();
  EXPECT_EQ(stats.on_disk, 1U);
  EXPECT_EQ(stats.retries, 3U);
  EXPECT_EQ(stats.all_lost(), 0U);
  EXPECT_THAT(file("eventlog-spillover.jsonl"), HasSubstr(R"("details":"1")"));
}

TEST_F(AsyncLogger, Trigger3AnOpenCircuitGoesToDiskWithoutARequest) {
  ManualClock clock;
  LoggerOptions strict = direct();
  strict.circuit_breaker_threshold = 2;
  strict.clock = &clock;
  client->down();
  AsyncEventLogger logger(client, strict);
  for (std::size_t i = 1; i <= 5; ++i) {
    logger.log(numbered(i));
    ASSERT_TRUE(logger.flush());
  }
  EXPECT_EQ(client->requests(), 2U);
  EXPECT_TRUE(logger.stats().circuit_open);
  EXPECT_EQ(logger.stats().on_disk, 5U);
  // Without new traffic: the time of the circuit passes, the replay probes, and brings all back.
  client->up();
  logger.replay_soon();
  clock.advance(30s);
  logger.replay_soon();
  ASSERT_TRUE(client->await_delivered(5));
  EXPECT_EQ(client->details(), numbers(1, 5));
  EXPECT_EQ(client->sizes()[2], 1U) << "a probe of one";
}

TEST_F(AsyncLogger, AReceiverThatAsksForAYearIsAskedAgainBefore) {
  ManualClock clock;
  LoggerOptions patient = direct();
  patient.max_retries = 3;
  patient.batch_size = 1;  // so that nothing waits for company while the clock stands still
  patient.clock = &clock;
  client->answer([](auto) {
    return SendResult{
        .verdict = SendVerdict::throttled, .status = 429, .retry_after = std::chrono::hours{24 * 365}};
  });
  AsyncEventLogger logger(client, patient);
  logger.log(numbered(1));
  ASSERT_TRUE(client->await_requests(1));
  ASSERT_TRUE(await(logger, [](const LoggerStats& stats) { return stats.retries == 1; }));
  client->up();
  clock.advance(6min);
  EXPECT_TRUE(client->await_delivered(1));
}

TEST_F(AsyncLogger, AReceiverThatTakesEventsAndSpeaksOfAPauseIsStillSentTo) {
  ManualClock clock;
  LoggerOptions single = direct();
  single.batch_size = 1;
  single.clock = &clock;
  client->answer([](auto) { return SendResult{.retry_after = 60s}; });
  AsyncEventLogger logger(client, single);
  log_numbers(logger, 1, 3);
  EXPECT_TRUE(client->await_requests(3)) << "the clock stands still";
}

TEST_F(AsyncLogger, Trigger4ARetryThatFindsTheQueueFullGoesToDisk) {
  ManualClock clock;
  AsyncEventLogger logger(client, crowded(clock, true));
  ASSERT_NO_FATAL_FAILURE(crowd_out_a_retry(logger, clock));
  const LoggerStats stats = logger.stats();
  EXPECT_EQ(stats.all_lost(), 0U);
  EXPECT_THAT(file("eventlog-spillover.jsonl"), HasSubstr(R"("details":"1")"));
  expect_balance(stats);
}

TEST_F(AsyncLogger, Trigger5StragglersOfTheShutdownGoToDisk) {
  LoggerOptions brief = options();
  brief.shutdown_timeout = 0us;
  brief.circuit_breaker_threshold = 1000;
  client->hang();
  AsyncEventLogger logger(client, brief);
  log_numbers(logger, 1, 200);
  ASSERT_TRUE(client->await_requests(1));
  logger.shutdown();
  const LoggerStats stats = logger.stats();
  EXPECT_EQ(stats.on_disk, 200U) << "the interrupted request's, too";
  EXPECT_EQ(stats.all_lost(), 0U);
  EXPECT_EQ(stats.in_flight + stats.in_rings, 0U);
  expect_balance(stats);
}

// Hazards.

TEST_F(AsyncLogger, HazardL1ARefusedEventGoesToTheDeadLettersAndTheReplayGoesOn) {
  client->down();
  {
    AsyncEventLogger logger(client, direct());
    log_numbers(logger, 1, 20);
    ASSERT_TRUE(logger.flush());
    EXPECT_EQ(logger.stats().on_disk, 20U);
  }
  client->answer([](std::span<const OutgoingEvent> events) {
    const bool bad = std::any_of(events.begin(), events.end(),
                                 [](const auto& e) { return FakeClient::details_of(e.members) == "7"; });
    return bad ? SendResult{.verdict = SendVerdict::rejected, .status = 400, .reason = "bad \"step\""}
               : SendResult{};
  });
  AsyncEventLogger logger(client, direct());
  EXPECT_EQ(logger.stats().recovered, 20U);
  logger.replay_soon();
  ASSERT_TRUE(client->await_delivered(19));
  ASSERT_TRUE(await_empty_disk(logger));
  const LoggerStats stats = logger.stats();
  EXPECT_EQ(stats.replayed, 19U);
  EXPECT_EQ(stats.dead, 1U);
  expect_balance(stats);
  EXPECT_THAT(file("eventlog-spillover.dead.jsonl"), HasSubstr(R"({"status":400,"reason":"bad \"step\"")"));
  EXPECT_THAT(file("eventlog-spillover.dead.jsonl"), HasSubstr(R"("details":"7")"));
}

TEST_F(AsyncLogger, HazardL1AnEventThatAlwaysMakesTheReceiverFailIsFoundAndBuried) {
  client->down();
  LoggerOptions patient = direct();
  patient.circuit_breaker_threshold = 1000;
  AsyncEventLogger logger(client, patient);
  log_numbers(logger, 1, 5);
  ASSERT_TRUE(logger.flush());
  client->answer([](std::span<const OutgoingEvent> events) {
    const bool poison = FakeClient::details_of(events.front().members) == "1";
    return poison ? FakeClient::failed(500) : SendResult{};
  });
  const std::size_t before = client->requests();
  for (std::size_t i = 1; i <= 4; ++i) {
    logger.replay_soon();
    ASSERT_TRUE(client->await_requests(before + i));
  }
  ASSERT_TRUE(client->await_delivered(4));
  ASSERT_TRUE(await_empty_disk(logger));
  EXPECT_EQ(logger.stats().dead, 1U);
  expect_balance(logger.stats());
}

TEST_F(AsyncLogger, HazardL2ABadNeighbourNeitherFailsItsBatchNorOpensTheCircuit) {
  LoggerOptions strict = options();
  strict.circuit_breaker_threshold = 1;
  strict.max_batch_wait = 10s;  // full batches
  client->answer([](std::span<const OutgoingEvent> events) {
    const auto bad = std::count_if(events.begin(), events.end(),
                                   [](const auto& e) { return FakeClient::details_of(e.members) == "13"; });
    return bad != 0 ? SendResult{.verdict = SendVerdict::rejected, .status = 400} : SendResult{};
  });
  AsyncEventLogger logger(client, strict);
  log_numbers(logger, 1, 50);
  ASSERT_TRUE(logger.flush());
  LoggerStats stats = logger.stats();
  EXPECT_EQ(stats.delivered, 49U);
  EXPECT_EQ(stats.dead, 1U);
  EXPECT_FALSE(stats.circuit_open);

  // The same with a receiver that tells about each.
  client->answer([](std::span<const OutgoingEvent> events) {
    SendResult result;
    for (const auto& e : events) {
      const bool bad = FakeClient::details_of(e.members) == "63";
      result.items.push_back({bad ? SendVerdict::rejected : SendVerdict::delivered, bad ? 400 : 201, ""});
    }
    return result;
  });
  const std::size_t before = client->requests();
  log_numbers(logger, 51, 100);
  ASSERT_TRUE(logger.flush());
  stats = logger.stats();
  EXPECT_EQ(stats.delivered, 98U);
  EXPECT_EQ(stats.dead, 2U);
  EXPECT_LE(client->requests(), before + 2) << "no halving is needed then";
}

TEST_F(AsyncLogger, ABatchThatIsTooLargeIsSplit) {
  client->answer([](std::span<const OutgoingEvent> events) {
    return events.size() > 8 ? SendResult{.verdict = SendVerdict::too_large, .status = 413} : SendResult{};
  });
  AsyncEventLogger logger(client, options());
  log_numbers(logger, 1, 50);
  ASSERT_TRUE(logger.flush());
  EXPECT_EQ(logger.stats().delivered, 50U);
  EXPECT_EQ(client->details(), numbers(1, 50)) << "and stays in order";
}

TEST_F(AsyncLogger, HazardL15ACallbackMayThrowAndMayLog) {
  LoggerOptions lossy = direct(false);
  AsyncEventLogger* self = nullptr;
  std::atomic<int> calls{0};
  lossy.on_loss = [&](const LostEvent& lost) {
    ++calls;
    EXPECT_THAT(std::string(lost.json), HasSubstr("details"));
    EventLogEntry large = numbered(0);
    large.details(std::string(1 << 16, 'x'));
    EXPECT_FALSE(self->log(large)) << "lost as well, and not told again";
    throw std::runtime_error("from the callback");
  };
  client->down();
  AsyncEventLogger logger(client, lossy);
  self = &logger;
  log_numbers(logger, 1, 3);
  ASSERT_TRUE(logger.flush());
  const LoggerStats stats = logger.stats();
  EXPECT_EQ(stats.lost_for(LossReason::retries_exhausted), 3U);
  EXPECT_EQ(stats.lost_for(LossReason::serialization), 3U);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(stats.callback_failures, 3U);
  expect_balance(stats);
}

TEST_F(AsyncLogger, HazardL13TwoLoggersOnOneFolder) {
  AsyncEventLogger logger(client, options());
  EXPECT_THROW(AsyncEventLogger(client, options()), Error);
}

TEST_F(AsyncLogger, HazardL17FlushWaitsForWhatIsInFlight) {
  AsyncEventLogger logger(client, options());
  client->hang();
  logger.log(numbered(1));
  ASSERT_TRUE(client->await_requests(1));
  EXPECT_FALSE(logger.flush(1ms));
  std::jthread later([&] { client->release(); });
  EXPECT_TRUE(logger.flush());
  EXPECT_EQ(client->details(), numbers(1, 1));
}

TEST_F(AsyncLogger, HazardL12WhatComesDuringAShutdownIsDeliveredOrKeptOrRefused) {
  for (int round = 0; round < 6; ++round) {
    const auto mine = std::make_shared<FakeClient>();
    LoggerOptions here = options();
    here.spillover_path = temp.file("spill" + std::to_string(round));
    AsyncEventLogger logger(mine, here);
    std::atomic<std::uint64_t> calls{0};
    std::vector<std::jthread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([&] {
        while (true) {
          ++calls;
          if (!logger.log(numbered(1))) break;
        }
      });
    }
    ASSERT_TRUE(mine->await_delivered(10));
    logger.shutdown();
    threads.clear();
    const LoggerStats stats = logger.stats();
    ASSERT_EQ(stats.logged, calls);
    expect_balance(stats);
    ASSERT_EQ(stats.in_flight + stats.in_rings, 0U);
  }
}

}  // namespace
}  // namespace postrider::logger
