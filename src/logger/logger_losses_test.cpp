// SPDX-License-Identifier: Apache-2.0
// Every reason for a loss, conservation across restarts, many threads.
#include <future>
#include <thread>

#include "logger/logger_fixture.hpp"

namespace postrider::logger {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

struct LoggerLosses : LoggerFixture {
  /// The one reason that has a count.
  void expect_lost(const AsyncEventLogger& logger, LossReason reason, std::uint64_t count) {
    const LoggerStats stats = logger.stats();
    EXPECT_EQ(stats.lost_for(reason), count) << to_string(reason);
    EXPECT_EQ(stats.all_lost(), count) << "and nothing else";
    expect_balance(stats);
    expect_losses_told(stats);
  }
};

TEST_F(LoggerLosses, QueueFullWhenTheRingIs) {
  LoggerOptions small = options(false);
  small.queue_capacity = 5;
  small.ring_bytes = 64 * 1024;
  AsyncEventLogger logger(client, small);
  ASSERT_NO_FATAL_FAILURE(fill_queue_of_five(logger));
  std::uint64_t refused = 0;
  for (std::size_t i = 6; i < 2000; ++i) refused += logger.log(numbered(i)) ? 0 : 1;
  EXPECT_GT(refused, 100U);
  client->release();
  ASSERT_TRUE(logger.flush());
  expect_lost(logger, LossReason::queue_full, refused);
}

TEST_F(LoggerLosses, SpilloverQueueFullWhenTheRingIs) {
  LoggerOptions tiny = options();
  tiny.ring_bytes = 64 * 1024;
  tiny.queue_capacity = 5;
  client->hang();
  std::promise<void> go_on;
  const PointWatch slow_disk({"logger.spill.written"},
                             [written = go_on.get_future().share()](const std::string&) { written.wait(); });
  AsyncEventLogger logger(client, tiny);
  std::uint64_t refused = 0;
  for (std::size_t i = 0; i < 2000; ++i) refused += logger.log(numbered(i)) ? 0 : 1;
  EXPECT_GT(refused, 100U);
  client->release();
  go_on.set_value();
  ASSERT_TRUE(logger.flush());
  expect_lost(logger, LossReason::spillover_queue_full, refused);
  EXPECT_TRUE(logger.log(numbered(1))) << "room again";
}

TEST_F(LoggerLosses, ACallbackThatEndsTheLoggerDoesNotHangAndAListIsTakenAsOne) {
  client->down();
  LoggerOptions once = direct(false);
  AsyncEventLogger* self = nullptr;
  once.on_loss = [&](const LostEvent&) { self->shutdown(); };
  AsyncEventLogger logger(client, once);
  self = &logger;
  EXPECT_EQ(logger.log({numbered(1), numbered(2)}), 2U);
  ASSERT_TRUE(logger.flush());
  EXPECT_EQ(logger.stats().all_lost(), 2U);
  client->up();
  EXPECT_TRUE(logger.log(numbered(3))) << "it goes on";
}

TEST_F(LoggerLosses, BlockWaitsForRoomInTheRing) {
  LoggerOptions tiny = options(false);
  tiny.ring_bytes = 64 * 1024;
  tiny.full_policy = FullPolicy::block;
  tiny.block_timeout = 60s;
  AsyncEventLogger logger(client, tiny);
  for (std::size_t i = 1; i <= 5000; ++i) ASSERT_TRUE(logger.log(numbered(i)));
  ASSERT_TRUE(logger.flush());
  EXPECT_EQ(logger.stats().delivered, 5000U);
  expect_lost(logger, LossReason::queue_full, 0);
}

TEST_F(LoggerLosses, RetriesExhausted) {
  client->down();
  LoggerOptions patient = options(false);
  patient.circuit_breaker_threshold = 1000;
  AsyncEventLogger logger(client, patient);
  log_numbers(logger, 1, 3);
  ASSERT_TRUE(logger.flush());
  expect_lost(logger, LossReason::retries_exhausted, 3);
}

TEST_F(LoggerLosses, RetryRequeueFailed) {
  ManualClock clock;
  AsyncEventLogger logger(client, crowded(clock, false));
  ASSERT_NO_FATAL_FAILURE(crowd_out_a_retry(logger, clock));
  expect_lost(logger, LossReason::retry_requeue_failed, 1);
}

TEST_F(LoggerLosses, RetryExecutorRejected) {
  LoggerOptions brief = options(false);
  brief.shutdown_timeout = 0us;
  client->hang();
  AsyncEventLogger logger(client, brief);
  logger.log(numbered(1));
  ASSERT_TRUE(client->await_requests(1));
  logger.shutdown();
  expect_lost(logger, LossReason::retry_executor_rejected, 1);
}

TEST_F(LoggerLosses, ShutdownInProgress) {
  AsyncEventLogger logger(client, options());
  logger.shutdown();
  EXPECT_FALSE(logger.log(numbered(1)));
  logger.shutdown();
  expect_lost(logger, LossReason::shutdown_in_progress, 1);
}

TEST_F(LoggerLosses, ShutdownPendingRetry) {
  ManualClock clock;
  LoggerOptions slow = options(false);
  slow.clock = &clock;
  slow.max_batch_wait = 0us;
  slow.base_retry_delay = slow.max_retry_delay = 3600s;
  client->down();
  AsyncEventLogger logger(client, slow);
  logger.log(numbered(1));
  ASSERT_TRUE(await(logger, [](const LoggerStats& stats) { return stats.retries == 1; }));
  logger.shutdown();
  expect_lost(logger, LossReason::shutdown_pending_retry, 1);
}

TEST_F(LoggerLosses, SpilloverMaxEventsAndMaxSize) {
  client->down();
  LoggerOptions few = direct();
  few.max_spillover_events = 10;
  {
    AsyncEventLogger logger(client, few);
    log_numbers(logger, 1, 15);
    ASSERT_TRUE(logger.flush());
    expect_lost(logger, LossReason::spillover_max_events, 5);
  }
  losses.clear();
  LoggerOptions tight = direct();
  tight.spillover_path = temp.file("tight");
  tight.max_spillover_bytes = 4096;
  AsyncEventLogger logger(client, tight);
  log_numbers(logger, 1, 50);
  ASSERT_TRUE(logger.flush());
  const LoggerStats stats = logger.stats();
  EXPECT_LE(stats.backlog_bytes, 4096U);
  expect_lost(logger, LossReason::spillover_max_size, 50 - stats.on_disk);
}

TEST_F(LoggerLosses, DropOldestGivesUpOldFiles) {
  client->down();
  LoggerOptions tight = direct();
  tight.full_policy = FullPolicy::drop_oldest;
  tight.max_spillover_bytes = 256 * 1024;
  AsyncEventLogger logger(client, tight);
  for (std::size_t i = 1; i <= 4000; i += 500) {
    log_numbers(logger, i, i + 499);
    ASSERT_TRUE(logger.flush());
  }
  EXPECT_EQ(logger.stats().lost_for(LossReason::spillover_max_size), 4000 - logger.stats().on_disk);
  expect_balance(logger.stats());
  client->up();
  EXPECT_THAT(file("eventlog-spillover.jsonl"), HasSubstr(R"("details":"4000")")) << "the newest is there";
}

/// One event more than fits must not cost a backlog.
TEST_F(LoggerLosses, DropOldestLosesAThirtySecondOfTheEventsAtMost) {
  client->down();
  for (const std::uint64_t most : {5, 64, 640}) {
    for (const RingMode ring : {RingMode::memory, RingMode::mapped}) {
      LoggerOptions tight = direct();
      tight.spillover_path =
          temp.file("tight" + std::to_string(most) + (ring == RingMode::mapped ? "m" : ""));
      tight.full_policy = FullPolicy::drop_oldest;
      tight.max_spillover_events = most;
      tight.ring = ring;
      AsyncEventLogger logger(client, tight);
      log_numbers(logger, 1, most);
      ASSERT_TRUE(logger.flush());
      EXPECT_EQ(logger.stats().on_disk, most);
      logger.log(numbered(most + 1));
      ASSERT_TRUE(logger.flush());
      const std::uint64_t lost = logger.stats().lost_for(LossReason::spillover_max_events);
      EXPECT_GE(lost, 1U);
      EXPECT_LE(lost, std::max<std::uint64_t>(most / 32, 1)) << "of " << most;
      EXPECT_EQ(logger.stats().on_disk, most + 1 - lost);
      expect_balance(logger.stats());
    }
  }
}

TEST_F(LoggerLosses, WhatDropOldestHasGivenUpIsToldOnceAlsoAcrossARestart) {
  client->down();
  LoggerOptions tight = direct();
  tight.full_policy = FullPolicy::drop_oldest;
  tight.max_spillover_bytes = 256 * 1024;
  tight.circuit_breaker_reset = 1ms;
  tight.replay_interval = 1ms;
  std::uint64_t lost = 0;
  std::uint64_t kept = 0;
  {
    AsyncEventLogger logger(client, tight);
    for (std::size_t i = 1; i <= 4000; i += 500) {
      // The replay holds the oldest file while those behind it are given up.
      if (i == 1501) {
        client->up();
        client->hang();
        const std::size_t before = client->requests();
        logger.replay_soon();
        ASSERT_TRUE(client->await_requests(before + 1));
        client->down();
      }
      log_numbers(logger, i, i + 499);
      if (i < 1501) {
        ASSERT_TRUE(logger.flush());
      }
    }
    client->release();
    ASSERT_TRUE(logger.flush());
    logger.shutdown();
    const LoggerStats stats = logger.stats();
    expect_balance(stats);
    expect_losses_told(stats);
    lost = stats.all_lost();
    kept = stats.pending();
    EXPECT_GT(lost, 0U);
    EXPECT_EQ(stats.delivered + kept + lost, 4000U);
  }
  client->up();
  AsyncEventLogger logger(client, tight);
  EXPECT_EQ(logger.stats().recovered, kept);
  logger.replay_soon();
  ASSERT_TRUE(await_empty_disk(logger));
  EXPECT_EQ(logger.stats().delivered, kept);
  EXPECT_EQ(logger.stats().all_lost(), 0U) << "the last process has told of them";
  expect_balance(logger.stats());
}

TEST_F(LoggerLosses, AnOpenCircuitWithoutASpillFolderHoldsAQueueFullAndSaysSo) {
  LoggerOptions held = options(false);
  held.queue_capacity = 10;
  held.max_batch_wait = 0us;
  held.batch_size = 5;
  held.max_retries = 0;
  held.circuit_breaker_threshold = 1;
  ManualClock clock;
  held.clock = &clock;
  std::vector<std::string> said;
  held.log = [&](LogLevel, std::string_view text) {
    const std::lock_guard lock(mutex);
    said.emplace_back(text);
  };
  client->down();
  AsyncEventLogger logger(client, held);
  logger.log(numbered(0));
  ASSERT_TRUE(await(logger, [](const LoggerStats& stats) { return stats.circuit_open; }));
  ASSERT_TRUE(await(logger, [](const LoggerStats& stats) { return stats.all_lost() == 1; }));
  {
    const std::lock_guard lock(mutex);
    ASSERT_GE(said.size(), 1U);
    EXPECT_THAT(
        said[0],
        HasSubstr("takes no events: down; there is no spillover_path: an event is lost after "
                  "1 attempt at most, or when it comes while 10 events wait in memory and its ring is full"));
  }
  log_numbers(logger, 1, 30);
  // Ten in the queue, and perhaps the batch that a sender has given back to it; the others wait in the ring.
  ASSERT_TRUE(await(logger, [](const LoggerStats& stats) {
    return stats.queue_depth >= 10 && stats.in_flight == stats.queue_depth;
  }));
  const LoggerStats full = logger.stats();
  EXPECT_LE(full.in_flight, 15U);
  EXPECT_EQ(full.in_flight + full.in_rings, 30U);
  EXPECT_EQ(full.all_lost(), 1U) << "that of the beginning";
  EXPECT_EQ(client->requests(), 1U) << "an open circuit asks nobody";
  // When it closes, those that waited are delivered.
  client->up();
  clock.advance(31s);
  ASSERT_TRUE(client->await_delivered(30));
  ASSERT_TRUE(await(logger, [](const LoggerStats& stats) { return stats.pending() == 0; }));
  expect_balance(logger.stats());
  expect_losses_told(logger.stats());
  const std::lock_guard lock(mutex);
  EXPECT_EQ(said.back(), "postrider: the event log takes events again, after 31 s");
}

TEST_F(LoggerLosses, Serialization) {
  AsyncEventLogger logger(client, options());
  EventLogEntry large = numbered(1);
  large.details(std::string(1 << 16, 'x'));
  EXPECT_FALSE(logger.log(large));
  expect_lost(logger, LossReason::serialization, 1);
}

TEST_F(LoggerLosses, RejectedWithoutDeadLetters) {
  client->answer([](auto) { return SendResult{.verdict = SendVerdict::rejected, .status = 422}; });
  AsyncEventLogger logger(client, options(false));
  log_numbers(logger, 1, 3);
  ASSERT_TRUE(logger.flush());
  expect_lost(logger, LossReason::rejected, 3);
}

TEST_F(LoggerLosses, Corrupted) {
  client->down();
  {
    AsyncEventLogger logger(client, direct());
    log_numbers(logger, 1, 9);
    ASSERT_TRUE(logger.flush());
  }
  std::string text = file("eventlog-spillover.jsonl");
  text[text.size() / 2] ^= 1;
  std::ofstream(temp.path() / "spill" / "eventlog-spillover.jsonl") << text;
  client->up();
  AsyncEventLogger logger(client, direct());
  logger.replay_soon();
  ASSERT_TRUE(client->await_delivered(8));
  ASSERT_TRUE(await_empty_disk(logger));
  expect_lost(logger, LossReason::corrupted, 1);
  EXPECT_EQ(logger.stats().quarantined, 1U);
}

TEST_F(LoggerLosses, ThePetResort75EventsWhileTheApiIsDownThenARestart) {
  LoggerOptions resort = options();
  resort.spillover_path = temp.file("spill");
  client->down();
  {
    AsyncEventLogger logger(client, resort);
    for (std::size_t booking = 0; booking < 15; ++booking)
      log_numbers(logger, booking * 5 + 1, booking * 5 + 5);
    ASSERT_TRUE(logger.flush());
    EXPECT_EQ(logger.stats().on_disk, 75U);
    EXPECT_EQ(logger.stats().all_lost(), 0U);
  }
  client->up();
  ManualClock clock;
  resort.clock = &clock;
  resort.replay_interval = 10s;
  AsyncEventLogger logger(client, resort);
  EXPECT_EQ(logger.stats().recovered, 75U);
  // No new traffic, and no time that passes.
  ASSERT_TRUE(client->await_delivered(75));
  // What waited for a retry went to disk after what came while the circuit was open.
  EXPECT_THAT(client->details(), UnorderedElementsAreArray(numbers(1, 75)));
  ASSERT_TRUE(await_empty_disk(logger));
  EXPECT_EQ(logger.stats().replayed, 75U);
  expect_balance(logger.stats());
}

TEST_F(LoggerLosses, ConservationHoldsAcrossRestarts) {
  std::uint64_t logged = 0;
  std::uint64_t delivered = 0;
  std::uint64_t left = 0;
  LoggerOptions here = direct();
  here.circuit_breaker_reset = 1ms;
  here.ring = RingMode::mapped;
  for (int life = 0; life < 6; ++life) {
    if (life % 2 == 0) client->down();
    if (life % 2 == 1) client->up();
    AsyncEventLogger logger(client, here);
    EXPECT_EQ(logger.stats().recovered, left);
    log_numbers(logger, 1, 100);
    ASSERT_TRUE(logger.flush());
    if (life == 3) {
      logger.replay_soon();
      ASSERT_TRUE(await(logger, [](const LoggerStats& stats) { return stats.on_disk <= 50; }));
    }
    logger.shutdown();
    const LoggerStats stats = logger.stats();
    expect_balance(stats);
    logged += stats.logged;
    delivered += stats.delivered;
    left = stats.pending();
  }
  EXPECT_EQ(logged, 600U);
  EXPECT_EQ(logged, delivered + left);
  EXPECT_EQ(client->keys().size(), delivered);
}

TEST_F(LoggerLosses, SixteenThreadsAndAnUnsteadyReceiver) {
  constexpr std::size_t threads = 16;
  constexpr std::size_t each = 400;
  LoggerOptions busy = options();
  busy.sender_threads = 4;
  busy.circuit_breaker_reset = 1ms;
  busy.max_spillover_events = 1'000'000;
  busy.replay_interval = 1ms;
  busy.full_policy = FullPolicy::block;
  busy.block_timeout = 60s;
  std::atomic<std::uint64_t> requests{0};
  client->answer([&](std::span<const OutgoingEvent>) {
    return ++requests % 3 == 0 ? FakeClient::failed() : SendResult{};
  });
  AsyncEventLogger logger(client, busy);
  {
    std::vector<std::jthread> producers;
    for (std::size_t t = 0; t < threads; ++t) {
      producers.emplace_back([&, t] {
        for (std::size_t i = 0; i < each; ++i) ASSERT_TRUE(logger.log(numbered(t * each + i)));
      });
    }
    for (int i = 0; i < 5; ++i) {
      (void)logger.flush(1ms);
      (void)logger.stats();
    }
  }
  client->up();
  ASSERT_TRUE(logger.flush(60s));
  logger.replay_soon();
  ASSERT_TRUE(await(logger, [](const LoggerStats& stats) { return stats.pending() == 0; }));
  EXPECT_THAT(client->details(), UnorderedElementsAreArray(numbers(0, threads * each - 1)));
  const LoggerStats stats = logger.stats();
  EXPECT_EQ(stats.delivered, threads * each);
  expect_balance(stats);
}

TEST_F(LoggerLosses, HazardL14EventsInAMappedRingSurviveWithoutAShutdown) {
  // What `kill -9` leaves: the files as they are, while the process had not come to anything else.
  LoggerOptions mapped = options();
  mapped.ring = RingMode::mapped;
  client->hang();
  auto logger = std::make_unique<AsyncEventLogger>(client, mapped);
  log_numbers(*logger, 1, 30);
  ASSERT_TRUE(client->await_requests(1));
  std::filesystem::copy(temp.path() / "spill", temp.path() / "copy",
                        std::filesystem::copy_options::recursive);
  client->release();
  logger.reset();
  const std::vector<std::string> first_keys = client->keys();
  const auto next = std::make_shared<FakeClient>();
  mapped.spillover_path = temp.file("copy");
  AsyncEventLogger second(next, mapped);
  EXPECT_EQ(second.stats().recovered, 30U);
  ASSERT_TRUE(second.flush());
  EXPECT_EQ(next->details(), numbers(1, 30));
  EXPECT_EQ(next->keys(), first_keys) << "twice, with the same keys";
}

TEST_F(LoggerLosses, HazardL8ADamagedRecordOfARingIsCountedAndSetAsideAndTheRestIsDelivered) {
  LoggerOptions mapped = options();
  mapped.ring = RingMode::mapped;
  client->hang();
  auto logger = std::make_unique<AsyncEventLogger>(client, mapped);
  log_numbers(*logger, 1001, 1030);
  ASSERT_TRUE(client->await_requests(1));
  std::filesystem::copy(temp.path() / "spill", temp.path() / "copy",
                        std::filesystem::copy_options::recursive);
  client->release();
  logger.reset();
  const std::filesystem::path ring = temp.path() / "copy" / "eventlog-ring.0";
  std::ifstream in(ring, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::size_t at = bytes.find("1017");
  ASSERT_NE(at, std::string::npos);
  bytes[at] = '7';
  std::ofstream(ring, std::ios::binary) << bytes;
  const auto next = std::make_shared<FakeClient>();
  mapped.spillover_path = temp.file("copy");
  AsyncEventLogger second(next, mapped);
  EXPECT_EQ(second.stats().recovered, 30U);
  expect_balance(second.stats());
  ASSERT_TRUE(second.flush());
  auto expected = numbers(1001, 1030);
  expected.erase(expected.begin() + 16);
  EXPECT_EQ(next->details(), expected) << "and never 7017";
  expect_lost(second, LossReason::corrupted, 1);
  EXPECT_EQ(second.stats().quarantined, 1U);
  EXPECT_TRUE(std::filesystem::exists(temp.path() / "copy" / "eventlog-spillover.quarantine.jsonl"));
}

}  // namespace
}  // namespace postrider::logger
