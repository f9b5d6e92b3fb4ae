// SPDX-License-Identifier: Apache-2.0
#include "logger/spill_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "logger/spill_fixture.hpp"

namespace postrider::logger {
namespace {

using test::SimFolder;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

TEST(SpillStoreTest, WhatWasWrittenIsReadInOrderAndItsFilesGo) {
  SimFolder folder;
  SpillStore store(folder, small_segments, silent);
  EXPECT_EQ(write_events(store, 1, 20), keys(1, 20));
  EXPECT_EQ(store.events(), 20U);
  EXPECT_GT(folder.names().size(), 3U) << "full files are numbered";
  const ReadAll read = read_all(store);
  EXPECT_EQ(read.keys, keys(1, 20));
  EXPECT_EQ(read.lost + read.quarantined, 0U);
  EXPECT_EQ(store.events(), 0U);
  EXPECT_EQ(store.bytes(), 0U);
  EXPECT_THAT(folder.names(), ElementsAre("eventlog-spillover.checkpoint"));
}

TEST(SpillStoreTest, TheCommonCaseHasTheTwoNamesOfTheOtherSystem) {
  SimFolder folder;
  SpillStore store(folder, {}, silent);
  write_events(store, 1, 2);
  EXPECT_THAT(folder.names(), ElementsAre("eventlog-spillover.checkpoint", "eventlog-spillover.jsonl"));
  SpillReader reader(store);
  SpillBatch batch;
  ASSERT_TRUE(reader.read(batch, 10, 1 << 20));
  write_events(store, 3, 3);
  EXPECT_THAT(folder.names(), ElementsAre("eventlog-spillover.checkpoint", "eventlog-spillover.jsonl",
                                          "eventlog-spillover.replay.jsonl"));
  reader.commit(batch, 2);
  EXPECT_THAT(read_all(store).keys, ElementsAre("key-3"));
}

TEST(SpillStoreTest, TheNextProcessGoesOn) {
  SimFolder folder;
  {
    SpillStore store(folder, small_segments, silent);
    write_events(store, 1, 10);
  }
  SpillStore store(folder, small_segments, silent);
  EXPECT_EQ(store.recovered(), 10U);
  EXPECT_EQ(store.events(), 10U);
  write_events(store, 11, 20);
  EXPECT_EQ(read_all(store).keys, keys(1, 20));
}

TEST(SpillStoreTest, HazardL3ACrashInTheMiddleOfAReplayRepeatsOneBatchAtMost) {
  SimFolder folder;
  {
    SpillStore store(folder, {}, silent);
    write_events(store, 1, 100);
    SpillReader reader(store);
    SpillBatch batch;
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(reader.read(batch, 10, 1 << 20));
      reader.commit(batch, 10);
    }
    ASSERT_TRUE(reader.read(batch, 10, 1 << 20));
    reader.commit(batch, 7);
    ASSERT_TRUE(reader.read(batch, 10, 1 << 20));
  }
  SpillStore store(folder, {}, silent);
  EXPECT_EQ(store.recovered(), 53U);
  EXPECT_EQ(read_all(store).keys, keys(48, 100));
}

TEST(SpillStoreTest, ADamagedCheckpointRepeatsEventsAndLosesNone) {
  SimFolder folder;
  {
    SpillStore store(folder, small_segments, silent);
    write_events(store, 1, 9);
    SpillReader reader(store);
    SpillBatch batch;
    ASSERT_TRUE(reader.read(batch, 2, 1 << 20));
    reader.commit(batch, 1);
    ASSERT_TRUE(reader.read(batch, 2, 1 << 20));
    reader.commit(batch, 1);
  }
  const std::string good = folder.content("eventlog-spillover.checkpoint");
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string damaged = good;
    damaged[i] = static_cast<char>(~damaged[i]);
    SimFolder copy;
    for (const std::string& name : folder.names()) copy.put(name, folder.content(name));
    copy.put("eventlog-spillover.checkpoint", damaged);
    SpillStore store(copy, small_segments, silent);
    const ReadAll read = read_all(store);
    EXPECT_THAT(read.keys, AnyOf(keys(3, 9), keys(2, 9))) << i;
    EXPECT_EQ(read.lost, 0U);
  }
  folder.put("eventlog-spillover.checkpoint", "");
  SpillStore store(folder, small_segments, silent);
  EXPECT_EQ(read_all(store).keys, keys(1, 9));
}

TEST(SpillStoreTest, HazardL4AFullDiskDoesNotStopTheReplay) {
  SimFolder folder;
  SpillStore store(folder, small_segments, silent);
  write_events(store, 1, 50);
  const std::size_t before = folder.bytes_written();
  const ReadAll read = read_all(store, 5);
  EXPECT_EQ(read.keys, keys(1, 50));
  EXPECT_LT(folder.bytes_written() - before, 48U * 50) << "a checkpoint per batch, and nothing else";

  write_events(store, 51, 60);
  folder.plan({.at = 1, .for_ever = true, .error = ENOSPC, .writes_only = true});
  SpillReader reader(store);
  SpillBatch batch;
  ASSERT_TRUE(reader.read(batch, 100, 1 << 20));
  EXPECT_EQ(batch.items.front().key, "key-51");
}

TEST(SpillStoreTest, HazardL5OpeningReadsEndsAndBeginningsOnly) {
  SimFolder folder;
  {
    SpillStore store(folder, {.max_events = 1'000'000, .max_bytes = 1 << 30, .segment_bytes = 1 << 20},
                     silent);
    for (std::size_t i = 1; i <= 200'000; ++i) {
      ASSERT_EQ(store.stage(members_of(i)), SpillFull::no);
      if (i % 500 != 0) continue;
      ASSERT_EQ(store.write_staged(), 0);
    }
    ASSERT_GT(store.bytes(), 20U << 20);
  }
  const std::size_t before = folder.bytes_read();
  SpillStore store(folder, {.max_events = 1'000'000, .max_bytes = 1 << 30}, silent);
  EXPECT_EQ(store.recovered(), 200'000U);
  EXPECT_LT(folder.bytes_read() - before, 512U << 10);
}

TEST(SpillStoreTest, HazardL6AllFilesCountForTheLimits) {
  SimFolder folder;
  SpillStore store(folder, {.max_events = 10, .max_bytes = 1 << 20, .segment_bytes = 600}, silent);
  write_events(store, 1, 10);
  EXPECT_EQ(store.stage("x"), SpillFull::events);
  SpillReader reader(store);
  SpillBatch batch;
  ASSERT_TRUE(reader.read(batch, 2, 1 << 20));
  EXPECT_EQ(store.stage("x"), SpillFull::events) << "the file that is being replayed counts too";
  reader.commit(batch, 2);
  EXPECT_EQ(store.stage(members_of(11)), SpillFull::no);
  EXPECT_EQ(store.stage(members_of(12)), SpillFull::no);
  EXPECT_EQ(store.stage(members_of(13)), SpillFull::events);
  ASSERT_EQ(store.write_staged(), 0);

  SimFolder other;
  SpillStore sized(other, {.max_events = 1000, .max_bytes = 2000, .segment_bytes = 600}, silent);
  const std::size_t taken = write_events(sized, 1, 100).size();
  EXPECT_LE(sized.bytes(), 2000U);
  EXPECT_GT(taken, 10U);
  SpillStore again(other, {.max_events = 1000, .max_bytes = 2000}, silent);
  EXPECT_EQ(again.bytes(), sized.bytes());
  EXPECT_EQ(again.stage(members_of(1)), SpillFull::bytes);
}

TEST(SpillStoreTest, HazardL10AReplayInProgressDoesNotHoldTheWriter) {
  SimFolder folder;
  SpillStore store(folder, {}, silent);
  write_events(store, 1, 5);
  SpillReader reader(store);
  SpillBatch batch;
  ASSERT_TRUE(reader.read(batch, 2, 1 << 20));
  // On this very thread: a lock that the reader kept would hang here.
  write_events(store, 6, 9, true);
  reader.commit(batch, 2);
  EXPECT_EQ(store.events(), 7U);
}

TEST(SpillStoreTest, TheOldestFilesAreGivenUpFirst) {
  SimFolder folder;
  SpillStore store(folder, small_segments, silent);
  write_events(store, 1, 20);
  const std::uint64_t first = store.drop_oldest();
  EXPECT_GT(first, 1U);
  EXPECT_EQ(store.events(), 20 - first);
  SpillReader reader(store);
  SpillBatch batch;
  ASSERT_TRUE(reader.read(batch, 1, 1 << 20));
  EXPECT_EQ(batch.items.front().key, "key-" + std::to_string(first + 1));
  const std::uint64_t second = store.drop_oldest();
  EXPECT_EQ(store.events(), 20 - first - second) << "not the file that is being read";
  std::uint64_t lost = reader.commit(batch, 1).lost;
  std::size_t seen = 1;
  while (reader.read(batch, 100, 1 << 20)) {
    seen += batch.items.size();
    lost += reader.commit(batch, batch.items.size()).lost;
  }
  EXPECT_EQ(seen, 20 - first - second);
  EXPECT_EQ(lost, 0U) << "given up is not damaged";
  EXPECT_EQ(store.events(), 0U);
  EXPECT_EQ(store.drop_oldest(), 0U);
  write_events(store, 21, 22);
  EXPECT_EQ(store.drop_oldest(), 2U) << "the active file goes too when there is no other";
  EXPECT_EQ(store.events(), 0U);
  write_events(store, 23, 24);
  EXPECT_EQ(read_all(store).keys, keys(23, 24));
}

TEST(SpillStoreTest, FilesEndAfterSoManyEventsThatGivingOneUpCostsLittle) {
  SimFolder folder;
  SpillLimits limits{.max_events = 640, .max_bytes = 1 << 20, .segment_bytes = 1 << 20};
  limits.segment_events = 10;
  SpillStore store(folder, limits, silent);
  // Writes of all sizes, up to what a file may have.
  for (std::size_t i = 1, size = 1; i + size <= 600; i += size, size = size % 10 + 1) {
    for (std::size_t k = i; k < i + size; ++k) ASSERT_EQ(store.stage(members_of(k)), SpillFull::no);
    ASSERT_EQ(store.write_staged(), 0);
  }
  std::uint64_t all = store.events();
  while (store.events() > 0) {
    const std::uint64_t lost = store.drop_oldest();
    ASSERT_GT(lost, 0U);
    ASSERT_LE(lost, 10U);
    all -= lost;
    ASSERT_EQ(store.events(), all);
  }
}

TEST(SpillStoreTest, AFileThatCannotBeReadIsTriedAgain) {
  SimFolder folder;
  SpillStore store(folder, small_segments, silent);
  write_events(store, 1, 12);
  const auto broken_disk = [&] { folder.plan({.at = 3, .for_ever = true, .error = EIO}); };
  SpillReader reader(store);
  SpillBatch batch;
  broken_disk();  // the rename and the opening go well
  EXPECT_FALSE(reader.read(batch, 3, 1 << 20));
  folder.plan({});
  ASSERT_TRUE(reader.read(batch, 1, 1 << 20));
  EXPECT_EQ(batch.items.front().key, "key-1") << "the disk has recovered";
  reader.commit(batch, 0);
}

TEST(SpillStoreTest, FilesOfTheOtherSystemAreReplayedAsTheyAre) {
  SimFolder folder;
  const std::string line = R"({"applicationId":"pet","step":"S","timestamp":"2026-06-01T10:15:30.123Z"})";
  folder.put("eventlog-spillover.replay.jsonl", line + "\n\nnot json\n" + line + "\n");
  folder.put("eventlog-spillover.jsonl", R"({"step":"A","idempotencyKey":"own"})"
                                         "\n"
                                         R"({"step":"torn)");
  std::vector<std::string> first;
  {
    SpillStore store(folder, {}, silent);
    EXPECT_EQ(store.recovered(), 0U) << "counted when they are read";
    write_events(store, 1, 2);
    SpillReader reader(store);
    SpillBatch batch;
    ASSERT_TRUE(reader.read(batch, 10, 1 << 20));
    ASSERT_EQ(batch.items.size(), 2U);
    EXPECT_TRUE(batch.items[0].foreign);
    EXPECT_THAT(std::string(batch.items[0].members),
                StartsWith(line.substr(1, line.size() - 2) + ",\"idempotencyKey\":\"spill-"));
    for (const auto& item : batch.items) first.emplace_back(item.key);
  }
  EXPECT_NE(first[0], first[1]) << "the same text twice is two events";
  SpillStore store(folder, {}, silent);
  const ReadAll read = read_all(store);
  ASSERT_EQ(read.keys.size(), 5U);
  EXPECT_THAT(read.keys, ElementsAre(first[0], first[1], "own", "key-1", "key-2"))
      << "keys are the same in every life";
  EXPECT_EQ(read.quarantined, 1U);
  EXPECT_EQ(folder.content("eventlog-spillover.quarantine.jsonl"), "{\"step\":\"torn\nnot json\n");
}

TEST(SpillStoreTest, AFailedSyncOfAFileWithLinesOfTheOtherSystemKeepsThem) {
  SimFolder folder;
  {
    SpillStore store(folder, {}, silent);
    write_events(store, 1, 3);
  }
  const std::string lines = folder.content("eventlog-spillover.jsonl");
  const std::size_t second = lines.find('\n') + 1;
  // Not at the end: such a file is appended to.
  folder.put(
      "eventlog-spillover.jsonl",
      lines.substr(0, second) + R"({"step":"A","idempotencyKey":"foreign"})" + "\n" + lines.substr(second));
  SpillStore store(folder, {}, silent);
  write_events(store, 4, 5);
  folder.plan({.at = 1, .error = EIO});
  EXPECT_EQ(store.sync(), 0U) << "nothing is lost";
  folder.plan({});
  folder.power_cut();
  SpillStore next(folder, {}, silent);
  EXPECT_THAT(read_all(next).keys, ElementsAre("key-1", "foreign", "key-2", "key-3", "key-4", "key-5"));
}

TEST(SpillStoreTest, LinesThatTheOtherSystemAppendedToOursDoNotConfuseTheNumbers) {
  SimFolder folder;
  {
    SpillStore store(folder, {}, silent);
    write_events(store, 1, 5);
  }
  folder.put("eventlog-spillover.jsonl", folder.content("eventlog-spillover.jsonl") +
                                             R"({"step":"A","idempotencyKey":"foreign"})" + "\n");
  SpillStore store(folder, {}, silent);
  write_events(store, 6, 7);
  EXPECT_THAT(read_all(store).keys,
              ElementsAre("key-1", "key-2", "key-3", "key-4", "key-5", "foreign", "key-6", "key-7"));
}

}  // namespace
}  // namespace postrider::logger
