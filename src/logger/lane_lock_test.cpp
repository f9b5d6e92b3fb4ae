// SPDX-License-Identifier: Apache-2.0
// Ring files that another logger has in use, or writes into all the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "logger/lane_fixture.hpp"
#include "logger/lane_set.hpp"
#include "logger/logger_fixture.hpp"
#include "logger/spill_folder.hpp"

namespace postrider::logger {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

template <class Call>
void expect_conflict(const Call& call, const std::string& words) {
  try {
    call();
    FAIL() << "nobody was kept out";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::conflict);
    EXPECT_THAT(error.what(), HasSubstr(words));
    EXPECT_THAT(error.what(), HasSubstr("Hint:"));
  }
}

TEST(LaneLock, ARingFileHasOneUserAtATime) {
  const test::TempDir temp;
  const std::string path = temp.file("eventlog-ring.0");
  {
    const Lane lane(LaneMemory::file(path, lane_bytes), chunk_bytes, chunk_count, 1);
    expect_conflict([&] { (void)LaneMemory::file(path, lane_bytes); }, path + ": another logger uses it");
    const auto log = [](LogLevel, std::string_view) {};
    expect_conflict([&] { (void)LaneSet::make({.folder = temp.path().string(), .log = log}); }, path);
  }
  EXPECT_NO_THROW((void)LaneMemory::file(path, lane_bytes));
}

TEST(LaneLock, AChildThatDiesDoesNotUnlockTheRingOfItsParent) {
  const test::TempDir temp;
  const std::string path = temp.file("eventlog-ring.0");
  auto memory = std::make_unique<LaneMemory>(LaneMemory::file(path, lane_bytes));
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    memory.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  expect_conflict([&] { (void)LaneMemory::file(path, lane_bytes); }, "another logger uses it");
}

TEST(LaneLock, FilesOfALoggerThatHasEndedAreFreeWhileAThreadStillKeepsTheSet) {
  const test::TempDir temp;
  const LaneOptions options{
      .mapped = true, .folder = temp.path().string(), .log = [](LogLevel, std::string_view) {}};
  const auto set = LaneSet::make(options);
  ASSERT_TRUE(set->mine()->push(numbered(1).packed(), 0));
  expect_conflict([&] { (void)LaneSet::make(options); }, "eventlog-ring.0");
  set->unlock_files();
  EXPECT_EQ(LaneSet::make(options)->recovered(), 1U);
}

TEST(LaneLock, WithoutTheFileOfItsLockAFolderIsLockedAllTheSame) {
  const test::TempDir temp;
  const std::string path = temp.file("s");
  {
    const auto folder = open_spill_folder(path);
    fs::remove(fs::path(path) / "eventlog-spillover.lock");
    expect_conflict([&] { (void)open_spill_folder(path); }, "another logger uses it");
    EXPECT_EQ(folder->restore(), 0);
    EXPECT_TRUE(fs::exists(fs::path(path) / "eventlog-spillover.lock"));
    fs::rename(path, temp.file("moved"));
    EXPECT_EQ(folder->restore(), 1);
    fs::remove(fs::path(path) / "eventlog-spillover.lock");
    expect_conflict([&] { (void)open_spill_folder(path); }, "another logger uses it");
  }
  EXPECT_NO_THROW((void)open_spill_folder(path));
}

struct LaneLockLogger : LoggerFixture {};

TEST_F(LaneLockLogger, ALoggerIsRefusedBeforeItTouchesAFolderWhoseRingsAreInUse) {
  LoggerOptions mapped = options();
  mapped.ring = RingMode::mapped;
  LoggerOptions second = options();
  second.spillover_path = temp.file("other");
  const fs::path active = temp.path() / "other" / "eventlog-spillover.jsonl";
  client->hang();
  {
    AsyncEventLogger logger(client, mapped);
    ASSERT_TRUE(logger.log(numbered(1)));
    ASSERT_TRUE(client->await_requests(1));
    // As after somebody has moved the folder away: no lock stands before the rings.
    fs::create_directory(second.spillover_path);
    fs::create_hard_link(temp.path() / "spill" / "eventlog-ring.0",
                         fs::path(second.spillover_path) / "eventlog-ring.0");
    std::ofstream(active) << "half a line";
    expect_conflict([&] { const AsyncEventLogger refused(client, second); },
                    "another logger uses its file eventlog-ring.0");
    EXPECT_EQ(fs::file_size(active), std::string_view("half a line").size()) << "nothing was cut off";
    client->release();
    ASSERT_TRUE(logger.flush());
    expect_balance(logger.stats());
  }
  const AsyncEventLogger next(client, second);
  EXPECT_EQ(next.stats().recovered, 0U);
}

struct LaneOverwritten : ::testing::Test {
  LaneMemory memory = LaneMemory::anonymous(lane_bytes);
  char* const begin = memory.begin() + LaneMemory::head_bytes;
  Lane lane{std::move(memory), chunk_bytes, chunk_count, 1};

  RecordHead& first_record() const {
    return *std::launder(reinterpret_cast<RecordHead*>(begin + sizeof(ChunkHead)));
  }
  std::size_t drain() {
    const std::size_t count = lane.drain(1'000'000, [&](const EventRef& ref) {
      EXPECT_LE(ref.packed().data() + ref.packed().size(), begin + chunk_bytes * (ref.chunk + 1));
    });
    lane.seen(count);
    return count;
  }
};

// A size of a gigabyte kept the sender busy for minutes with room for it: the shutdown hung.
TEST_F(LaneOverwritten, ASizeFromSomebodyElseLeadsNobodyOutOfTheChunk) {
  for (std::size_t i = 0; i < 3; ++i) ASSERT_TRUE(lane.push(numbered(i).packed(), 0));
  first_record().size_and_marks = RecordHead::filler_mark - 1;
  EXPECT_EQ(drain(), 1U) << "what is behind it cannot be found";
}

TEST_F(LaneOverwritten, AnEndFromSomebodyElseLeadsNobodyOutOfTheChunk) {
  while (lane.push(numbered(1).packed(), 0)) {
  }
  const std::uint64_t pushed = lane.unseen();
  for (std::uint32_t i = 0; i < chunk_count; ++i) lane.chunk(i).tail = coded_tail(chunk_bytes * 2);
  EXPECT_LE(drain(), pushed);
}

TEST_F(LaneOverwritten, RecordsOfSomebodyElseAreNotCountedAsSeenHere) {
  ASSERT_TRUE(lane.push(numbered(1).packed(), 0));
  // Another process has put one more behind it.
  std::memcpy(begin + sizeof(ChunkHead) + first_record().room(), begin + sizeof(ChunkHead),
              first_record().room());
  lane.chunk(0).tail = coded_tail(static_cast<std::uint32_t>(sizeof(ChunkHead) + 2 * first_record().room()));
  EXPECT_EQ(drain(), 1U);
  EXPECT_EQ(lane.unseen(), 0U) << "below zero it was once";
}

}  // namespace
}  // namespace postrider::logger
