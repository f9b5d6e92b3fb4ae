// SPDX-License-Identifier: Apache-2.0
// What `log()` refuses, from where it can be called, and answers and starts that are out of the ordinary.
#include <thread>

#include "logger/logger_fixture.hpp"

namespace postrider::logger {
namespace {

struct LogCall : LoggerFixture {
  std::uint64_t lost(const std::string& reason) {
    const std::lock_guard lock(mutex);
    return losses[reason];
  }
};

TEST_F(LogCall, WhatTheEventLogApiWouldRefuseIsRefusedAtTheCall) {
  using namespace std::string_literals;
  AsyncEventLogger logger(client, options());
  const std::string wide = "\xc3\xbc";  // one character, two bytes
  std::string umlauts;
  for (int i = 0; i < 128; ++i) umlauts += wide;
  const auto entry = [] { return EventLogEntry::process_step("Test", "Step"); };
  EXPECT_FALSE(logger.log(EventLogEntry{})) << "empty";
  EXPECT_FALSE(logger.log(EventLogEntry{}.process_name("Test"))) << "no status";
  EXPECT_FALSE(logger.log(EventLogEntry{}.process_status(ProcessStatus::error))) << "no process";
  EXPECT_FALSE(logger.log(entry().process_name("")));
  EXPECT_FALSE(logger.log(entry().details("a\0b"s)));
  EXPECT_FALSE(logger.log(entry().details(std::string((64 << 10) + 1, 'x'))));
  EXPECT_FALSE(logger.log(entry().details(std::string(40'000, '\xff')))) << "three bytes each when repaired";
  EXPECT_FALSE(logger.log(entry().application_id(std::string(129, 'x'))));
  EXPECT_FALSE(logger.log(entry().correlation_id(umlauts + wide)));
  EXPECT_FALSE(logger.log(entry().process_name(std::string(201, 'x'))));
  EXPECT_FALSE(logger.log(entry().step("\0"s)));
  EXPECT_FALSE(logger.log(entry().target_system(std::string(129, 'x'))));
  EXPECT_FALSE(logger.log(entry().originating_system(std::string(129, 'x'))));
  EXPECT_FALSE(logger.log(entry().user_id(std::string(129, '\xff'))));
  EXPECT_FALSE(logger.log(entry().extra("text", std::string(64 << 10, 'x'))));
  EXPECT_FALSE(logger.log(entry().extra("text", std::string(11'000, '\x01')))) << "six bytes each as JSON";
  EXPECT_FALSE(logger.log(entry().extra("text", "a\0b"s)));
  EXPECT_FALSE(
      logger.log(entry().timestamp(TimePoint{std::chrono::sys_days{std::chrono::year{999} / 12 / 31}})));
  EXPECT_FALSE(logger.log(entry().timestamp(TimePoint::max())));
  EXPECT_EQ(lost("invalid_entry"), 19U);
  EXPECT_EQ(logger.stats().all_lost(), 19U);
  EXPECT_EQ(logger.stats().logged, 19U);

  // The bounds themselves are within.
  EXPECT_TRUE(logger.log(entry().details(std::string(60'000, 'x'))));
  EXPECT_TRUE(logger.log(entry().details(std::string(20'000, '\xff'))));
  EXPECT_TRUE(logger.log(entry().correlation_id(umlauts).application_id(std::string(128, 'x'))));
  EXPECT_TRUE(logger.log(entry().process_name(std::string(200, 'x')).user_id(std::string(128, '\xff'))));
  EXPECT_TRUE(logger.log(entry().extra("text", std::string(10'000, '\x01'))));
  // The last value counts.
  EventLogEntry mended = entry();
  mended.details("a\0b"s).details("ab").extra("x", std::string(65 << 10, 'x')).extra("x", 1);
  EXPECT_TRUE(logger.log(mended));
  mended.step("\0"s);
  mended.clear();
  EXPECT_TRUE(
      logger.log(mended.process_name("Test").process_status(ProcessStatus::in_progress).details("again")));
  ASSERT_TRUE(logger.flush());
  EXPECT_EQ(logger.stats().delivered, 7U);
  expect_balance(logger.stats());
}

/// Its destructor logs, when the thread's own lane is gone already.
struct LogsAtTheEnd {
  AsyncEventLogger* logger = nullptr;
  std::atomic<int>* taken = nullptr;
  ~LogsAtTheEnd() {
    if (logger != nullptr) *taken += logger->log(numbered(2)) ? 1 : 0;
  }
};

TEST_F(LogCall, AThreadThatIsEndingCanStillLog) {
  AsyncEventLogger logger(client, options());
  std::atomic<int> taken{0};
  constexpr int threads = 8;
  {
    std::vector<std::jthread> ending;
    for (int i = 0; i < threads; ++i) {
      ending.emplace_back([&] {
        thread_local LogsAtTheEnd last;  // made before the lane, so it goes after it
        last.logger = &logger;
        last.taken = &taken;
        EXPECT_TRUE(logger.log(numbered(1)));
      });
    }
  }
  EXPECT_EQ(taken, threads);
  ASSERT_TRUE(logger.flush());
  EXPECT_EQ(logger.stats().delivered, 2U * threads);
  EXPECT_EQ(logger.stats().all_lost(), 0U);
  expect_balance(logger.stats());
}

TEST_F(LogCall, AVerdictThatNobodyKnowsCountsAsAFailure) {
  constexpr auto strange = static_cast<SendVerdict>(99);
  LoggerOptions here = direct();
  here.circuit_breaker_threshold = 1000;
  AsyncEventLogger logger(client, here);
  client->answer([](auto) { return SendResult{.verdict = strange}; });
  log_numbers(logger, 1, 2);
  ASSERT_TRUE(logger.flush(5s));
  client->answer([](std::span<const OutgoingEvent> events) {
    return SendResult{.items = std::vector<SendItem>(events.size(), SendItem{strange})};
  });
  log_numbers(logger, 3, 4);
  ASSERT_TRUE(logger.flush(5s));
  EXPECT_EQ(logger.stats().on_disk, 4U);
  client->up();
  logger.replay_soon();
  ASSERT_TRUE(client->await_delivered(4));
  ASSERT_TRUE(await_empty_disk(logger));
  expect_balance(logger.stats());
}

TEST_F(LogCall, ABacklogThatIsFoundIsReplayedAtOnce) {
  client->down();
  {
    AsyncEventLogger logger(client, direct());
    log_numbers(logger, 1, 100);
    ASSERT_TRUE(logger.flush());
  }
  client->up();
  const std::size_t before = client->requests();
  ManualClock clock;
  LoggerOptions again = direct();
  again.clock = &clock;  // which stands still
  again.replay_interval = 1h;
  AsyncEventLogger logger(client, again);
  ASSERT_TRUE(client->await_delivered(100)) << "no interval passes";
  ASSERT_TRUE(await_empty_disk(logger));
  EXPECT_EQ(client->sizes().at(before), 1U) << "a probe goes ahead";
  expect_balance(logger.stats());
}

TEST_F(LogCall, WhatIsFoundIsAsOldAsItsFile) {
  client->down();
  {
    AsyncEventLogger logger(client, direct());
    log_numbers(logger, 1, 3);
    ASSERT_TRUE(logger.flush());
  }
  ASSERT_FALSE(file("eventlog-spillover.jsonl").empty());
  const std::filesystem::path spilled = temp.path() / "spill" / "eventlog-spillover.jsonl";
  std::filesystem::last_write_time(spilled, std::filesystem::last_write_time(spilled) - 26h);
  ManualClock clock(Clock::system().now());
  LoggerOptions again = direct();
  again.clock = &clock;
  AsyncEventLogger logger(client, again);
  const LoggerStats found = logger.stats();
  EXPECT_EQ(found.on_disk, 3U);
  EXPECT_GE(found.oldest_age, 26h - 1s);
  EXPECT_LE(found.oldest_age, 27h);
}

}  // namespace
}  // namespace postrider::logger
