// SPDX-License-Identifier: Apache-2.0
// Files that somebody removes or cuts between two processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "logger/logger_fixture.hpp"
#include "logger/spill_fixture.hpp"

namespace postrider::logger {
namespace {

using test::SimFolder;
namespace fs = std::filesystem;

void copy(const SimFolder& from, SimFolder& to) {
  for (const std::string& name : from.names()) to.put(name, from.content(name));
}

TEST(SpillCutTest, HazardL7AFileCutBetweenTwoProcessesHasItsLossCountedAtTheStart) {
  SimFolder original;
  {
    SpillStore store(original, {}, silent);
    write_events(store, 1, 12);
  }
  const std::string whole = original.content(active);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    SimFolder folder;
    copy(original, folder);
    folder.put(active, whole.substr(0, size));
    const auto lines = static_cast<std::size_t>(
        std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size), '\n'));
    SpillStore store(folder, {}, silent);
    ASSERT_EQ(store.recovered(), 12U) << "cut at " << size;
    ASSERT_EQ(store.take_removed(), 12 - lines) << "cut at " << size;
    ASSERT_EQ(store.events(), lines);
    write_events(store, 13, 14);
    const ReadAll read = read_all(store);
    auto wanted = keys(1, lines);
    wanted.insert(wanted.end(), {"key-13", "key-14"});
    ASSERT_EQ(read.keys, wanted) << "cut at " << size;
    ASSERT_EQ(read.lost, 0U) << "counted once";
    ASSERT_EQ(store.events(), 0U);
  }
}

TEST(SpillCutTest, AProcessThatWroteNothingKnowsWhatWasThereToo) {
  SimFolder folder;
  {
    SpillStore store(folder, {}, silent);
    write_events(store, 1, 12);
  }
  {
    SpillStore store(folder, {}, silent);
    SpillReader reader(store);
    SpillBatch batch;
    ASSERT_TRUE(reader.read(batch, 2, 1 << 20));
    reader.commit(batch, 2);
  }
  const std::string name = "eventlog-spillover.replay.jsonl";
  folder.put(name, folder.content(name).substr(0, folder.content(name).size() / 2 + 1));
  SpillStore store(folder, {}, silent);
  EXPECT_EQ(store.recovered(), 10U);
  EXPECT_EQ(store.take_removed(), 6U);
  EXPECT_EQ(read_all(store).keys, keys(3, 6));
}

TEST(SpillCutTest, TheProcessAfterTheNextIsNotToldAgain) {
  SimFolder folder;
  {
    SpillStore store(folder, small_segments, silent);
    write_events(store, 1, 20);
  }
  ASSERT_TRUE(folder.has(active));
  ASSERT_EQ(folder.remove(active), 0);
  std::uint64_t waiting = 0;
  {
    SpillStore store(folder, small_segments, silent);
    EXPECT_EQ(store.recovered(), 20U);
    const std::uint64_t gone = store.take_removed();
    EXPECT_GT(gone, 0U);
    write_events(store, 21, 22);
    waiting = store.events();
    EXPECT_EQ(waiting, 22 - gone);
  }
  SpillStore store(folder, small_segments, silent);
  EXPECT_EQ(store.take_removed(), 0U);
  EXPECT_EQ(store.recovered(), waiting);
  const ReadAll read = read_all(store);
  EXPECT_EQ(read.keys.size(), waiting);
  EXPECT_EQ(read.lost, 0U);
}

TEST(SpillCutTest, AllFilesButTheCheckpointGoneIsAllLost) {
  SimFolder folder;
  {
    SpillStore store(folder, small_segments, silent);
    write_events(store, 1, 20);
    SpillReader reader(store);
    SpillBatch batch;
    ASSERT_TRUE(reader.read(batch, 2, 1 << 20));
    reader.commit(batch, 2);
  }
  for (const std::string& name : folder.names()) {
    if (name != "eventlog-spillover.checkpoint") {
      ASSERT_EQ(folder.remove(name), 0);
    }
  }
  SpillStore store(folder, small_segments, silent);
  EXPECT_EQ(store.recovered(), 18U);
  EXPECT_EQ(store.take_removed(), 18U);
  EXPECT_EQ(store.events(), 0U);
  write_events(store, 21, 21);
  EXPECT_EQ(read_all(store).keys, keys(21, 21));
}

/// What a power cut takes was promised to nobody before its sync.
TEST(SpillCutTest, APowerCutIsNotTakenForACut) {
  for (const bool kept_checkpoint : {false, true}) {
    SimFolder folder;
    std::string checkpoint;
    {
      SpillStore store(folder, {}, silent);
      write_events(store, 1, 5);
      ASSERT_EQ(store.sync(), 0U);
      write_events(store, 6, 9);
      checkpoint = folder.content("eventlog-spillover.checkpoint");
      folder.power_cut();
    }
    // The kernel may have written this file all the same.
    if (kept_checkpoint) folder.put("eventlog-spillover.checkpoint", checkpoint);
    SpillStore store(folder, {}, silent);
    EXPECT_EQ(store.take_removed(), 0U);
    EXPECT_EQ(store.recovered(), 5U);
    EXPECT_EQ(read_all(store).keys, keys(1, 5));
  }
}

TEST(SpillCutTest, WhatWasSyncedBeforeAPowerCutAndIsCutThenIsALoss) {
  SimFolder folder;
  std::string checkpoint;
  {
    SpillStore store(folder, {}, silent);
    write_events(store, 1, 5);
    ASSERT_EQ(store.sync(), 0U);
    write_events(store, 6, 9);
    checkpoint = folder.content("eventlog-spillover.checkpoint");
    folder.power_cut();
  }
  folder.put("eventlog-spillover.checkpoint", checkpoint);
  const std::string text = folder.content(active);
  folder.put(active, text.substr(0, text.size() / 5 + 1));
  SpillStore store(folder, {}, silent);
  EXPECT_EQ(store.take_removed(), 4U);
  EXPECT_EQ(store.recovered(), 5U);
  EXPECT_EQ(read_all(store).keys, keys(1, 1));
}

TEST(SpillCutTest, WithoutSyncsNothingIsClaimedAfterAPowerCut) {
  SimFolder folder;
  SpillLimits careless;
  careless.durable = false;
  std::string checkpoint;
  {
    SpillStore store(folder, careless, silent);
    write_events(store, 1, 5);
    (void)store.sync();
    checkpoint = folder.content("eventlog-spillover.checkpoint");
    folder.power_cut();
  }
  folder.put("eventlog-spillover.checkpoint", checkpoint);
  SpillStore store(folder, careless, silent);
  EXPECT_EQ(store.take_removed(), 0U);
  EXPECT_EQ(store.recovered(), 0U);
}

struct SpillCut : LoggerFixture {
  const fs::path folder = temp.path() / "spill";
};

TEST_F(SpillCut, AFileCutBetweenTwoProcessesIsToldAndTheBooksBalance) {
  client->down();
  {
    AsyncEventLogger logger(client, direct());
    log_numbers(logger, 1, 20);
    ASSERT_TRUE(logger.flush());
  }
  fs::resize_file(folder / active, fs::file_size(folder / active) / 2);
  client->up();
  AsyncEventLogger logger(client, direct());
  // What is left is replayed at once.
  ASSERT_TRUE(await_empty_disk(logger));
  const LoggerStats stats = logger.stats();
  EXPECT_EQ(stats.recovered, 20U);
  EXPECT_EQ(stats.lost_for(LossReason::spillover_removed), 20 - stats.replayed);
  EXPECT_EQ(losses["spillover_removed"], 20 - stats.replayed);
  EXPECT_GT(losses["spillover_removed"], 5U);
  EXPECT_EQ(client->details(), numbers(1, stats.replayed));
  expect_balance(stats);
  expect_losses_told(stats);
}

}  // namespace
}  // namespace postrider::logger
