// SPDX-License-Identifier: Apache-2.0
// Answers that speak of the set-up (401, 403, 404), and events that a guard before the receiver dislikes.
#include "logger/logger_fixture.hpp"

namespace postrider::logger {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct LoggerRefusals : LoggerFixture, ::testing::WithParamInterface<int> {
  std::vector<std::string> said;

  LoggerOptions telling() {
    LoggerOptions made = direct();
    made.log = [this](LogLevel level, std::string_view text) {
      const std::lock_guard lock(mutex);
      if (level == LogLevel::error) said.emplace_back(text);
    };
    return made;
  }
  static bool has(std::span<const OutgoingEvent> events, const char* details) {
    return std::any_of(events.begin(), events.end(),
                       [&](const auto& e) { return FakeClient::details_of(e.members) == details; });
  }
};

INSTANTIATE_TEST_SUITE_P(SetUp, LoggerRefusals, ::testing::Values(200, 401, 403, 404),
                         [](const auto& status) { return std::to_string(status.param); });

/// A wrong token or address is the operator's to mend, and nothing is wrong with the events: they wait on
/// disk, for as long as it takes, and none of them is taken for a dead one.
TEST_P(LoggerRefusals, EventsWaitOnDiskUntilTheSetUpIsMendedAndTheOperatorIsTold) {
  ManualClock clock;
  LoggerOptions strict = telling();
  strict.clock = &clock;
  strict.max_batch_wait = 0us;
  strict.circuit_breaker_threshold = 3;
  client->answer([](auto) { return FakeClient::failed(GetParam()); });
  AsyncEventLogger logger(client, strict);
  for (std::size_t i = 1; i <= 6; ++i) {
    logger.log(numbered(i));
    ASSERT_TRUE(logger.flush());
  }
  EXPECT_EQ(client->requests(), 3U) << "the circuit is open: nobody hammers at a closed door";
  EXPECT_TRUE(logger.stats().circuit_open);
  EXPECT_EQ(logger.stats().on_disk, 6U);
  // Through many cycles of the replay, each with a probe.
  for (std::size_t cycle = 1; cycle <= 20; ++cycle) {
    clock.advance(30s);
    logger.replay_soon();
    ASSERT_TRUE(client->await_requests(3 + cycle)) << cycle;
    ASSERT_TRUE(books.await([&] { return logger.stats().circuit_open; })) << cycle;
    // A request is counted before its answer is told of.
    ASSERT_TRUE(books.await([&] {
      const std::lock_guard lock(mutex);
      return said.size() >= 1 + cycle / 2;
    })) << cycle;
  }
  const LoggerStats stats = logger.stats();
  EXPECT_EQ(stats.on_disk, 6U);
  EXPECT_EQ(stats.dead + stats.all_lost(), 0U);
  {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(said.size(), 11U) << "at once, then once a minute";
    EXPECT_THAT(said[0], AllOf(HasSubstr("takes no events: down; events go to " + temp.file("spill") +
                                         ", up to 10000 events"),
                               HasSubstr(GetParam() == 404 || GetParam() == 200 ? "base_url" : "token")));
  }
  client->up();
  clock.advance(30s);
  logger.replay_soon();
  ASSERT_TRUE(client->await_delivered(6));
  EXPECT_EQ(client->details(), numbers(1, 6));
}

TEST_F(LoggerRefusals, HazardL1AGuardThatDislikesOneEventDoesNotHoldUpTheOthers) {
  client->down();
  LoggerOptions brief = direct();
  brief.circuit_breaker_threshold = 1000;
  brief.replay_interval = 1ms;
  AsyncEventLogger logger(client, brief);
  log_numbers(logger, 1, 200);
  ASSERT_TRUE(logger.flush());
  client->answer([](std::span<const OutgoingEvent> events) {
    return has(events, "131") ? FakeClient::failed(403) : SendResult{};
  });
  ASSERT_TRUE(await_empty_disk(logger));
  const LoggerStats stats = logger.stats();
  EXPECT_EQ(stats.dead, 1U);
  EXPECT_EQ(stats.all_lost(), 0U);
  expect_balance(stats);
  auto expected = numbers(1, 200);
  expected.erase(expected.begin() + 130);
  EXPECT_EQ(client->details(), expected) << "in their order";
  EXPECT_THAT(file("eventlog-spillover.dead.jsonl"), HasSubstr(R"("details":"131")"));
}

/// One event that the receiver always fails with, and a good one now and then: the circuit is open for all of
/// them as long as nobody but the bad one is asked.
TEST_F(LoggerRefusals, HazardL1ABadEventDoesNotKeepTheCircuitOpen) {
  for (const int status : {500, 0}) {
    client = std::make_shared<FakeClient>();
    LoggerOptions brief = direct();
    brief.spillover_path = (temp.path() / std::to_string(status)).string();
    brief.circuit_breaker_threshold = 1;
    brief.circuit_breaker_reset = 30ms;
    brief.replay_interval = 1ms;
    client->answer([status](std::span<const OutgoingEvent> events) {
      return has(events, "1") ? FakeClient::failed(status) : SendResult{};
    });
    AsyncEventLogger logger(client, brief);
    ASSERT_TRUE(logger.log(numbered(1)));
    ASSERT_TRUE(logger.flush());
    EXPECT_TRUE(logger.stats().circuit_open);
    std::size_t last = 1;
    while (logger.stats().on_disk > 0 && last < 50'000) {
      ASSERT_TRUE(logger.log(numbered(++last)));
      ASSERT_TRUE(logger.flush());
    }
    const LoggerStats stats = logger.stats();
    EXPECT_EQ(stats.dead, 1U) << status;
    EXPECT_EQ(stats.delivered, last - 1) << status;
    EXPECT_EQ(stats.on_disk, 0U) << status;
    expect_balance(stats);
  }
}

/// There is no event behind it in its file to compare it with, but in the next one.
TEST_F(LoggerRefusals, HazardL1ABadEventThatIsAloneInItsFileIsFoundToo) {
  LoggerOptions brief = direct();
  brief.circuit_breaker_threshold = 1000;
  brief.replay_interval = 1ms;
  client->answer([](std::span<const OutgoingEvent> events) {
    return has(events, "1") ? FakeClient::failed(500) : SendResult{};
  });
  AsyncEventLogger logger(client, brief);
  ASSERT_TRUE(logger.log(numbered(1)));
  ASSERT_TRUE(logger.flush());
  const std::size_t before = client->requests();
  ASSERT_TRUE(client->await_requests(before + 1)) << "its file is the one being replayed";
  client->down();
  log_numbers(logger, 2, 5);
  ASSERT_TRUE(logger.flush());
  client->answer([](std::span<const OutgoingEvent> events) {
    return has(events, "1") ? FakeClient::failed(500) : SendResult{};
  });
  ASSERT_TRUE(await_empty_disk(logger));
  EXPECT_EQ(logger.stats().dead, 1U);
  expect_balance(logger.stats());
  EXPECT_EQ(client->details(), numbers(2, 5)) << "who was asked about the receiver is not sent again";
}

TEST_F(LoggerRefusals, HazardL1TheWayToTheBadEventIsHalvedNotWalked) {
  client->down();
  LoggerOptions brief = direct();
  brief.circuit_breaker_threshold = 1000;
  AsyncEventLogger logger(client, brief);
  log_numbers(logger, 1, 500);
  ASSERT_TRUE(logger.flush());
  const std::size_t before = client->requests();
  client->answer([](std::span<const OutgoingEvent> events) {
    return has(events, "400") ? FakeClient::failed(500) : SendResult{};
  });
  logger.replay_soon();
  ASSERT_TRUE(client->await_delivered(399)) << "in one cycle";
  EXPECT_LE(client->requests() - before, 30U);
}

}  // namespace
}  // namespace postrider::logger
