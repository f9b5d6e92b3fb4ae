// SPDX-License-Identifier: Apache-2.0
// A whole logger, whose folder or files somebody removes or moves while it runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <thread>

#include "logger/logger_fixture.hpp"
#include "logger/spill_fixture.hpp"
#include "logger/spill_names.hpp"
#include "support/crash_run.hpp"

namespace postrider::logger {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

struct SpillRemoved : LoggerFixture {
  const fs::path folder = temp.path() / "spill";

  void log_and_flush(AsyncEventLogger& logger, std::size_t first, std::size_t last) {
    log_numbers(logger, first, last);
    ASSERT_TRUE(logger.flush());
  }
};

TEST_F(SpillRemoved, AFolderThatIsRemovedWhileTheLoggerRunsIsMadeAgain) {
  client->down();
  AsyncEventLogger logger(client, direct());
  log_and_flush(logger, 1, 20);
  fs::remove_all(folder);
  log_and_flush(logger, 21, 30);
  expect_balance(logger.stats());
  EXPECT_EQ(logger.stats().on_disk, 30U) << "the file was still open";
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_EQ(entry.status().permissions(), fs::perms::owner_read | fs::perms::owner_write) << entry.path();
  }
  EXPECT_THROW(AsyncEventLogger(client, direct()), Error) << "it is locked again";
  client->up();
  logger.replay_soon();
  ASSERT_TRUE(await_empty_disk(logger));
  EXPECT_EQ(client->details(), numbers(1, 30));
  expect_balance(logger.stats());
  expect_losses_told(logger.stats());
}

TEST_F(SpillRemoved, FullFilesThatAreRemovedAreCountedAndTold) {
  client->down();
  LoggerOptions small = direct();
  small.max_spillover_bytes = 512 * 1024;
  small.max_spillover_events = 100'000;
  small.circuit_breaker_threshold = 1000;
  AsyncEventLogger logger(client, small);
  log_and_flush(logger, 1, 700);
  std::size_t removed = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().string().find("-0000.jsonl") == std::string::npos) continue;
    std::ifstream in(entry.path());
    removed += static_cast<std::size_t>(
        std::count(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>(), '\n'));
    fs::remove(entry.path());
  }
  ASSERT_GT(removed, 100U);
  client->up();
  logger.replay_soon();
  ASSERT_TRUE(await_empty_disk(logger));
  ASSERT_TRUE(await(logger, [](const LoggerStats& stats) { return stats.all_lost() > 0; }));
  EXPECT_EQ(logger.stats().lost_for(LossReason::spillover_removed), removed);
  EXPECT_EQ(logger.stats().delivered, 700 - removed);
  expect_balance(logger.stats());
  expect_losses_told(logger.stats());
}

TEST_F(SpillRemoved, AFolderThatIsRemovedDuringAReplayIsThereForTheNextProcess) {
  client->down();
  {
    AsyncEventLogger logger(client, direct());
    log_and_flush(logger, 1, 20);
    client->hang();
    const std::size_t before = client->requests();
    logger.replay_soon();
    ASSERT_TRUE(client->await_requests(before + 1)) << "the replay has its file open";
    fs::remove_all(folder);
    client->release();
    logger.shutdown();
    EXPECT_EQ(logger.stats().pending(), 20U);
    expect_balance(logger.stats());
  }
  client->up();
  AsyncEventLogger logger(client, direct());
  EXPECT_EQ(logger.stats().recovered, 20U);
  logger.replay_soon();
  ASSERT_TRUE(await_empty_disk(logger));
  EXPECT_EQ(client->details(), numbers(1, 20));
}

TEST_F(SpillRemoved, AFolderThatIsMovedAwayIsNotWrittenToAnyMore) {
  client->down();
  AsyncEventLogger logger(client, direct());
  log_and_flush(logger, 1, 5);
  fs::rename(folder, temp.path() / "moved");
  log_and_flush(logger, 6, 9);
  EXPECT_EQ(logger.stats().on_disk, 9U);
  EXPECT_THAT(file(active), HasSubstr(R"("details":"9")"));
  EXPECT_THAT(file(active), HasSubstr(R"("details":"1")"));
}

TEST_F(SpillRemoved, RingFilesThatAreRemovedAreMadeAgain) {
  ManualClock clock;
  LoggerOptions mapped = options();
  mapped.ring = RingMode::mapped;
  mapped.clock = &clock;
  std::promise<std::string> said;
  mapped.log = [&](LogLevel, std::string_view text) {
    if (text.find("ring file") != std::string_view::npos) said.set_value(std::string(text));
  };
  AsyncEventLogger logger(client, mapped);
  log_and_flush(logger, 1, 1);
  ASSERT_TRUE(fs::exists(folder / "eventlog-ring.0"));
  fs::remove_all(folder);
  std::future<std::string> told = said.get_future();
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (told.wait_for(1ms) != std::future_status::ready && std::chrono::steady_clock::now() < deadline) {
    clock.advance(1s);  // as often as it takes until the watch waits for it
  }
  ASSERT_EQ(told.wait_for(0s), std::future_status::ready);
  EXPECT_THAT(told.get(), HasSubstr("somebody removed 1 ring file from " + folder.string()));
  log_and_flush(logger, 2, 2);
  EXPECT_TRUE(fs::exists(folder / "eventlog-ring.1"));
  EXPECT_EQ(logger.stats().rings_in_plain_memory, 0U);
  EXPECT_EQ(client->details(), numbers(1, 2));
  expect_balance(logger.stats());
}

TEST_F(SpillRemoved, ARingFileThatCannotBeMadeAgainBecomesPlainMemoryForAsLongAsThatLasts) {
  ManualClock clock;
  LoggerOptions mapped = options();
  mapped.ring = RingMode::mapped;
  mapped.clock = &clock;
  std::promise<void> noticed;
  std::promise<std::string> told;
  mapped.log = [&](LogLevel level, std::string_view text) {
    if (text.find("somebody removed 1 ring file") != std::string_view::npos) noticed.set_value();
    if (text.find("a thread logs into plain memory") == std::string_view::npos) return;
    EXPECT_EQ(level, LogLevel::error);
    told.set_value(std::string(text));
  };
  AsyncEventLogger logger(client, mapped);
  log_and_flush(logger, 1, 1);
  std::optional<SmallFiles> disk_is_full;
  disk_is_full.emplace();
  fs::remove(folder / "eventlog-ring.0");
  std::future<void> seen = noticed.get_future();
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (seen.wait_for(1ms) != std::future_status::ready && std::chrono::steady_clock::now() < deadline) {
    clock.advance(1s);  // as often as it takes until the watch waits for it
  }
  ASSERT_EQ(seen.wait_for(0s), std::future_status::ready);
  EXPECT_EQ(logger.stats().rings_in_plain_memory, 0U) << "not before somebody logs";
  log_and_flush(logger, 2, 3);
  std::future<std::string> words = told.get_future();
  ASSERT_EQ(words.wait_for(0s), std::future_status::ready);
  EXPECT_THAT(words.get(), HasSubstr("a thread logs into plain memory, which kill -9 would take"));
  EXPECT_EQ(logger.stats().rings_in_plain_memory, 1U);
  EXPECT_FALSE(fs::exists(folder / "eventlog-ring.1"));
  EXPECT_EQ(client->details(), numbers(1, 3)) << "and nothing is lost";
  // Once the disk has room, what log() accepts survives again.
  disk_is_full.reset();
  while (logger.stats().rings_in_plain_memory > 0 && std::chrono::steady_clock::now() < deadline) {
    clock.advance(1s);
    std::this_thread::yield();
  }
  EXPECT_EQ(logger.stats().rings_in_plain_memory, 0U);
  client->hang();
  ASSERT_TRUE(logger.log(numbered(4)));
  EXPECT_THAT(file("eventlog-ring.1"), HasSubstr(numbered(4).packed())) << "kill -9 would leave it there";
  client->release();
  ASSERT_TRUE(logger.flush());
  EXPECT_EQ(client->details(), numbers(1, 4));
  expect_balance(logger.stats());
}

TEST_F(SpillRemoved, ALoggerWithARelativePathStaysWhereItIs) {
  const fs::path before = fs::current_path();
  fs::current_path(temp.path());
  client->down();
  LoggerOptions relative = direct();
  relative.spillover_path = "spill";
  AsyncEventLogger logger(client, relative);
  fs::current_path(before);
  log_and_flush(logger, 1, 5);
  EXPECT_EQ(logger.stats().on_disk, 5U);
  EXPECT_THAT(file(active), HasSubstr(R"("details":"5")"));
  EXPECT_FALSE(fs::exists(before / "spill"));
}

}  // namespace
}  // namespace postrider::logger
