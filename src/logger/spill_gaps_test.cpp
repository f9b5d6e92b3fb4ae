// SPDX-License-Identifier: Apache-2.0
#include "logger/spill_gaps.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <set>

#include "logger/spill_fixture.hpp"
#include "support/crash_run.hpp"

namespace postrider::logger {
namespace {

using test::SimFolder;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Gap = SpillGaps::Gap;

TEST(SpillGapsTest, TouchingGapsBecomeOne) {
  SimFolder folder;
  SpillGaps gaps(folder);
  gaps.add({10, 20});
  gaps.add({40, 50});
  gaps.add({20, 25});
  gaps.add({60, 60});
  EXPECT_THAT(gaps.list(), ElementsAre(Gap{10, 25}, Gap{40, 50}));
  gaps.add({24, 41});
  EXPECT_THAT(gaps.list(), ElementsAre(Gap{10, 50}));
  gaps.add({1, 5});
  EXPECT_THAT(gaps.list(), ElementsAre(Gap{1, 5}, Gap{10, 50}));
  gaps.forget_before(5);
  EXPECT_THAT(gaps.list(), ElementsAre(Gap{10, 50}));
}

TEST(SpillGapsTest, AreThereForTheNextProcessAndADamagedFileHasNone) {
  SimFolder folder;
  {
    SpillGaps gaps(folder);
    gaps.add({10, 20});
    gaps.add({30, 31});
    ASSERT_TRUE(gaps.save());
  }
  SpillGaps again(folder);
  again.load();
  EXPECT_THAT(again.list(), ElementsAre(Gap{10, 20}, Gap{30, 31}));
  again.forget_before(100);
  ASSERT_TRUE(again.save());
  EXPECT_THAT(folder.names(), IsEmpty());

  again.add({10, 20});
  ASSERT_TRUE(again.save());
  const std::string whole = folder.content("eventlog-spillover.gaps");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    folder.put("eventlog-spillover.gaps", damaged);
    SpillGaps gaps(folder);
    gaps.load();
    EXPECT_THAT(gaps.list(), IsEmpty()) << i;
    folder.put("eventlog-spillover.gaps", whole.substr(0, i));
    gaps.load();
    EXPECT_THAT(gaps.list(), IsEmpty()) << "cut at " << i;
  }
}

TEST(SpillGapsTest, WhatWasGivenUpIsNotToldAgainAfterARestart) {
  SimFolder folder;
  std::uint64_t given_up = 0;
  {
    SpillStore store(folder, small_segments, silent);
    write_events(store, 1, 20);
    SpillReader reader(store);
    SpillBatch batch;
    ASSERT_TRUE(reader.read(batch, 1, 1 << 20));
    reader.commit(batch, 1);
    given_up = store.drop_oldest() + store.drop_oldest();
    ASSERT_GT(given_up, 2U);
    write_events(store, 21, 21);
  }
  SpillStore store(folder, small_segments, silent);
  EXPECT_EQ(store.recovered(), 20 - given_up);
  const ReadAll read = read_all(store);
  EXPECT_EQ(read.lost, 0U);
  EXPECT_EQ(read.keys.size(), 20 - given_up);
  EXPECT_EQ(store.events(), 0U);
  EXPECT_THAT(folder.names(), ElementsAre("eventlog-spillover.checkpoint")) << "nothing is left to remember";
}

/// Writes, reads, gives up and starts anew in any order: each event is read or told as given up, once.
TEST(SpillGapsTest, AnyOrderOfWritingReadingGivingUpAndRestartingTellsOfEachEventOnce) {
  const unsigned seed = test::chosen_seed();
  SCOPED_TRACE("POSTRIDER_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    SimFolder folder;
    std::optional<SpillStore> store;
    std::optional<SpillReader> reader;
    SpillBatch batch;
    std::size_t written = 0;
    std::uint64_t given_up = 0;
    std::set<std::string> seen;
    std::uint64_t lost = 0;
    const auto start = [&] {
      const std::uint64_t waiting = store ? store->events() : 0;
      reader.reset();
      store.emplace(folder, small_segments, silent);
      reader.emplace(*store);
      ASSERT_EQ(store->recovered(), waiting);
    };
    const auto read = [&](std::size_t most) {
      if (!reader->read(batch, most, 1 << 20)) return false;
      for (const auto& item : batch.items) EXPECT_TRUE(seen.emplace(item.key).second) << item.key;
      lost += reader->commit(batch, batch.items.size()).lost;
      return true;
    };
    start();
    for (int step = 0; step < 60; ++step) {
      switch (random() % 6) {
        case 0:
        case 1:
        case 2: {
          const std::size_t count = 1 + random() % 5;
          write_events(*store, written + 1, written + count);
          written += count;
          break;
        }
        case 3:
          (void)read(1 + random() % 4);
          break;
        case 4:
          given_up += store->drop_oldest();
          break;
        default:
          (void)store->sync();  // as the writer does at its end
          ASSERT_NO_FATAL_FAILURE(start());
      }
      ASSERT_EQ(store->events() + seen.size() + given_up, written) << "round " << round << " step " << step;
    }
    while (read(3)) {
    }
    ASSERT_EQ(lost, 0U) << "round " << round;
    ASSERT_EQ(seen.size() + given_up, written) << "round " << round;
  }
}

}  // namespace
}  // namespace postrider::logger
