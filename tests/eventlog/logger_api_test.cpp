// SPDX-License-Identifier: Apache-2.0
// The logger and the real Event Log API: the program as a process, HTTP between them, all three databases.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <random>
#include <thread>

#include "api_process.hpp"
#include "postrider/async_logger.hpp"
#include "postrider/http_event_log_client.hpp"
#include "support/crash_run.hpp"
#include "support/places.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t bookings = 15;
constexpr std::size_t events_each = 5;
constexpr auto patience = 60s;

/// A number as text: what an event is known by in the end.
EventLogEntry event_of(std::size_t number) {
  const std::size_t step = number % events_each;
  EventLogEntry entry = step == 0 ? EventLogEntry::process_start("CreateBooking", "BookingCreated")
                        : step == events_each - 1
                            ? EventLogEntry::process_end("CreateBooking", "BookingCompleted")
                            : EventLogEntry::process_step("CreateBooking", "RoomAssigned");
  entry.correlation_id("booking-" + std::to_string(number / events_each)).details(std::to_string(number));
  return entry;
}

class LoggerApi : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_ = std::make_unique<TestDatabase>(backend());
    api_ = std::make_unique<ApiProcess>(*database_);
    api_->start();
  }
  /// Short pauses, so that outages are over soon; everything else is as it comes.
  std::unique_ptr<AsyncEventLogger> make_logger(LoggerOptions options = {}, bool gzip = false,
                                                const std::string& application = "pet-resort-api") {
    options.spillover_path = folder_.file("spillover");
    options.application_id = application;
    options.base_retry_delay = 1ms;
    options.max_retry_delay = 5ms;
    options.circuit_breaker_reset = 50ms;
    options.replay_interval = 20ms;
    options.max_batch_wait = 1ms;
    options.log = [](LogLevel, std::string_view) {};
    HttpClientOptions client;
    client.base_url = api_->url();
    client.gzip = gzip;
    return std::make_unique<AsyncEventLogger>(std::make_shared<HttpEventLogClient>(client), options);
  }
  static void log_numbers(AsyncEventLogger& logger, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) ASSERT_TRUE(logger.log(event_of(i)));
  }
  /// Until `condition` holds of the logger's books.
  template <class Condition>
  static testing::AssertionResult await(AsyncEventLogger& logger, const Condition& condition) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!condition(logger.stats())) {
      if (std::chrono::steady_clock::now() > deadline)
        return testing::AssertionFailure() << "it takes too long";
      std::this_thread::yield();
    }
    return testing::AssertionSuccess();
  }
  static testing::AssertionResult await_all_delivered(AsyncEventLogger& logger) {
    return await(logger, [](const LoggerStats& stats) { return stats.pending() == 0; });
  }
  void expect_each_once(std::size_t count) {
    const std::map<std::string, int> found = api_->details();
    EXPECT_EQ(found.size(), count);
    for (const auto& [details, times] : found) EXPECT_EQ(times, 1) << details;
    for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(found.contains(std::to_string(i))) << i;
  }
  static void expect_nothing_lost(const LoggerStats& stats) {
    EXPECT_EQ(stats.all_lost(), 0U);
    EXPECT_EQ(stats.dead, 0U);
    EXPECT_EQ(stats.logged + stats.recovered, stats.delivered + stats.pending());
  }

  TempDir folder_;
  std::unique_ptr<TestDatabase> database_;
  std::unique_ptr<ApiProcess> api_;
};

TEST_P(LoggerApi, SeedAcceptance75EventsOfAnOutageComeBackAfterARestartWithoutNewTraffic) {
  constexpr std::size_t normal = 20;
  constexpr std::size_t outage = bookings * events_each;
  static_assert(outage == 75);
  {
    const auto logger = make_logger();
    log_numbers(*logger, 0, normal);
    ASSERT_TRUE(await_all_delivered(*logger));
    EXPECT_EQ(logger->stats().spilled, 0U) << "in quiet times nothing goes to disk";

    api_->stop();
    log_numbers(*logger, normal, normal + outage);
    ASSERT_TRUE(logger->flush(patience));
    const LoggerStats down = logger->stats();
    EXPECT_EQ(down.spilled, outage);
    EXPECT_EQ(down.on_disk, outage);
    EXPECT_TRUE(down.circuit_open);
    expect_nothing_lost(down);
  }
  // The application starts again while the API is still away, and has nothing to say.
  const auto logger = make_logger();
  EXPECT_EQ(logger->stats().recovered, outage);
  api_->start();
  ASSERT_TRUE(await_all_delivered(*logger));
  const LoggerStats after = logger->stats();
  EXPECT_EQ(after.logged, 0U);
  EXPECT_EQ(after.replayed, outage);
  expect_nothing_lost(after);
  expect_each_once(normal + outage);
}

TEST_P(LoggerApi, HazardL14ApiKilledInTheMiddleOfAStreamHasEveryEventOnce) {
  const unsigned seed = chosen_seed();
  SCOPED_TRACE("POSTRIDER_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr std::size_t producers = 3;
  constexpr std::size_t each = 1500;
  constexpr int kills = 4;
  LoggerOptions options;
  options.sender_threads = 2;
  options.ring = RingMode::mapped;
  const auto logger = make_logger(options);
  std::atomic<bool> refused{false};
  std::atomic<std::size_t> allowed{0};  // producers go on with the kills, so that each hits a stream
  std::atomic<bool> given_up{false};
  std::vector<std::jthread> threads;
  for (std::size_t p = 0; p < producers; ++p) {
    threads.emplace_back([&, p] {
      for (std::size_t i = 0; i < each; ++i) {
        while (i >= allowed && !given_up) std::this_thread::yield();
        if (given_up) return;
        if (!logger->log(event_of(p * each + i))) refused = true;
      }
    });
  }
  for (int life = 1; life <= kills; ++life) {
    const std::uint64_t before = logger->stats().delivered;
    allowed += each / (kills + 1);
    const std::uint64_t some = 1 + random() % (each / 2);
    const auto grown = await(*logger, [&](const LoggerStats& now) { return now.delivered >= before + some; });
    given_up = !grown;
    ASSERT_TRUE(grown);
    api_->kill();
    api_->start();
  }
  allowed = each;
  threads.clear();
  EXPECT_FALSE(refused);
  ASSERT_TRUE(await_all_delivered(*logger));
  expect_nothing_lost(logger->stats());
  expect_each_once(producers * each);
}

TEST_P(LoggerApi, PackedBodiesAreTakenSinglyAndInBatches) {
  const auto logger = make_logger({}, true);
  log_numbers(*logger, 0, 1);
  ASSERT_TRUE(await_all_delivered(*logger));
  log_numbers(*logger, 1, 400);
  ASSERT_TRUE(await_all_delivered(*logger));
  expect_nothing_lost(logger->stats());
  EXPECT_EQ(logger->stats().spilled, 0U);
  expect_each_once(400);
}

TEST_P(LoggerApi, EventsWithoutACorrelationAreNoDeadLetters) {
  // As the messages of a spdlog sink are.
  const auto logger = make_logger();
  for (int i = 0; i < 3; ++i) {
    EventLogEntry message = EventLogEntry::process_error("Shop", "log", std::to_string(i));
    ASSERT_TRUE(logger->log(message));
  }
  ASSERT_TRUE(await_all_delivered(*logger));
  expect_nothing_lost(logger->stats());
  expect_each_once(3);
}

/// The block of a page that begins so.
std::string shown(const std::string& page, const std::string& beginning) {
  std::ifstream file(test::source_file("docs/" + page));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::size_t at = text.find("```sh\n" + beginning);
  if (at == std::string::npos) return {};
  return text.substr(at + 6, text.find("```", at + 6) - at - 6);
}

TEST_P(LoggerApi, DeadLettersAreSentAgainAsTheDocumentationShows) {
  {
    // Without an application they are refused for good.
    const auto logger = make_logger({}, false, "");
    log_numbers(*logger, 0, 7);
    ASSERT_TRUE(await(*logger, [](const LoggerStats& stats) { return stats.dead == 7; }));
  }
  const std::string mend =
      R"(sed -i 's/"event":{/"event":{"applicationId":"pet-resort-api",/' eventlog-spillover.dead.jsonl)";
  std::string command = shown("logger.md", "jq ");
  const std::string usual = "http://127.0.0.1:3000";
  ASSERT_NE(command.find(usual), std::string::npos) << command;
  command.replace(command.find(usual), usual.size(), api_->url());
  for (const char* word : {R"({"created":7,"duplicates":0,)", R"({"created":0,"duplicates":7,)"}) {
    // The answer has no line break of its own.
    ChildProcess shell(
        {"/bin/sh", "-ec", "cd '" + folder_.file("spillover") + "'\n" + mend + "\n" + command + "echo"});
    const std::string answer = shell.read_line().value_or("");
    EXPECT_TRUE(answer.starts_with(word)) << answer;
    EXPECT_TRUE(shell.wait().value().ok());
  }
  expect_each_once(7);
}

POSTRIDER_FOR_EACH_BACKEND(LoggerApi);

}  // namespace
}  // namespace postrider::test
