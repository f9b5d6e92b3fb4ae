// SPDX-License-Identifier: Apache-2.0
// How a logger starts and how it ends, step by step, and what it tells meanwhile.
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <optional>

#include "logger/logger_fixture.hpp"
#include "logger/spill_folder.hpp"

namespace postrider::logger {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Lifecycle : LoggerFixture {
  std::vector<std::string> steps;
  /// Called at each step, when it has been noted.
  std::function<void(const std::string&)> at_step = [](const std::string&) {};

  /// Steps are taken by one thread, the test's own.
  PointWatch watch{[] {
                     std::vector<std::string> points;
                     for (const char* step : {"checked", "folder", "recovered", "rings", "writer", "senders",
                                              "drain", "replay", "signals"})
                       points.push_back(std::string("logger.start.") + step);
                     for (const char* step : {"closed", "retries", "drain", "senders", "replay", "writer"})
                       points.push_back(std::string("logger.stop.") + step);
                     return points;
                   }(),
                   [this](const std::string& point) {
                     const std::string step = point.substr(std::string_view("logger.").size());
                     steps.push_back(step);
                     at_step(step);
                   }};
  [[nodiscard]] bool folder_is_there() const { return std::filesystem::exists(temp.path() / "spill"); }
};

TEST_F(Lifecycle, OptionsAreCheckedBeforeAnythingIsMade) {
  LoggerOptions wrong = options();
  wrong.batch_size = 0;
  EXPECT_THROW(AsyncEventLogger(client, wrong), Error);
  EXPECT_FALSE(folder_is_there());
  EXPECT_TRUE(steps.empty());
}

#if defined(POSTRIDER_FAILPOINTS)
TEST_F(Lifecycle, StartsInTheSeedsOrderWithTheWriterBeforeThoseWhoNeedIt) {
  {
    client->down();
    AsyncEventLogger logger(client, direct());
    log_numbers(logger, 1, 3);
  }
  std::filesystem::rename(temp.path() / "spill", temp.path() / "kept");
  steps.clear();
  const std::size_t before = client->requests();
  client->up();
  at_step = [&](const std::string& step) {
    if (step == "start.checked") {
      EXPECT_FALSE(folder_is_there());
      std::filesystem::rename(temp.path() / "kept", temp.path() / "spill");
    }
    if (step == "start.folder") {
      EXPECT_THROW((void)open_spill_folder(temp.file("spill")), Error) << "locked from here on";
    }
    if (step == "start.rings") {
      EXPECT_EQ(client->requests(), before) << "nobody sends while it is taken over";
    }
  };
  ManualClock clock;
  LoggerOptions again = options();
  again.clock = &clock;
  again.handle_signals = true;
  again.replay_interval = 10s;
  AsyncEventLogger logger(client, again);
  EXPECT_THAT(steps,
              ElementsAre("start.checked", "start.folder", "start.recovered", "start.rings", "start.writer",
                          "start.senders", "start.drain", "start.replay", "start.signals"));
  EXPECT_EQ(logger.stats().recovered, 3U);
  // The replay does not wait for its interval, and needs no traffic.
  ASSERT_TRUE(client->await_delivered(3));
  EXPECT_EQ(client->details(), numbers(1, 3));
}

TEST_F(Lifecycle, AFolderThatAnotherHasStopsTheStartBeforeAnyThread) {
  const auto other = open_spill_folder(temp.file("spill"));
  EXPECT_THROW(AsyncEventLogger(client, options()), Error);
  EXPECT_THAT(steps, ElementsAre("start.checked"));
  EXPECT_EQ(client->requests(), 0U);
}

TEST_F(Lifecycle, WithoutASpillFolderTheStepsForItAreLeftOut) {
  std::optional<AsyncEventLogger> logger;
  logger.emplace(client, options(false));
  EXPECT_THAT(steps, ElementsAre("start.checked", "start.rings", "start.writer", "start.senders",
                                 "start.drain", "start.replay"));
}

TEST_F(Lifecycle, EndsInTheSeedsOrderAndLosesNothing) {
  ManualClock clock;
  LoggerOptions brief = crowded(clock, true);
  brief.shutdown_timeout = 0us;
  std::vector<std::string> said;
  brief.log = [&](LogLevel, std::string_view text) { said.emplace_back(text); };
  AsyncEventLogger logger(client, brief);
  ASSERT_NO_FATAL_FAILURE(crowd(logger));
  steps.clear();
  said.clear();
  at_step = [&](const std::string& step) {
    const LoggerStats stats = logger.stats();
    if (step == "stop.closed") {
      EXPECT_FALSE(logger.log(numbered(6)));
      EXPECT_EQ(logger.stats().lost_for(LossReason::shutdown_in_progress), 1U);
      EXPECT_EQ(stats.spilled, 0U);
    }
    if (step == "stop.retries") {
      // The writer is still there for it.
      EXPECT_TRUE(await(logger, [](const LoggerStats& now) { return now.spilled == 1; }));
      EXPECT_EQ(stats.queue_depth, 2U) << "what is queued is not touched yet";
    }
    if (step == "stop.drain") {
      EXPECT_EQ(stats.in_rings, 0U);
    }
    if (step == "stop.senders") {
      EXPECT_EQ(stats.queue_depth, 0U);
      EXPECT_TRUE(await(logger, [](const LoggerStats& now) { return now.spilled == 5; }));
    }
    if (step == "stop.writer") {
      EXPECT_EQ(stats.on_disk, 5U);
      EXPECT_EQ(stats.in_flight, 0U);
      EXPECT_THAT(said, ElementsAre(HasSubstr("shutdown_in_progress"))) << "the summary comes last";
    }
  };
  logger.shutdown();
  EXPECT_THAT(steps, ElementsAre("stop.closed", "stop.retries", "stop.drain", "stop.senders", "stop.replay",
                                 "stop.writer"));
  ASSERT_FALSE(said.empty());
  EXPECT_THAT(said.back(), HasSubstr("6 logged, 0 delivered, 0 dead, 1 lost, 5 kept for the next start"));
  expect_balance(logger.stats());
  steps.clear();
  logger.shutdown();
  EXPECT_TRUE(steps.empty()) << "once";
}
#endif

TEST_F(Lifecycle, SendersHaveTheShutdownTimeoutToDeliverWhatIsQueued) {
  AsyncEventLogger logger(client, options());
  log_numbers(logger, 1, 500);
  logger.shutdown();
  EXPECT_EQ(client->details(), numbers(1, 500));
  EXPECT_EQ(logger.stats().on_disk, 0U);
}

/// Remembers what it was told.
class Gauges final : public MetricsExporter {
 public:
  void record_logger(const LoggerStats& stats) override {
    {
      const std::lock_guard lock(mutex_);
      told_.push_back(stats);
    }
    changed_.notify_all();
  }
  void increment_logger_sent(std::uint64_t events) override { sent += events; }
  void increment_logger_spilled(std::uint64_t events) override { spilled += events; }
  void increment_logger_replayed(std::uint64_t events) override { replayed += events; }
  void increment_logger_dead(std::uint64_t events) override { dead += events; }
  void increment_logger_lost(LossReason reason, std::uint64_t events) override {
    EXPECT_EQ(reason, LossReason::shutdown_in_progress);
    lost += events;
  }

  std::vector<LoggerStats> await(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 30s, [&] { return told_.size() >= count; }));
    return told_;
  }
  std::atomic<std::uint64_t> sent{0};
  std::atomic<std::uint64_t> spilled{0};
  std::atomic<std::uint64_t> replayed{0};
  std::atomic<std::uint64_t> dead{0};
  std::atomic<std::uint64_t> lost{0};

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<LoggerStats> told_;
};

TEST_F(Lifecycle, AFlushDoesNotReturnBeforeItsEventsAreCounted) {
  struct Slow final : MetricsExporter {
    void increment_logger_sent(std::uint64_t) override {
      asked.set_value();
      go_on.get_future().wait();
    }
    std::promise<void> asked;
    std::promise<void> go_on;
  } slow;
  LoggerOptions counted = direct();
  counted.metrics = &slow;
  AsyncEventLogger logger(client, counted);
  logger.log(numbered(1));
  slow.asked.get_future().wait();
  EXPECT_FALSE(logger.flush(100ms)) << "its exporter has not taken it yet";
  slow.go_on.set_value();
  EXPECT_TRUE(logger.flush());
}

TEST_F(Lifecycle, GaugesAreToldAtEachIntervalAndAtTheEnd) {
  ManualClock clock;
  Gauges gauges;
  LoggerOptions watched = direct();
  watched.clock = &clock;
  watched.metrics = &gauges;
  watched.replay_interval = 10s;
  watched.circuit_breaker_threshold = 1;
  watched.circuit_breaker_reset = 1h;
  client->down();
  AsyncEventLogger logger(client, watched);
  log_numbers(logger, 1, 7);
  ASSERT_TRUE(come_to_rest(logger));
  ASSERT_TRUE(clock.await_waiters(3)) << "the replay, the gauges and the news";
  EXPECT_TRUE(gauges.await(0).empty()) << "not before the interval";
  clock.advance(10s);
  const LoggerStats first = gauges.await(1).at(0);
  EXPECT_EQ(first.logged, 7U);
  EXPECT_EQ(first.spilled, 7U);
  EXPECT_EQ(first.on_disk, 7U);
  EXPECT_GT(first.backlog_bytes, 7U * 100);
  EXPECT_EQ(first.oldest_age, 10s);
  EXPECT_EQ(first.delivered + first.replayed + first.dead + first.all_lost() + first.queue_depth, 0U);
  EXPECT_TRUE(first.circuit_open);
  ASSERT_TRUE(clock.await_waiters(3));
  clock.advance(10s);
  EXPECT_EQ(gauges.await(2).at(1).oldest_age, 20s);

  client->up();
  ASSERT_TRUE(clock.await_waiters(3));
  clock.advance(1h);
  ASSERT_TRUE(client->await_delivered(7));
  ASSERT_TRUE(await_empty_disk(logger));
  logger.shutdown();
  EXPECT_FALSE(logger.log(numbered(8)));
  const LoggerStats last = gauges.await(3).back();
  EXPECT_EQ(last.replayed, 7U);
  EXPECT_EQ(last.on_disk, 0U);
  EXPECT_EQ(last.backlog_bytes, 0U);
  EXPECT_FALSE(last.circuit_open);
  // The counters came as it happened.
  EXPECT_EQ(gauges.sent, 7U);
  EXPECT_EQ(gauges.spilled, 7U);
  EXPECT_EQ(gauges.replayed, 7U);
  EXPECT_EQ(gauges.dead, 0U);
  EXPECT_EQ(gauges.lost, 1U);
}

TEST_F(Lifecycle, AForkedChildLeavesTheLoggerToItsParent) {
  for (const RingMode ring : {RingMode::memory, RingMode::mapped}) {
    LoggerOptions here = options();
    here.ring = ring;
    const auto receiver = std::make_shared<FakeClient>();
    auto logger = std::make_unique<AsyncEventLogger>(receiver, here);
    log_numbers(*logger, 1, 10);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int wrong = 0;
      wrong += logger->log(numbered(11)) ? 1 : 0;
      wrong += logger->flush() ? 2 : 0;
      logger->replay_soon();
      logger->shutdown();
      logger.reset();
      ::_exit(wrong);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    log_numbers(*logger, 11, 20);
    ASSERT_TRUE(logger->flush());
    EXPECT_THAT(receiver->details(), ::testing::UnorderedElementsAreArray(numbers(1, 20)));
    EXPECT_EQ(logger->stats().logged, 20U);
  }
}

}  // namespace
}  // namespace postrider::logger
