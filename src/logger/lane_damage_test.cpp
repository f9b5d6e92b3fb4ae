// SPDX-License-Identifier: Apache-2.0
// Ring files that were damaged while no process had them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "logger/lane_fixture.hpp"
#include "logger/lane_set.hpp"
#include "postrider/event_log_entry.hpp"
#include "support/crash_run.hpp"
#include "support/temp_dir.hpp"

namespace postrider::logger {
namespace {

using Events = std::map<std::string, std::string>;  // key, packed

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

void flip(std::string& bytes, std::size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1U << bit % 8));
}

/// As if the file had these bytes; thousands of files would take their time.
LaneMemory memory_of(const std::string& bytes) {
  LaneMemory memory = LaneMemory::anonymous(lane_bytes);
  bytes.copy(memory.begin(), bytes.size());
  return memory;
}

/// What a lane gives to its drain.
Events drained(Lane& lane) {
  Events found;
  lane.drain(1'000'000, [&](const EventRef& ref) {
    std::string key;
    ref.append_key(key);
    found.emplace(key, ref.packed());
  });
  return found;
}

struct LaneDamage : ::testing::Test {
  const test::TempDir temp;
  const std::string path = temp.file("eventlog-ring.0");
  const unsigned seed = test::chosen_seed();
  std::mt19937 random{seed};
  Events live;
  std::string pristine;

  /// Chunks have gone round, and some records are done: three of ten, and all of the beginning.
  void SetUp() override {
    Lane lane(LaneMemory::file(path, lane_bytes), chunk_bytes, chunk_count, 0x1234567890abcdef);
    std::size_t number = 0;
    const auto push = [&] {
      EventLogEntry entry = EventLogEntry::process_step("Damage", "Step");
      entry.details("event " + std::to_string(number++) + std::string(random() % 90, 'x'));
      return lane.push(entry.packed(), static_cast<std::int64_t>(number));
    };
    for (int round = 0; round < 3; ++round) {
      while (push()) {
      }
      lane.drain(1'000'000, [&](const EventRef& ref) { lane.release(ref); });
    }
    while (push()) {
    }
    for (auto& [key, packed] : drained_keeping(lane)) live.emplace(key, packed);
    pristine = read_file(path);
  }
  static Events drained_keeping(Lane& lane) {
    Events kept;
    std::size_t count = 0;
    lane.drain(1'000'000, [&](const EventRef& ref) {
      if (count++ % 10 < 3) {
        lane.release(ref);
        return;
      }
      std::string key;
      ref.append_key(key);
      kept.emplace(key, ref.packed());
    });
    return kept;
  }
  /// Nothing that was not logged, nothing twice, and what is missing is counted.
  std::size_t expect_only_originals(const Events& found) const {
    std::size_t missing = live.size();
    for (const auto& [key, packed] : found) {
      const auto original = live.find(key);
      EXPECT_TRUE(original != live.end()) << key << " was done with, or never there";
      if (original == live.end()) continue;
      EXPECT_EQ(packed, original->second) << "altered";
      --missing;
    }
    return missing;
  }
};

TEST_F(LaneDamage, HazardL8OneFlippedBitCostsAtMostTheRecordThatItTouchesAndThatIsCounted) {
  SCOPED_TRACE("POSTRIDER_SEED=" + std::to_string(seed));
  ASSERT_GT(live.size(), 50U);
  std::size_t lost = 0;
  for (int trial = 0; trial < 2500; ++trial) {
    std::string bytes = pristine;
    const std::size_t bit = random() % (bytes.size() * 8);
    flip(bytes, bit);
    SCOPED_TRACE("bit " + std::to_string(bit) + " in byte " + std::to_string(bit / 8));
    Lane lane(memory_of(bytes), chunk_bytes, chunk_count, 2);
    const Events found = drained(lane);
    const std::size_t missing = expect_only_originals(found);
    ASSERT_EQ(lane.recovered(), found.size());
    ASSERT_LE(missing, 1U);
    ASSERT_EQ(lane.damaged(), missing);
    ASSERT_FALSE(HasFailure());
    lost += missing;
  }
  EXPECT_GT(lost, 100U) << "the bits have met records";
}

TEST_F(LaneDamage, HazardL8ManyFlippedBitsNeverAlterAnEventAndEveryLossIsCounted) {
  SCOPED_TRACE("POSTRIDER_SEED=" + std::to_string(seed));
  for (int trial = 0; trial < 200; ++trial) {
    std::string bytes = pristine;
    // Records only: heads have copies, and what both copies say is another test's.
    for (int i = 0; i < 8; ++i) {
      const std::size_t byte = LaneMemory::head_bytes + random() % chunk_count * chunk_bytes +
                               sizeof(ChunkHead) + random() % (chunk_bytes - sizeof(ChunkHead));
      flip(bytes, byte * 8 + random() % 8);
    }
    write_file(path, bytes);
    {
      Lane lane(LaneMemory::file(path, lane_bytes), chunk_bytes, chunk_count, 2);
      const std::size_t missing = expect_only_originals(drained(lane));
      ASSERT_LE(missing, 8U);
      // The number is not known when the last records of all are damaged, sizes and all; that is told.
      ASSERT_TRUE(lane.damaged() >= missing || lane.uncertain());
      ASSERT_GE(lane.damaged(), std::min<std::size_t>(missing, 1));
      ASSERT_LE(lane.damaged(), 8U);
    }
    // The next process finds the same events, and has nothing new to tell of.
    Lane again(LaneMemory::file(path, lane_bytes), chunk_bytes, chunk_count, 3);
    expect_only_originals(drained(again));
    ASSERT_EQ(again.damaged(), 0U);
    ASSERT_FALSE(HasFailure());
  }
}

TEST_F(LaneDamage, AChunkWithoutItsHeadIsKnownByItsRecords) {
  std::string bytes = pristine;
  for (std::size_t i = 0; i < sizeof(ChunkHead); ++i)
    bytes[LaneMemory::head_bytes + chunk_bytes + i] = static_cast<char>(random());
  write_file(path, bytes);
  Lane lane(LaneMemory::file(path, lane_bytes), chunk_bytes, chunk_count, 2);
  EXPECT_EQ(expect_only_originals(drained(lane)), 0U);
  EXPECT_EQ(lane.damaged(), 0U);
  EXPECT_TRUE(lane.uncertain());
}

/// A ring of the set's own shape, of one thread.
struct LaneSetDamage : ::testing::Test {
  static constexpr std::size_t ring_bytes = 1 << 16;
  const test::TempDir temp;
  const std::string path = temp.file("eventlog-ring.0");
  std::vector<std::string> said;
  std::vector<std::string> aside;
  LaneOptions options{.mapped = true,
                      .folder = temp.path().string(),
                      .ring_bytes = ring_bytes,
                      .log = [this](LogLevel, std::string_view text) { said.emplace_back(text); },
                      .quarantine = [this](std::string_view line) { aside.emplace_back(line); }};

  static EventLogEntry entry(std::size_t number) {
    EventLogEntry made;
    return made.details("event " + std::to_string(number));
  }
  std::string make_ring(std::size_t events) {
    const auto set = LaneSet::make(options);
    for (std::size_t i = 0; i < events; ++i) EXPECT_TRUE(set->mine()->push(entry(i).packed(), 7));
    return read_file(path);
  }
  static std::vector<std::string> texts(const LaneSet& set) {
    std::vector<std::string> found;
    set.for_each([&](Lane& lane) {
      lane.drain(1'000'000, [&](const EventRef& ref) {
        found.emplace_back(EventLogEntry::unpack(ref.packed())->get(EventLogEntry::Field::details));
      });
    });
    return found;
  }
  static std::vector<std::string> expected(std::size_t events) {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < events; ++i) all.push_back("event " + std::to_string(i));
    return all;
  }
};

TEST_F(LaneSetDamage, ARingWithoutItsHeadIsReadByItsSize) {
  std::string bytes = make_ring(300);
  std::fill(bytes.begin(), bytes.begin() + LaneMemory::head_bytes, '\x5a');
  write_file(path, bytes);
  const auto set = LaneSet::make(options);
  EXPECT_EQ(set->recovered(), 300U);
  EXPECT_EQ(set->damaged(), 0U);
  EXPECT_EQ(texts(*set), expected(300));
}

TEST_F(LaneSetDamage, ARingThatWasCutOffGivesWhatIsLeft) {
  const std::string bytes = make_ring(300);
  write_file(path, bytes.substr(0, LaneMemory::head_bytes + 3 * 4096 + 1000));
  const auto set = LaneSet::make(options);
  const std::vector<std::string> found = texts(*set);
  EXPECT_GT(found.size(), 230U);
  EXPECT_EQ(found, expected(found.size()));
  EXPECT_GE(set->damaged(), 1U) << "the chunk that was cut knows of more";
  EXPECT_THAT(said, ::testing::Contains(::testing::HasSubstr("was cut off")));
  EXPECT_THAT(said, ::testing::Contains(::testing::HasSubstr("perhaps more")));
}

TEST_F(LaneSetDamage, DamageIsToldAndSetAsideAsItWas) {
  std::string bytes = make_ring(30);
  const std::size_t at = bytes.find("event 17");
  bytes[at] = 'E';
  write_file(path, bytes);
  const auto set = LaneSet::make(options);
  EXPECT_EQ(set->damaged(), 1U);
  EXPECT_EQ(set->recovered(), 29U);
  EXPECT_THAT(said, ::testing::Contains(::testing::HasSubstr("is damaged: 1 event lost; 29 could be read")));
  ASSERT_EQ(aside.size(), 1U);
  EXPECT_THAT(aside[0], ::testing::HasSubstr(R"({"ring":"eventlog-ring.0","offset":)"));
  EXPECT_THAT(aside[0], ::testing::HasSubstr("4576656e74203137")) << "\"Event 17\"";
}

TEST_F(LaneSetDamage, AFileThatIsNoRingIsLeftAloneWithAWord) {
  write_file(path, std::string(100'000, 'x'));
  const auto set = LaneSet::make(options);
  EXPECT_EQ(set->recovered(), 0U);
  EXPECT_THAT(said, ::testing::ElementsAre(::testing::HasSubstr("is no ring that can be read")));
  EXPECT_NE(set->mine(), nullptr);
  EXPECT_EQ(read_file(path), std::string(100'000, 'x'));
}

TEST_F(LaneSetDamage, ARingThatWasNeverFinishedIsRemoved) {
  for (const std::size_t size : {std::size_t{0}, LaneMemory::head_bytes + ring_bytes}) {
    write_file(path, std::string(size, '\0'));
    const auto set = LaneSet::make(options);
    EXPECT_FALSE(std::filesystem::exists(path)) << size;
  }
  EXPECT_THAT(said, ::testing::IsEmpty());
}

/// As the first version wrote it: no checksums, heads of 64 and 24 bytes.
std::string old_ring(std::size_t events, std::uint64_t run) {
  constexpr std::size_t chunk = 4096;
  const auto put = [](std::string& out, std::size_t at, auto value) {
    std::memcpy(&out[at], &value, sizeof value);
  };
  std::string bytes(LaneMemory::head_bytes + chunk * 16, '\0');
  put(bytes, 0, LaneHead::magic_1);
  put(bytes, 8, std::uint32_t{chunk});
  put(bytes, 12, std::uint32_t{16});
  std::size_t index = 0;
  std::uint32_t offset = 64;
  for (std::size_t i = 0; i < events; ++i) {
    const EventLogEntry entry = LaneSetDamage::entry(i);
    const auto need = static_cast<std::uint32_t>((24 + entry.packed().size() + 7) / 8 * 8);
    if (offset + need > chunk) {
      ++index;
      offset = 64;
    }
    const std::size_t at = LaneMemory::head_bytes + index * chunk;
    put(bytes, at + offset, static_cast<std::uint32_t>(entry.packed().size()));
    put(bytes, at + offset + 4, std::uint32_t{i % 2 == 0 ? 1U : 2U});  // every second one is done
    put(bytes, at + offset + 8, std::uint64_t{i});
    put(bytes, at + offset + 16, std::int64_t{7});
    entry.packed().copy(&bytes[at + offset + 24], entry.packed().size());
    offset += need;
    put(bytes, at, offset);
    put(bytes, at + 8, std::uint64_t{index + 1});
    put(bytes, at + 16, run);
  }
  return bytes;
}

TEST_F(LaneSetDamage, ARingOfTheFirstVersionIsTakenOverWithItsKeys) {
  write_file(path, old_ring(600, 0xabc));
  write_file(temp.file("eventlog-ring.1"), old_ring(0, 0xabc));
  const auto set = LaneSet::make(options);
  EXPECT_EQ(set->recovered(), 300U);
  EXPECT_EQ(set->damaged(), 0U);
  std::size_t number = 0;
  set->for_each([&](Lane& lane) {
    lane.drain(1'000'000, [&](const EventRef& ref) {
      const EventLogEntry found = *EventLogEntry::unpack(ref.packed());
      EXPECT_EQ(found.get(EventLogEntry::Field::details), "event " + std::to_string(number));
      EXPECT_EQ(found.get(EventLogEntry::Field::idempotency_key),
                "0000000000000abc-" + std::to_string(number));
      EXPECT_EQ(ref.stamp(), TimePoint{Duration{7}});
      number += 2;
    });
  });
  EXPECT_EQ(number, 600U);
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_FALSE(std::filesystem::exists(temp.file("eventlog-ring.1"))) << "it had none";
  EXPECT_THAT(said, ::testing::Contains(::testing::HasSubstr("a ring of an older version, without checksums: "
                                                             "300 events taken over")));
}

}  // namespace
}  // namespace postrider::logger
