// SPDX-License-Identifier: Apache-2.0
#include "logger/spill_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

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
  fs::create_directory(path);
  fs::create_symlink(victim, path / "eventlog-spillover.jsonl");
  const auto folder = open_spill_folder(path.string());
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

TEST(SpillFolderTest, AFolderThatCannotBeMadeIsTold) {
  EXPECT_THROW((void)open_spill_folder("/proc/no/such/folder"), Error);
}

}  // namespace
}  // namespace postrider::logger
