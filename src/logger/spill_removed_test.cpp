// SPDX-License-Identifier: Apache-2.0
// Files that somebody removes, replaces or cuts while they are in use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <random>
#include <set>

#include "logger/logger_fixture.hpp"
#include "logger/spill_fixture.hpp"
#include "logger/spill_names.hpp"
#include "support/crash_run.hpp"

namespace postrider::logger {
namespace {

using test::SimFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace fs = std::filesystem;

std::string one_full_file(const SimFolder& folder) {
  for (const std::string& name : folder.names()) {
    if (name.find("-0000.jsonl") != std::string::npos) return name;
  }
  return "none";
}

TEST(SpillRemovedTest, TheFileThatIsWrittenIsSavedWhenSomebodyRemovesIt) {
  for (const bool synced : {false, true}) {
    SimFolder folder;
    SpillStore store(folder, {}, silent);
    write_events(store, 1, 5);
    ASSERT_EQ(folder.remove(active), 0);
    if (synced) {
      EXPECT_EQ(store.sync(), 0U);
      EXPECT_TRUE(folder.has(active)) << "nothing is synced that is in no folder";
    }
    write_events(store, 6, 7);
    EXPECT_EQ(store.take_removed(), 0U);
    EXPECT_EQ(store.events(), 7U);
    SpillStore next(folder, {}, silent);
    EXPECT_EQ(next.recovered(), 7U);
    EXPECT_EQ(next.take_removed(), 0U);
    EXPECT_EQ(read_all(next).keys, keys(1, 7));
  }
}

TEST(SpillRemovedTest, WhatCannotBeSavedIsCounted) {
  SimFolder folder;
  SpillStore store(folder, {}, silent);
  write_events(store, 1, 5);
  ASSERT_EQ(folder.remove(active), 0);
  folder.plan({.at = 1, .for_ever = true, .error = ENOSPC, .writes_only = true});
  EXPECT_THAT(write_events(store, 6, 7), IsEmpty());
  EXPECT_EQ(store.take_removed(), 5U);
  EXPECT_EQ(store.events(), 0U);
  folder.plan({});
  write_events(store, 8, 9);
  EXPECT_EQ(store.events(), 2U);
  const ReadAll read = read_all(store);
  EXPECT_EQ(read.keys, keys(8, 9));
  EXPECT_EQ(read.lost, 0U);
}

TEST(SpillRemovedTest, AFullFileIsCountedWhetherItIsMissedByALookOrByTheReplay) {
  for (const bool looks : {true, false}) {
    SimFolder folder;
    SpillLimits limits = small_segments;
    limits.durable = false;  // no handles are kept for a sync
    SpillStore store(folder, limits, silent);
    write_events(store, 1, 30);
    ASSERT_EQ(folder.remove(one_full_file(folder)), 0);
    std::uint64_t gone = 0;
    if (looks) {
      store.look_after_files();
      gone = store.take_removed();
      EXPECT_GT(gone, 0U);
      EXPECT_EQ(store.events(), 30 - gone);
      store.look_after_files();
      EXPECT_EQ(store.take_removed(), 0U) << "once";
    }
    const ReadAll read = read_all(store);
    gone += store.take_removed();
    EXPECT_GT(gone, 0U);
    EXPECT_EQ(read.lost, 0U);
    EXPECT_EQ(read.keys.size() + gone, 30U);
    EXPECT_EQ(store.events(), 0U);
    EXPECT_EQ(store.bytes(), 0U);
  }
}

TEST(SpillRemovedTest, FullFilesThatAreNotYetSyncedAreSaved) {
  SimFolder folder;
  SpillStore store(folder, small_segments, silent);
  write_events(store, 1, 30);
  ASSERT_EQ(folder.remove(one_full_file(folder)), 0);
  ASSERT_EQ(store.sync(), 0U);
  store.look_after_files();
  const std::uint64_t gone = store.take_removed();
  EXPECT_EQ(read_all(store).keys.size() + gone, 30U);
}

TEST(SpillRemovedTest, AFolderThatVanishesIsMadeAgainAndWhatWasOpenIsSaved) {
  SimFolder folder;
  SpillLimits limits = small_segments;
  limits.durable = false;
  SpillStore store(folder, limits, silent);
  write_events(store, 1, 30);
  SpillReader reader(store);
  SpillBatch batch;
  ASSERT_TRUE(reader.read(batch, 2, 1 << 20));
  reader.commit(batch, 2);
  folder.vanish();
  EXPECT_EQ(write_events(store, 31, 32), keys(31, 32));
  const std::uint64_t gone = store.take_removed();
  EXPECT_GT(gone, 0U);
  EXPECT_EQ(store.events() + gone + 2, 32U);
  EXPECT_TRUE(folder.has("eventlog-spillover.replay.jsonl")) << "a crash must not take it";
  EXPECT_TRUE(folder.has("eventlog-spillover.checkpoint"));

  const std::uint64_t waiting = store.events();
  ASSERT_EQ(store.sync(), 0U);  // as the writer does at its end
  SpillStore next(folder, limits, silent);
  ASSERT_GT(waiting, 2U);
  EXPECT_EQ(next.recovered(), waiting);
  EXPECT_EQ(next.take_removed(), 0U);
  const ReadAll read = read_all(next);
  ASSERT_EQ(read.keys.size(), waiting);
  EXPECT_EQ(read.keys.front(), "key-3");
  EXPECT_EQ(read.keys.back(), "key-32");
  EXPECT_EQ(read.lost, 0U);
}

TEST(SpillRemovedTest, AnotherFileInThePlaceOfOursIsKeptAndOursIsSaved) {
  SimFolder folder;
  SpillStore store(folder, {}, silent);
  write_events(store, 1, 5);
  folder.put(active, "somebody's\n");
  write_events(store, 6, 7);
  EXPECT_EQ(store.take_removed(), 0U);
  SpillReader reader(store);
  SpillBatch batch;
  ASSERT_TRUE(reader.read(batch, 3, 1 << 20));
  reader.commit(batch, 3);
  folder.put("eventlog-spillover.replay.jsonl", "somebody's too\n");
  ASSERT_TRUE(reader.read(batch, 100, 1 << 20));
  EXPECT_EQ(batch.items.size(), 4U) << "read on from the one that was opened";
  reader.commit(batch, 4);
  EXPECT_EQ(store.events(), 0U);
  std::vector<std::string> found;
  for (const std::string& name : folder.names()) {
    if (name.find(".found-") != std::string::npos) found.push_back(folder.content(name));
  }
  EXPECT_THAT(found, ::testing::UnorderedElementsAre("somebody's\n", "somebody's too\n"));
  // One that is there before ours is no reason to lose events either.
  folder.put(active, "somebody's third\n");
  EXPECT_EQ(write_events(store, 8, 9), keys(8, 9));
  EXPECT_EQ(read_all(store).keys, keys(8, 9));
}

TEST(SpillRemovedTest, AFileWhereOursIsGoingToBeIsKept) {
  SimFolder folder;
  SpillLimits limits = small_segments;
  limits.durable = false;
  SpillStore store(folder, limits, silent);
  write_events(store, 1, 1);
  const std::string number = segment_name(1, 0);
  folder.put(number, "somebody's\n");
  folder.put(replay_name, "somebody's too\n");
  write_events(store, 2, 30);
  EXPECT_EQ(folder.content(number), "somebody's\n") << "the first full file has another name";
  EXPECT_EQ(read_all(store).keys, keys(1, 30));
  EXPECT_EQ(folder.content(number), "somebody's\n");
  EXPECT_EQ(folder.content(replay_name), "somebody's too\n");
  // One that is replayed while it is still written.
  write_events(store, 31, 32);
  EXPECT_EQ(read_all(store).keys, keys(31, 32));
  EXPECT_EQ(folder.content(replay_name), "somebody's too\n");
}

TEST(SpillRemovedTest, AFullFileThatIsReplacedIsReadAsItIsAndWhatIsMissingIsCounted) {
  SimFolder folder;
  SpillLimits limits = small_segments;
  limits.durable = false;
  SpillStore store(folder, limits, silent);
  write_events(store, 1, 30);
  const std::string name = one_full_file(folder);
  const std::string text = folder.content(name);
  // Without its first line, as an editor would leave it, and with one of somebody else.
  folder.put(name, text.substr(text.find('\n') + 1) + R"({"idempotencyKey":"foreign","step":")" +
                       std::string(500, 'x') + R"("})" + "\n");
  const ReadAll read = read_all(store);
  EXPECT_EQ(read.keys.size(), 30U);
  EXPECT_EQ(std::count(read.keys.begin(), read.keys.end(), "foreign"), 1);
  EXPECT_EQ(read.lost + store.take_removed(), 1U);
  EXPECT_EQ(store.events(), 0U);
  EXPECT_EQ(store.bytes(), 0U);
}

TEST(SpillRemovedTest, ARemovedCheckpointIsWrittenAgain) {
  for (const bool replaced : {false, true}) {
    SimFolder folder;
    {
      SpillStore store(folder, {}, silent);
      write_events(store, 1, 9);
      SpillReader reader(store);
      SpillBatch batch;
      ASSERT_TRUE(reader.read(batch, 3, 1 << 20));
      reader.commit(batch, 3);
      const std::string old = folder.content("eventlog-spillover.checkpoint");
      ASSERT_TRUE(reader.read(batch, 2, 1 << 20));
      reader.commit(batch, 2);
      ASSERT_EQ(folder.remove("eventlog-spillover.checkpoint"), 0);
      if (replaced) folder.put("eventlog-spillover.checkpoint", old);
      store.look_after_files();
    }
    SpillStore store(folder, {}, silent);
    EXPECT_EQ(read_all(store).keys, keys(6, 9));
  }
}

TEST(SpillRemovedTest, RemovedDeadLettersAreBegunAnew) {
  SimFolder folder;
  SpillStore store(folder, {}, silent);
  ASSERT_TRUE(store.dead_letters().append("one", true));
  ASSERT_EQ(folder.remove("eventlog-spillover.dead.jsonl"), 0);
  ASSERT_TRUE(store.dead_letters().append("two", true));
  EXPECT_EQ(folder.content("eventlog-spillover.dead.jsonl"), "two\n");
}

TEST(SpillRemovedTest, AFileThatIsCutWhileItIsWrittenHasItsLossCountedAtOnce) {
  SimFolder original;
  SpillStore store(original, {}, silent);
  write_events(store, 1, 6);
  const std::string whole = original.content(active);
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    SimFolder folder;
    SpillStore cut(folder, {}, silent);
    write_events(cut, 1, 6);
    folder.change(active, [&](std::string& text) { text.resize(size); });
    const auto lines = static_cast<std::size_t>(
        std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size), '\n'));
    write_events(cut, 7, 8);
    ASSERT_EQ(cut.take_removed(), 6 - lines) << "cut at " << size;
    ASSERT_EQ(cut.events(), lines + 2);
    const ReadAll read = read_all(cut);
    auto wanted = keys(1, lines);
    wanted.insert(wanted.end(), {"key-7", "key-8"});
    ASSERT_EQ(read.keys, wanted) << "cut at " << size;
    ASSERT_EQ(read.lost, 0U) << "cut at " << size;
    ASSERT_EQ(cut.events(), 0U);
  }
}

/// Somebody does what he likes with the files while the logger works and starts again: each event is read or
/// counted, once.
TEST(SpillRemovedTest, WhateverSomebodyDoesToTheFilesTheBooksBalance) {
  const unsigned seed = test::chosen_seed();
  SCOPED_TRACE("POSTRIDER_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 300; ++round) {
    SimFolder folder;
    SpillLimits limits = small_segments;
    limits.durable = round % 2 == 0;
    std::optional<SpillStore> store;
    std::optional<SpillReader> reader;
    SpillBatch batch;
    std::size_t written = 0;
    std::uint64_t counted = 0;
    std::set<std::string> seen;
    const auto start = [&] {
      const std::uint64_t waiting = store ? store->events() : 0;
      reader.reset();
      store.emplace(folder, limits, silent);
      reader.emplace(*store);
      ASSERT_EQ(store->recovered(), waiting);
      counted += store->take_removed();
    };
    const auto read = [&](std::size_t most) {
      const bool any = reader->read(batch, most, 1 << 20);
      if (any) {
        for (const auto& item : batch.items) EXPECT_TRUE(seen.emplace(item.key).second) << item.key;
        counted += reader->commit(batch, batch.items.size()).lost;
      }
      counted += store->take_removed();
      return any;
    };
    const auto some_file = [&] {
      const auto names = folder.names();
      return names.empty() ? std::string("none") : names[random() % names.size()];
    };
    start();
    for (int step = 0; step < 60; ++step) {
      switch (random() % 10) {
        case 0:
        case 1:
        case 2:
        case 3: {
          const std::size_t count = 1 + random() % 5;
          write_events(*store, written + 1, written + count);
          written += count;
          break;
        }
        case 4:
        case 5:
          (void)read(1 + random() % 4);
          break;
        case 6:
          counted += store->drop_oldest();
          break;
        case 7:
          if (random() % 4 == 0) {
            folder.vanish();
          } else {
            (void)folder.remove(some_file());
          }
          break;
        case 8:
          folder.put(some_file(), "another file\n");
          break;
        default:
          store->look_after_files();
          counted += store->sync();
          counted += store->take_removed();
          ASSERT_NO_FATAL_FAILURE(start()) << "round " << round << " step " << step;
      }
      counted += store->take_removed();
      ASSERT_EQ(store->events() + seen.size() + counted, written) << "round " << round << " step " << step;
    }
    while (read(3)) {
    }
    ASSERT_EQ(store->events(), 0U) << "round " << round;
    ASSERT_EQ(seen.size() + counted, written) << "round " << round;
  }
}

}  // namespace
}  // namespace postrider::logger
