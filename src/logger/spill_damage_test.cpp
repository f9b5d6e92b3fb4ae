// SPDX-License-Identifier: Apache-2.0
// Disks that fail, files that are damaged, power that is cut.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <iostream>
#include <random>
#include <set>

#include "logger/spill_fixture.hpp"
#include "postrider/error.hpp"
#include "support/crash_run.hpp"

namespace postrider::logger {
namespace {

using test::SimFolder;
using ::testing::ElementsAre;

constexpr std::size_t events = 12;

std::string file_with_events(std::size_t count) {
  SimFolder folder;
  SpillStore store(folder, {}, silent);
  write_events(store, 1, count);
  return folder.content("eventlog-spillover.jsonl");
}

TEST(SpillDamageTest, HazardL7AFileCutAtAnyByteLosesItsLastEventAtMost) {
  const std::string whole = file_with_events(events);
  for (const char* name : {"eventlog-spillover.jsonl", "eventlog-spillover.replay.jsonl"}) {
    for (std::size_t size = 0; size <= whole.size(); ++size) {
      SimFolder folder;
      folder.put(name, whole.substr(0, size));
      const auto lines = static_cast<std::size_t>(
          std::count(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size), '\n'));
      const bool torn = size > 0 && whole[size - 1] != '\n';
      SpillStore store(folder, {}, silent);
      ASSERT_EQ(store.recovered(), lines) << name << " cut at " << size;
      ASSERT_EQ(write_events(store, 101, 102).size(), 2U);
      const ReadAll read = read_all(store);
      auto wanted = keys(1, lines);
      wanted.insert(wanted.end(), {"key-101", "key-102"});
      ASSERT_EQ(read.keys, wanted) << name << " cut at " << size << ": nothing may be merged";
      ASSERT_EQ(store.torn_tails() + read.quarantined, torn ? 1U : 0U);
      ASSERT_EQ(read.lost, 0U);
      ASSERT_EQ(folder.has("eventlog-spillover.quarantine.jsonl"), torn);
    }
  }
}

TEST(SpillDamageTest, AFullFileCutAtAnyByteHasItsLossCounted) {
  SimFolder original;
  {
    SpillStore store(original, small_segments, silent);
    write_events(store, 1, events);
  }
  const std::string name = original.names().front();
  ASSERT_NE(name, "eventlog-spillover.jsonl");
  const std::string whole = original.content(name);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    SimFolder folder;
    for (const std::string& other : original.names()) folder.put(other, original.content(other));
    folder.put(name, whole.substr(0, size));
    SpillStore store(folder, small_segments, silent);
    const ReadAll read = read_all(store);
    ASSERT_EQ(read.keys.size() + read.lost, events) << "cut at " << size;
    ASSERT_EQ(store.events(), 0U);
  }
}

TEST(SpillDamageTest, HazardL8TenThousandFlippedBitsTakeNoMoreThanTheirEvent) {
  const unsigned seed = test::chosen_seed();
  SCOPED_TRACE("POSTRIDER_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string whole = file_with_events(events);
  std::size_t harmless = 0;
  for (int round = 0; round < 10'000; ++round) {
    const std::size_t bit = random() % (whole.size() * 8);
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    SimFolder folder;
    folder.put("eventlog-spillover.jsonl", damaged);
    SpillStore store(folder, {}, silent);
    write_events(store, 101, 101);
    const ReadAll read = read_all(store);
    // A damaged last newline leaves a torn tail, which nobody had been promised.
    const std::size_t torn = store.torn_tails();
    ASSERT_EQ(read.keys.back(), "key-101") << "bit " << bit << ": the replay goes on";
    ASSERT_EQ(read.keys.size() + read.lost + torn, events + 1) << "bit " << bit;
    ASSERT_LE(read.lost + torn, 1U) << "bit " << bit;
    ASSERT_TRUE(read.lost == 0 || read.quarantined > 0) << "bit " << bit << ": what is lost is set aside";
    harmless += read.lost + torn == 0;
  }
  EXPECT_LT(harmless, 200U) << "only newlines inside the file can be mended";
}

struct Failure {
  const char* name;
  int error;
  bool for_ever;
};

class SpillFault : public ::testing::TestWithParam<Failure> {};

INSTANTIATE_TEST_SUITE_P(Disk, SpillFault,
                         ::testing::Values(Failure{"enospc_once", ENOSPC, false},
                                           Failure{"enospc_ever", ENOSPC, true},
                                           Failure{"eio_once", EIO, false}, Failure{"eio_ever", EIO, true},
                                           Failure{"short_once", 0, false}, Failure{"short_ever", 0, true}),
                         [](const auto& failure) { return failure.param.name; });

/// Writes, replays a part, writes on; tells what the store said it has, and what was replayed.
struct Scenario {
  std::vector<std::string> kept;
  std::vector<std::string> replayed;
  std::uint64_t lost = 0;
};

void run(SpillStore& store, Scenario& done) {
  const auto add = [&](std::size_t first, std::size_t last) {
    const auto kept = write_events(store, first, last, true);
    done.kept.insert(done.kept.end(), kept.begin(), kept.end());
  };
  add(1, 8);
  SpillReader reader(store);
  SpillBatch batch;
  for (int i = 0; i < 3 && reader.read(batch, 2, 1 << 20); ++i) {
    for (const auto& item : batch.items) done.replayed.emplace_back(item.key);
    done.lost += reader.commit(batch, batch.items.size()).lost;
  }
  add(9, 14);
}

/// Everything kept comes back, now or from the next process; nothing twice but what was replayed before.
void expect_all_there(SimFolder& folder, const Scenario& done, const std::string& where) {
  SpillStore store(folder, small_segments, silent);
  const ReadAll rest = read_all(store);
  std::multiset<std::string> seen(done.replayed.begin(), done.replayed.end());
  seen.insert(rest.keys.begin(), rest.keys.end());
  for (const std::string& key : done.kept) ASSERT_GE(seen.count(key), 1U) << key << " is missing, " << where;
  const std::multiset<std::string> again(rest.keys.begin(), rest.keys.end());
  for (const std::string& key : again) ASSERT_EQ(again.count(key), 1U) << key << " twice, " << where;
}

TEST_P(SpillFault, HazardL9AFaultAtAnyCallLosesNothingThatWasTaken) {
  std::size_t calls = 0;
  {
    SimFolder folder;
    SpillStore store(folder, small_segments, silent);
    Scenario done;
    run(store, done);
    calls = folder.calls();
    ASSERT_EQ(done.kept, keys(1, 14));
  }
  ASSERT_GT(calls, 40U);
  for (std::size_t at = 1; at <= calls; ++at) {
    SimFolder folder;
    Scenario done;
    std::uint64_t waiting = 0;
    {
      SpillStore store(folder, small_segments, silent);
      folder.plan({.at = at, .for_ever = GetParam().for_ever, .error = GetParam().error});
      run(store, done);
      waiting = store.events();
      folder.plan({});
      // The writer survives: with the disk back, it takes events again.
      ASSERT_THAT(write_events(store, 99, 99, true), ElementsAre("key-99")) << "call " << at;
      done.kept.push_back("key-99");
      ASSERT_EQ(store.events(), waiting + 1);
    }
    ASSERT_EQ(done.kept.size(), done.replayed.size() + done.lost + waiting + 1)
        << "the books, fault at call " << at;
    expect_all_there(folder, done, "fault at call " + std::to_string(at));
  }
}

TEST_P(SpillFault, AFaultAndThenAPowerCutLosesNothingThatWasSynced) {
  for (std::size_t at = 1; at <= 120; ++at) {
    SimFolder folder;
    Scenario done;
    {
      SpillStore store(folder, small_segments, silent);
      folder.plan({.at = at, .for_ever = GetParam().for_ever, .error = GetParam().error});
      run(store, done);
      folder.plan({});
      folder.power_cut();
    }
    expect_all_there(folder, done, "power cut after a fault at call " + std::to_string(at));
  }
}

/// What the last process has left is read at the start. Either all of that can be done, or the logger does
/// not start: what it passes over would never be replayed.
TEST(SpillDamageTest, AFaultAtTheStartLosesNothingThatWasThere) {
  const auto fill = [](SimFolder& folder) {
    SpillStore store(folder, small_segments, silent);
    write_events(store, 1, 14);
    SpillReader reader(store);
    SpillBatch batch;
    ASSERT_TRUE(reader.read(batch, 2, 1 << 20));
    (void)reader.commit(batch, 2);
  };
  std::size_t calls = 0;
  {
    SimFolder folder;
    fill(folder);
    const std::size_t before = folder.calls();
    const SpillStore store(folder, small_segments, silent);
    calls = folder.calls() - before;
  }
  ASSERT_GT(calls, 5U);
  std::size_t refused = 0;
  for (std::size_t at = 1; at <= calls; ++at) {
    SimFolder folder;
    fill(folder);
    folder.plan({.at = at, .error = EACCES});
    Scenario done;
    done.kept = keys(3, 14);
    try {
      SpillStore store(folder, small_segments, silent);
      folder.plan({});
      ASSERT_EQ(write_events(store, 99, 99), keys(99, 99));
      done.kept.emplace_back("key-99");
      const ReadAll read = read_all(store);
      done.replayed = read.keys;
      ASSERT_EQ(read.lost, 0U) << "call " << at;
    } catch (const Error&) {
      ++refused;
      folder.plan({});
    }
    expect_all_there(folder, done, "fault at call " + std::to_string(at));
  }
  EXPECT_GT(refused, 0U);
}

TEST(SpillDamageTest, APowerCutWithoutSyncLosesTheUnsyncedEventsOnly) {
  SimFolder folder;
  {
    SpillStore store(folder, {}, silent);
    write_events(store, 1, 5);
    ASSERT_EQ(store.sync(), 0U);
    write_events(store, 6, 9);
    folder.power_cut();
  }
  SpillStore store(folder, {}, silent);
  EXPECT_EQ(store.recovered(), 5U);
  EXPECT_EQ(read_all(store).keys, keys(1, 5));
}

TEST(SpillDamageTest, AFullFileWhoseSyncFailsIsWrittenAnew) {
  SimFolder folder;
  {
    SpillStore store(folder, small_segments, silent);
    write_events(store, 1, 7);  // one full file and an active one, neither synced
    folder.plan({.at = 1, .error = EIO});
    EXPECT_EQ(store.sync(), 0U);
    folder.power_cut();
  }
  SpillStore next(folder, small_segments, silent);
  EXPECT_EQ(read_all(next).keys, keys(1, 7));
}

TEST(SpillDamageTest, AFailedSyncIsNeverAskedAgain) {
  SimFolder folder;
  SpillStore store(folder, {}, silent);
  write_events(store, 1, 3);
  ASSERT_EQ(store.sync(), 0U);
  write_events(store, 4, 5);
  folder.plan({.at = 1, .error = EIO});
  EXPECT_EQ(store.sync(), 0U) << "the two in doubt are in a new file now";
  EXPECT_EQ(store.events(), 5U);
  folder.power_cut();
  SpillStore next(folder, {}, silent);
  EXPECT_EQ(read_all(next).keys, keys(1, 5));
}

TEST(SpillDamageTest, WhatTheQuarantineHasNoRoomForIsCountedAsSuch) {
  SimFolder folder;
  SpillStore store(folder, {}, silent);
  write_events(store, 1, 4);
  folder.change("eventlog-spillover.jsonl", [](std::string& lines) {
    for (const std::size_t number : {2U, 3U}) lines[lines.find("event " + std::to_string(number))] = 'E';
  });
  folder.plan({.at = 1, .for_ever = true, .error = ENOSPC, .writes_only = true});
  const ReadAll read = read_all(store);
  EXPECT_EQ(read.keys, (std::vector<std::string>{"key-1", "key-4"})) << "the replay goes on";
  EXPECT_EQ(read.lost, 2U);
  EXPECT_EQ(read.quarantined, 0U) << "nothing is there that was not written";
  EXPECT_EQ(read.discarded, 2U);
}

}  // namespace
}  // namespace postrider::logger
