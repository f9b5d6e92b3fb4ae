// SPDX-License-Identifier: Apache-2.0
// What `log()` has taken stays in its ring while there is no room elsewhere: the queue full, the disk slow,
// full or broken. Only the caller of `log()` is refused, when the ring is full.
#include <thread>

#include "logger/logger_fixture.hpp"

namespace postrider::logger {
namespace {

using ::testing::UnorderedElementsAreArray;

struct Backpressure : LoggerFixture {
  const std::filesystem::path obstacle = temp.path() / "spill" / "eventlog-spillover.jsonl";
  std::vector<std::string> said;
  std::condition_variable heard;

  /// A folder where the file should be.
  void break_disk() const { std::filesystem::create_directory(obstacle); }
  void mend_disk() const { std::filesystem::remove(obstacle); }

  LoggerOptions telling(LoggerOptions made) {
    made.log = [this](LogLevel, std::string_view text) {
      const std::lock_guard lock(mutex);
      said.emplace_back(text);
      heard.notify_all();
    };
    return made;
  }
  bool await_said(const std::string& part) {
    std::unique_lock lock(mutex);
    return heard.wait_for(lock, 30s, [&] {
      return std::any_of(said.begin(), said.end(),
                         [&](const std::string& text) { return text.find(part) != std::string::npos; });
    });
  }
  void expect_nothing_lost(const AsyncEventLogger& logger) {
    EXPECT_EQ(logger.stats().all_lost(), 0U);
    expect_balance(logger.stats());
    expect_losses_told(logger.stats());
  }
};

TEST_F(Backpressure, ABurstThatFindsTheQueueFullWaitsInItsRing) {
  LoggerOptions small = options(false);
  small.queue_capacity = 5;
  AsyncEventLogger logger(client, small);
  ASSERT_NO_FATAL_FAILURE(fill_queue_of_five(logger));
  for (std::size_t i = 6; i <= 1000; ++i) ASSERT_TRUE(logger.log(numbered(i)));
  EXPECT_FALSE(logger.flush(0us));
  EXPECT_EQ(logger.stats().in_rings, 995U);
  client->release();
  ASSERT_TRUE(logger.flush());
  EXPECT_EQ(client->details(), numbers(0, 1000));
  expect_nothing_lost(logger);
}

TEST_F(Backpressure, ABurstThatFindsQueueAndDiskBusyWaitsInItsRing) {
  LoggerOptions small = options();
  small.queue_capacity = 5;
  AsyncEventLogger logger(client, small);
  ASSERT_NO_FATAL_FAILURE(fill_queue_of_five(logger));
  for (std::size_t i = 6; i <= 3000; ++i) ASSERT_TRUE(logger.log(numbered(i)));
  ASSERT_TRUE(await(logger, [](const LoggerStats& stats) { return stats.spilled == 2995; }));
  client->release();
  ASSERT_TRUE(logger.flush());
  logger.replay_soon();
  ASSERT_TRUE(await_empty_disk(logger));
  EXPECT_THAT(client->details(), UnorderedElementsAreArray(numbers(0, 3000)));
  expect_nothing_lost(logger);
}

TEST_F(Backpressure, AFlushWaitsForAnotherOneNoLongerThanItsTime) {
  LoggerOptions small = options(false);
  small.queue_capacity = 5;
  AsyncEventLogger logger(client, small);
  ASSERT_NO_FATAL_FAILURE(fill_queue_of_five(logger));
  std::atomic<bool> flushed = false;
  std::jthread other([&] { flushed = logger.flush(Duration::max()); });
  EXPECT_FALSE(logger.flush(1ms));
  EXPECT_FALSE(logger.flush(1ms)) << "whichever of them comes first";
  EXPECT_FALSE(flushed);
  client->release();
  other.join();
  EXPECT_TRUE(flushed) << "a time without end is not one that has passed";
}

/// Events that the files have no place for are in their rings, not lost: somebody takes them, if slowly.
struct EachPolicy : Backpressure, ::testing::WithParamInterface<FullPolicy> {};
INSTANTIATE_TEST_SUITE_P(Policies, EachPolicy,
                         ::testing::Values(FullPolicy::drop_newest, FullPolicy::drop_oldest,
                                           FullPolicy::block));

TEST_P(EachPolicy, AReceiverThatIsWellLosesNothingToTheLimitsOfTheFiles) {
  LoggerOptions small = options();
  small.queue_capacity = 5;
  small.max_spillover_events = 100;
  small.full_policy = GetParam();
  small.block_timeout = 30s;
  AsyncEventLogger logger(client, small);
  ASSERT_NO_FATAL_FAILURE(fill_queue_of_five(logger));
  for (std::size_t i = 6; i <= 1000; ++i) ASSERT_TRUE(logger.log(numbered(i)));
  ASSERT_TRUE(await(logger, [](const LoggerStats& stats) { return stats.on_disk == 100; }));
  EXPECT_FALSE(logger.flush(0us));
  EXPECT_EQ(logger.stats().in_rings, 895U);
  client->release();
  ASSERT_TRUE(logger.flush());
  logger.replay_soon();
  ASSERT_TRUE(await_empty_disk(logger));
  EXPECT_THAT(client->details(), UnorderedElementsAreArray(numbers(0, 1000)));
  expect_nothing_lost(logger);
}

/// The same for the limit of bytes, which is only known when an event is written.
TEST_F(Backpressure, LargeEventsOfAReceiverThatIsWellStayWithinTheBytesOfTheFiles) {
  LoggerOptions small = options();
  small.queue_capacity = 5;
  small.max_spillover_bytes = 1 << 20;
  small.ring_bytes = 32 << 20;
  AsyncEventLogger logger(client, small);
  ASSERT_NO_FATAL_FAILURE(fill_queue_of_five(logger));
  constexpr std::size_t events = 1000;
  for (std::size_t i = 6; i <= events; ++i) {
    EventLogEntry entry = numbered(i);
    entry.extra("ballast", std::string(8000, 'x'));
    ASSERT_TRUE(logger.log(entry)) << i;
    // The first tells how large they are.
    if (i == 6) {
      ASSERT_TRUE(await(logger, [](const LoggerStats& stats) { return stats.on_disk == 1; }));
    }
  }
  EXPECT_FALSE(logger.flush(0us));
  client->release();
  ASSERT_TRUE(logger.flush());
  expect_nothing_lost(logger);
}

/// What waits in the queue holds its place in the ring: with large events the ring is full long before the
/// queue is.
TEST_F(Backpressure, LargeEventsGoToDiskBeforeTheirRingIsFull) {
  LoggerOptions slow = options();
  slow.full_policy = FullPolicy::block;
  slow.block_timeout = 5s;
  slow.queue_capacity = 10'000;
  slow.max_spillover_bytes = 1 << 30;
  client->hang();
  AsyncEventLogger logger(client, slow);
  constexpr std::size_t events = 1500;  // 12 MB through a ring of 4
  for (std::size_t i = 1; i <= events; ++i) {
    EventLogEntry entry = numbered(i);
    entry.extra("ballast", std::string(8000, 'x'));
    ASSERT_TRUE(logger.log(entry)) << i;
  }
  EXPECT_GT(logger.stats().spilled, events / 2);
  client->release();
  ASSERT_TRUE(logger.flush(60s));
  logger.replay_soon();
  ASSERT_TRUE(await_empty_disk(logger));
  EXPECT_THAT(client->details(), UnorderedElementsAreArray(numbers(1, events)));
  expect_nothing_lost(logger);
}

/// A retry that is far away holds its chunk of the ring.
TEST_F(Backpressure, RetriesThatWaitDoNotFillTheRing) {
  LoggerOptions slow = options();
  slow.full_policy = FullPolicy::block;
  slow.block_timeout = 5s;
  slow.max_retries = 10;
  slow.base_retry_delay = slow.max_retry_delay = 1h;
  slow.circuit_breaker_threshold = 1000;
  slow.retry_budget = 10;
  slow.max_spillover_bytes = 1 << 30;
  client->down();
  AsyncEventLogger logger(client, slow);
  for (std::size_t i = 1; i <= 1500; ++i) {
    EventLogEntry entry = numbered(i);
    entry.extra("ballast", std::string(8000, 'x'));
    ASSERT_TRUE(logger.log(entry)) << i;
  }
  EXPECT_GT(logger.stats().spilled, 0U);
  EXPECT_EQ(logger.stats().all_lost(), 0U);
}

TEST_F(Backpressure, AnOpenCircuitAndABusyDiskLoseNothing) {
  LoggerOptions small = direct();
  small.queue_capacity = 5;
  small.batch_size = 5;
  small.circuit_breaker_threshold = 1;
  small.circuit_breaker_reset = 1h;
  client->down();
  AsyncEventLogger logger(client, small);
  for (std::size_t i = 1; i <= 3000; ++i) ASSERT_TRUE(logger.log(numbered(i)));
  ASSERT_TRUE(logger.flush(60s));
  EXPECT_EQ(logger.stats().on_disk, 3000U);
  expect_nothing_lost(logger);
}

TEST_F(Backpressure, NoThreadIsForgottenWhileAnotherOneIsBusy) {
  LoggerOptions small = options(false);
  small.queue_capacity = small.batch_size = 5;
  small.max_batch_wait = 0us;
  AsyncEventLogger logger(client, small);
  client->hang();
  log_numbers(logger, 1, 1000);
  std::jthread([&] { log_numbers(logger, 2001, 2010); }).join();
  ASSERT_TRUE(client->await_requests(1));
  client->release();
  ASSERT_TRUE(logger.flush());
  const std::vector<std::string> order = client->details();
  const auto last = std::find(order.begin(), order.end(), "2010");
  EXPECT_LT(last - order.begin(), 500) << "its few events do not wait for all of the others";
  expect_nothing_lost(logger);
}

TEST_F(Backpressure, ADiskThatRefusesIsAskedAgainAndTheEventsStayInMemory) {
  LoggerOptions here = telling(direct());
  here.circuit_breaker_threshold = 1;
  here.circuit_breaker_reset = 1h;
  client->down();
  AsyncEventLogger logger(client, here);
  break_disk();
  log_numbers(logger, 1, 3);
  ASSERT_TRUE(await_said("cannot write"));
  EXPECT_FALSE(logger.flush(0us)) << "it is in memory alone";
  EXPECT_EQ(logger.stats().pending(), 3U);
  mend_disk();
  ASSERT_TRUE(logger.flush());
  EXPECT_EQ(logger.stats().on_disk, 3U);
  ASSERT_TRUE(await_said("it works again"));
  expect_nothing_lost(logger);
}

TEST_F(Backpressure, OnlyWhenTheRingIsFullTooTheCallerIsRefusedForTheDisksSake) {
  LoggerOptions tiny = telling(direct());
  tiny.ring_bytes = 64 * 1024;
  tiny.queue_capacity = 10;
  tiny.circuit_breaker_threshold = 1;
  tiny.circuit_breaker_reset = 1h;
  client->down();
  AsyncEventLogger logger(client, tiny);
  break_disk();
  logger.log(numbered(0));
  ASSERT_TRUE(await_said("cannot write"));
  std::uint64_t refused = 0;
  for (std::size_t i = 1; i < 2000; ++i) refused += logger.log(numbered(i)) ? 0 : 1;
  EXPECT_GT(refused, 100U);
  EXPECT_LT(refused, 1500U);
  EXPECT_EQ(logger.stats().lost_for(LossReason::spillover_io_error), refused);
  EXPECT_EQ(logger.stats().all_lost(), refused);
  mend_disk();
  ASSERT_TRUE(logger.flush(60s));
  EXPECT_EQ(logger.stats().on_disk, 2000 - refused);
  expect_balance(logger.stats());
}

TEST_F(Backpressure, WhatTheDiskRefusesGoesToAReceiverThatIsBack) {
  LoggerOptions here = telling(direct());
  here.circuit_breaker_threshold = 1000;
  client->down();
  AsyncEventLogger logger(client, here);
  break_disk();
  log_numbers(logger, 1, 3);
  ASSERT_TRUE(await_said("cannot write"));
  client->up();
  ASSERT_TRUE(client->await_delivered(3));
  ASSERT_TRUE(logger.flush());
  expect_nothing_lost(logger);
}

TEST_F(Backpressure, AShutdownEndsInTimeAndCountsWhatNobodyTakes) {
  for (const bool broken : {false, true}) {
    SCOPED_TRACE(broken);
    losses.clear();
    const auto receiver = std::make_shared<FakeClient>();
    LoggerOptions brief = options(broken);
    brief.queue_capacity = 5;
    brief.shutdown_timeout = 1ms;
    receiver->hang();
    AsyncEventLogger logger(receiver, brief);
    if (broken) break_disk();
    for (std::size_t i = 1; i <= 500; ++i) ASSERT_TRUE(logger.log(numbered(i)));
    const auto before = std::chrono::steady_clock::now();
    logger.shutdown();
    EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
    const LoggerStats stats = logger.stats();
    EXPECT_EQ(stats.all_lost(), 500U);
    EXPECT_EQ(stats.pending(), 0U);
    if (broken) {
      EXPECT_EQ(stats.lost_for(LossReason::spillover_io_error), 500U);
    } else {
      EXPECT_GE(stats.lost_for(LossReason::shutdown_in_progress), 400U);
    }
    expect_balance(stats);
    expect_losses_told(stats);
  }
}

TEST_F(Backpressure, AtTheShutdownAMappedRingKeepsWhatTheDiskRefuses) {
  LoggerOptions mapped = options();
  mapped.ring = RingMode::mapped;
  mapped.queue_capacity = 5;
  mapped.shutdown_timeout = 1ms;
  client->hang();
  {
    AsyncEventLogger logger(client, mapped);
    break_disk();
    for (std::size_t i = 1; i <= 500; ++i) ASSERT_TRUE(logger.log(numbered(i)));
    logger.shutdown();
    EXPECT_EQ(logger.stats().pending(), 500U);
    expect_nothing_lost(logger);
  }
  mend_disk();
  const auto next = std::make_shared<FakeClient>();
  AsyncEventLogger logger(next, mapped);
  EXPECT_EQ(logger.stats().recovered, 500U);
  ASSERT_TRUE(next->await_delivered(1));
  ASSERT_TRUE(logger.flush());
  logger.replay_soon();
  ASSERT_TRUE(await_empty_disk(logger));
  EXPECT_THAT(next->details(), UnorderedElementsAreArray(numbers(1, 500)));
  expect_nothing_lost(logger);
}

}  // namespace
}  // namespace postrider::logger
