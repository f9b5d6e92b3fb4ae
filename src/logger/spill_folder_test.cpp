// SPDX-License-Identifier: Apache-2.0
#include "logger/spill_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "logger/spill_fixture.hpp"
#include "postrider/error.hpp"
#include "support/temp_dir.hpp"

namespace postrider::logger {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

unsigned mode_of(const fs::path& path) {
  struct stat facts {};
  EXPECT_EQ(::lstat(path.c_str(), &facts), 0) << path;
  return facts.st_mode & 07777U;
}

TEST(SpillFolderTest, HazardL16FilesAreForTheirOwnerAlone) {
  const test::TempDir temp;
  const fs::path path = temp.path() / "a" / "b";
  const mode_t before = ::umask(0);
  {
    const auto folder = open_spill_folder(path.string());
    SpillStore store(*folder, {}, silent);
    write_events(store, 1, 3, true);
    EXPECT_EQ(read_all(store).keys, keys(1, 3));
    write_events(store, 4, 4);
    EXPECT_TRUE(store.dead_letters().append("{}", true));
  }
  ::umask(before);
  EXPECT_EQ(mode_of(path), 0700U);
  EXPECT_EQ(mode_of(temp.path() / "a"), 0700U);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(path)) {
    EXPECT_EQ(mode_of(entry.path()), 0600U) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 4U);
}

TEST(SpillFolderTest, HazardL16ASymbolicLinkIsNotFollowed) {
  const test::TempDir temp;
  const std::string victim = temp.file("victim");
  const fs::path path = temp.path() / "spill";
  const auto folder = open_spill_folder(path.string());
  fs::create_symlink(victim, path / "eventlog-spillover.jsonl");
  EXPECT_EQ(folder->open("eventlog-spillover.jsonl", SpillFolder::Mode::append), -ELOOP);
  EXPECT_FALSE(fs::exists(victim));

  fs::create_symlink(path, temp.path() / "link");
  EXPECT_THROW((void)open_spill_folder(temp.file("link")), Error);
  ::chmod(path.c_str(), 0777);
  EXPECT_THROW((void)open_spill_folder(path.string()), Error) << "everybody could put files there";
}

TEST(SpillFolderTest, HazardL13ASecondLoggerOnTheSameFolderIsTold) {
  const test::TempDir temp;
  auto first = open_spill_folder(temp.file("spill"));
  try {
    (void)open_spill_folder(temp.file("spill"));
    FAIL() << "two on one folder";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::conflict);
    EXPECT_THAT(error.what(), HasSubstr("another logger uses it"));
    EXPECT_THAT(error.what(), HasSubstr("Hint:"));
  }
  first.reset();
  EXPECT_NO_THROW((void)open_spill_folder(temp.file("spill"))) << "free again";
}

/// Something that is no file, under the name of one.
void put_other(const fs::path& path, const std::string& kind) {
  if (kind == "a FIFO") {
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  } else if (kind == "a folder") {
    fs::create_directory(path);
  } else if (kind == "a symbolic link") {
    fs::create_symlink("nowhere", path);
  } else {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    ASSERT_LT(path.string().size(), sizeof address.sun_path);
    std::strcpy(address.sun_path, path.c_str());  // NOLINT
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ::close(socket);
  }
}

TEST(SpillFolderTest, HazardL16WhatIsNoFileIsRefusedAtTheStartAndHangsNobody) {
  for (const std::string name :
       {"eventlog-spillover.lock", "eventlog-spillover.jsonl", "eventlog-spillover.replay.jsonl",
        "eventlog-spillover.00000000000000000001-0000.jsonl", "eventlog-spillover.checkpoint",
        "eventlog-spillover.gaps", "eventlog-spillover.dead.jsonl", "eventlog-spillover.quarantine.jsonl",
        "eventlog-ring.0"}) {
    for (const std::string kind : {"a FIFO", "a folder", "a socket", "a symbolic link"}) {
      const test::TempDir temp;
      const std::string path = temp.file("s");
      fs::create_directory(path);
      ASSERT_NO_FATAL_FAILURE(put_other(fs::path(path) / name, kind));
      try {
        const auto folder = open_spill_folder(path);
        const SpillStore store(*folder, {}, silent);
        FAIL() << kind << " as " << name << " was taken";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
        EXPECT_THAT(error.what(), HasSubstr(path));
        EXPECT_THAT(error.what(), HasSubstr(name + " is " + kind));
        EXPECT_THAT(error.what(), HasSubstr("Hint:"));
      }
    }
  }
}

TEST(SpillFolderTest, HazardL16WhatIsNoFileIsNotOpenedLaterEither) {
  const test::TempDir temp;
  const std::string path = temp.file("s");
  const auto folder = open_spill_folder(path);
  for (const std::string kind : {"a FIFO", "a folder", "a socket"}) {
    const std::string name = "eventlog-" + kind.substr(2);
    ASSERT_NO_FATAL_FAILURE(put_other(fs::path(path) / name, kind));
    for (const auto mode : {SpillFolder::Mode::read, SpillFolder::Mode::append, SpillFolder::Mode::update})
      EXPECT_LT(folder->open(name, mode), 0) << kind;
  }
}

TEST(SpillFolderTest, AFolderOfAnotherNameIsNoneOfOurBusiness) {
  const test::TempDir temp;
  const std::string path = temp.file("s");
  fs::create_directories(fs::path(path) / "eventlog-spillover.old");
  fs::create_directories(fs::path(path) / "eventlog-ring.bak");
  EXPECT_NO_THROW((void)open_spill_folder(path));
}

TEST(SpillFolderTest, AFolderThatCannotBeMadeIsTold) {
  EXPECT_THROW((void)open_spill_folder("/proc/no/such/folder"), Error);
}

}  // namespace
}  // namespace postrider::logger
