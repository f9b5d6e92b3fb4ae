// SPDX-License-Identifier: Apache-2.0
// What is written into the log while the disk refuses.
#include "logger/disk_news.hpp"

#include <cerrno>
#include <thread>

#include "logger/logger_fixture.hpp"
#include "logger/spill_fixture.hpp"

namespace postrider::logger {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct DiskNewsTest : LoggerFixture {
  ManualClock clock;
  std::vector<std::string> lines;
  LogCallback noting = [this](LogLevel, std::string_view text) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(text);
  };
  /// Those about the folder, since the last call.
  std::vector<std::string> taken() {
    const std::lock_guard lock(mutex);
    std::vector<std::string> some;
    for (const std::string& line : std::exchange(lines, {})) {
      if (line.find("spill folder: ") != std::string::npos) some.push_back(line);
    }
    return some;
  }
};

TEST_F(DiskNewsTest, TheFirstFailureIsToldAtOnceThenEveryTenSecondsAndTheRecoveryOnce) {
  DiskNews news(noting, clock);
  news.failed(DiskTask::write, "cannot write events", -ENOSPC, 3);
  EXPECT_THAT(taken(), ElementsAre(AllOf(HasSubstr("cannot write events: No space left on device"))));
  for (int i = 0; i < 1000; ++i) news.failed(DiskTask::write, "cannot write events", -ENOSPC, 2);
  clock.advance(9s);
  news.failed(DiskTask::write, "cannot write events", -EIO);
  news.tell_held_back(false);
  EXPECT_THAT(taken(), IsEmpty());
  clock.advance(1s);
  news.tell_held_back(false);
  EXPECT_THAT(taken(), ElementsAre(AllOf(HasSubstr("Input/output error"), HasSubstr("2001 "))));
  news.went_well(DiskTask::write);
  news.went_well(DiskTask::write);
  EXPECT_THAT(taken(), ElementsAre(AllOf(HasSubstr("again"), HasSubstr("10 s"))));
}

TEST_F(DiskNewsTest, ADiskThatComesAndGoesDoesNotFillTheLog) {
  DiskNews news(noting, clock);
  for (int i = 0; i < 95; ++i) {
    news.failed(DiskTask::write, "cannot write events", -ENOSPC);
    news.went_well(DiskTask::write);
    clock.advance(100ms);
  }
  EXPECT_THAT(taken(), ElementsAre(HasSubstr("cannot write"), HasSubstr("again")));
  news.tell_held_back(true);
  EXPECT_THAT(taken(), ElementsAre(AllOf(HasSubstr("94 "), EndsWith("it works again"))));
}

TEST_F(DiskNewsTest, EachTaskIsToldByItself) {
  DiskNews news(noting, clock);
  news.failed(DiskTask::write, "cannot write events", -ENOSPC);
  news.failed(DiskTask::checkpoint, "cannot write the checkpoint", -ENOSPC);
  news.went_well(DiskTask::checkpoint);
  EXPECT_THAT(taken(), ElementsAre(HasSubstr("events"), HasSubstr("checkpoint"), HasSubstr("again")));
}

TEST_F(DiskNewsTest, HazardL9ALoggerWhoseDiskIsFullForLongWritesFewLines) {
  LoggerOptions full = direct();
  full.clock = &clock;
  full.max_batch_wait = 0us;
  full.log = noting;
  AsyncEventLogger logger(client, full);
  client->down();
  // A folder in the place of the file: every write fails.
  const fs::path in_the_way = temp.path() / "spill" / "eventlog-spillover.jsonl";
  fs::create_directory(in_the_way);
  ASSERT_TRUE(logger.log(numbered(1)));
  std::vector<std::string> told;
  const auto collect = [&] {
    for (std::string& line : taken()) told.push_back(std::move(line));
    return told.size();
  };
  while (collect() == 0) std::this_thread::yield();
  EXPECT_THAT(told[0], HasSubstr("cannot write"));
  // It is tried again after every pause, of five seconds in the end.
  constexpr int tries = 60;
  for (int i = 0; i < tries; ++i) {
    ASSERT_TRUE(clock.await_waiters(1));
    clock.advance(5s);
  }
  (void)collect();
  EXPECT_LE(told.size(), 1U + tries / 2U) << "one every ten seconds at most";
  fs::remove(in_the_way);
  std::jthread time([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      clock.advance(100ms);
      std::this_thread::yield();
    }
  });
  EXPECT_TRUE(logger.flush(std::chrono::hours{1000}));
  time.request_stop();
  time.join();
  (void)collect();
  EXPECT_THAT(told.back(), HasSubstr("again"));
  EXPECT_EQ(logger.stats().on_disk, 1U) << "nothing was lost";
  logger.shutdown();
  expect_losses_told(logger.stats());
  expect_balance(logger.stats());
}

TEST_F(DiskNewsTest, AReplayThatCannotMoveItsCheckpointSaysSoOnce) {
  test::SimFolder folder;
  SpillStore store(folder, small_segments, noting, clock);
  write_events(store, 1, 30);
  folder.plan({.at = 1, .for_ever = true, .error = ENOSPC, .writes_only = true});
  (void)read_all(store, 1);
  EXPECT_LE(taken().size(), 4U) << "a line for each kind of trouble";
}

}  // namespace
}  // namespace postrider::logger
