// SPDX-License-Identifier: Apache-2.0
// What is written into the log about losses, when nobody has given a callback.
#include "logger/logger_fixture.hpp"

namespace postrider::logger {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct LossNews : LoggerFixture {
  ManualClock clock;
  std::vector<std::string> warnings;
  std::vector<std::string> remarks;
  std::condition_variable said;

  LoggerOptions telling(LoggerOptions made) {
    made.clock = &clock;
    made.max_batch_wait = 0us;
    made.on_loss = {};
    made.log = [this](LogLevel level, std::string_view text) {
      const std::lock_guard lock(mutex);
      (level == LogLevel::info ? remarks : warnings).emplace_back(text);
      said.notify_all();
    };
    return made;
  }
  bool await_warnings(std::size_t count) {
    std::unique_lock lock(mutex);
    return said.wait_for(lock, 30s, [&] { return warnings.size() >= count; });
  }
  std::vector<std::string> taken_warnings() {
    const std::lock_guard lock(mutex);
    return std::exchange(warnings, {});
  }
  /// Each is too large for its ring.
  static void lose(AsyncEventLogger& logger, int times) {
    EventLogEntry large = EventLogEntry::process_step("Test", "Step");
    large.details(std::string(1 << 16, 'x'));
    for (int i = 0; i < times; ++i) EXPECT_FALSE(logger.log(large));
  }
};

TEST_F(LossNews, TheFirstIsToldAtOnceAndThenOnceAMinuteWithTheCountSince) {
  AsyncEventLogger logger(client, telling(options(false)));
  lose(logger, 1);
  EXPECT_THAT(taken_warnings(), ElementsAre(AllOf(HasSubstr("lost 1 event: serialization"))));
  lose(logger, 7);
  EXPECT_THAT(taken_warnings(), ElementsAre());
  ASSERT_TRUE(clock.await_waiters(1));
  clock.advance(59s);
  ASSERT_TRUE(clock.await_waiters(1)) << "it has looked, and waits again";
  EXPECT_THAT(taken_warnings(), ElementsAre());
  clock.advance(10s);
  ASSERT_TRUE(await_warnings(1)) << "though nothing more is lost";
  EXPECT_THAT(taken_warnings(), ElementsAre(HasSubstr("lost 7 events: serialization")));
}

TEST_F(LossNews, EachReasonIsToldByItself) {
  AsyncEventLogger logger(client, telling(options(false)));
  lose(logger, 2);
  logger.shutdown();
  EXPECT_FALSE(logger.log(numbered(1)));
  EXPECT_THAT(taken_warnings(),
              ElementsAre(HasSubstr("lost 1 event: serialization"), HasSubstr("lost 1 event: serialization"),
                          AllOf(HasSubstr("the logger has ended"), HasSubstr("2 lost")),
                          HasSubstr("lost 1 event: shutdown_in_progress")));
}

TEST_F(LossNews, AnEntryThatIsNotValidIsToldWithItsFault) {
  AsyncEventLogger logger(client, telling(options(false)));
  EXPECT_FALSE(logger.log(EventLogEntry{}.process_name("Test")));
  EXPECT_THAT(taken_warnings(), ElementsAre(HasSubstr("invalid_entry, the last: processStatus is missing")));
}

TEST_F(LossNews, AFullSpillFolderIsTold) {
  client->down();
  LoggerOptions few = telling(direct());
  few.max_spillover_events = 10;
  {
    AsyncEventLogger logger(client, few);
    log_numbers(logger, 1, 15);
    ASSERT_TRUE(logger.flush());
  }
  EXPECT_THAT(taken_warnings(),
              ElementsAre(AllOf(HasSubstr("takes no events: down; events go to " + temp.file("spill") +
                                          ", up to 10 events and 50 MiB")),
                          AllOf(HasSubstr("lost 1 event: spillover_max_events"),
                                HasSubstr("Hint: the spill folder is full; raise max_spillover_events")),
                          HasSubstr("lost 4 events: spillover_max_events"),
                          AllOf(HasSubstr("the logger has ended: 15 logged"), HasSubstr("5 lost"))));
}

TEST_F(LossNews, RefusedEventsAreToldOnceAMinuteAndAMissingApplicationWithItsOption) {
  client->answer([](auto) {
    return SendResult{
        .verdict = SendVerdict::rejected, .status = 422, .reason = "applicationId is missing or empty"};
  });
  AsyncEventLogger logger(client, telling(direct()));
  logger.log(numbered(1));
  ASSERT_TRUE(logger.flush());
  EXPECT_THAT(taken_warnings(),
              ElementsAre(AllOf(HasSubstr("has refused an event for good (422): applicationId is missing"),
                                HasSubstr("Hint: set LoggerOptions::application_id"))));
  log_numbers(logger, 2, 6);
  ASSERT_TRUE(come_to_rest(logger));
  EXPECT_THAT(taken_warnings(), ElementsAre());
  ASSERT_TRUE(clock.await_waiters(2)) << "the replay and the news";
  clock.advance(60s);
  ASSERT_TRUE(await_warnings(1));
  EXPECT_THAT(taken_warnings(), ElementsAre(HasSubstr("has refused 5 events for good since")));
  EXPECT_EQ(logger.stats().dead, 6U);
  log_numbers(logger, 7, 8);
  ASSERT_TRUE(logger.flush());
  logger.shutdown();
  EXPECT_THAT(taken_warnings(), ElementsAre(HasSubstr("has refused 2 events for good")));
}

TEST_F(LossNews, WithoutALossTheEndIsARemark) {
  { AsyncEventLogger logger(client, telling(options())); }
  EXPECT_THAT(taken_warnings(), ElementsAre());
  EXPECT_THAT(remarks, ElementsAre(HasSubstr("the logger has ended")));
}

TEST_F(LoggerFixture, HazardL15ACallbackThatLogsIsNotToldOfTheLossesOfItsOwnEntries) {
  // The event that it logs is taken, and lost on another thread a moment later.
  client->answer([](auto) { return SendResult{.verdict = SendVerdict::rejected, .status = 422}; });
  for (const RingMode ring : {RingMode::memory, RingMode::mapped}) {
    LoggerOptions here = options(ring == RingMode::mapped);
    here.ring = ring;
    std::atomic<int> calls{0};
    AsyncEventLogger* self = nullptr;
    here.on_loss = [&](const LostEvent&) {
      if (++calls < 50) self->log(numbered(99));
    };
    AsyncEventLogger logger(client, here);
    self = &logger;
    if (ring == RingMode::mapped) {
      // No dead letters there.
      std::filesystem::create_directories(temp.path() / "spill" / "eventlog-spillover.dead.jsonl");
    }
    log_numbers(logger, 1, 3);
    ASSERT_TRUE(
        await(logger, [](const LoggerStats& stats) { return stats.lost_for(LossReason::rejected) >= 6; }));
    ASSERT_TRUE(logger.flush());
    EXPECT_EQ(calls, 3);
    EXPECT_EQ(logger.stats().lost_for(LossReason::rejected), 6U) << "counted all the same";
    expect_balance(logger.stats());
  }
}

}  // namespace
}  // namespace postrider::logger
