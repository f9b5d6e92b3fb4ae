// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/wake_channel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "postrider/sqlite.hpp"
#include "support/logged_lines.hpp"
#include "support/temp_dir.hpp"
#include "support/wakes.hpp"

namespace postrider::sqlite {
namespace {

using test::Wakes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SqliteWakeChannelTest : public ::testing::Test {
 protected:
  test::TempDir dir_;
  const std::string database_ = dir_.file("shop.db");
  const std::string path_ = database_ + "-wake";
  test::LoggedLines log_;
};

TEST_F(SqliteWakeChannelTest, ASignalReachesAnotherNodeAndThisOne) {
  const StorageDriver sqlite = driver();
  const std::string url = "sqlite:" + dir_.file("shop.db");
  const auto one = sqlite.open(url, {});
  const auto other = sqlite.open(url, {});
  Wakes here;
  Wakes there;
  const auto first = one->wake_channel()->listen(wake_topic::stream, [&here] { here(); });
  const auto second = other->wake_channel()->listen(wake_topic::stream, [&there] { there(); });
  ASSERT_TRUE(here.more_than(0)) << "once it listens, because something may have been missed";
  ASSERT_TRUE(there.more_than(0));
  for (int i = 0; i < 3; ++i) {
    const int before_here = here.count();
    const int before_there = there.count();
    one->wake_channel()->notify(wake_topic::stream);
    EXPECT_TRUE(here.more_than(before_here));
    EXPECT_TRUE(there.more_than(before_there));
  }
}

TEST_F(SqliteWakeChannelTest, OtherTopicsAreNotHeard) {
  SqliteWakeChannel channel(database_, log_.callback());
  Wakes wakes;
  const auto subscription = channel.listen(wake_topic::queue, [&wakes] { wakes(); });
  ASSERT_TRUE(wakes.more_than(0));
  channel.notify(wake_topic::stream);
  channel.notify(wake_topic::relay);
  channel.notify(wake_topic::queue);  // changes come in order: when this one is there, the others were
  ASSERT_TRUE(wakes.more_than(1));
  EXPECT_EQ(wakes.count(), 2);
}

TEST_F(SqliteWakeChannelTest, ARemovedFileIsMadeAnewAndWakes) {
  SqliteWakeChannel channel(database_, log_.callback());
  Wakes wakes;
  const auto subscription = channel.listen(wake_topic::queue, [&wakes] { wakes(); });
  ASSERT_TRUE(wakes.more_than(0));
  ASSERT_TRUE(std::filesystem::remove(path_));
  ASSERT_TRUE(wakes.more_than(1)) << "something may have been missed meanwhile";
  channel.notify(wake_topic::queue);
  ASSERT_TRUE(wakes.more_than(2));
  // Whoever has signalled before the removal does so through the new one.
  const int before = wakes.count();
  ASSERT_TRUE(std::filesystem::remove(path_));
  channel.notify(wake_topic::queue);
  EXPECT_TRUE(wakes.more_than(before));
  EXPECT_THAT(log_.all(), ElementsAre());
}

TEST_F(SqliteWakeChannelTest, WhoMayWriteTheDatabaseMaySignal) {
  std::ofstream{database_}.close();
  constexpr std::filesystem::perms shared{0660};
  std::filesystem::permissions(database_, shared);
  constexpr uid_t somebody = 12'345;
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::chown(database_.c_str(), somebody, somebody), 0);
  }
  SqliteWakeChannel channel(database_, log_.callback());
  channel.notify(wake_topic::queue);
  EXPECT_EQ(std::filesystem::status(path_).permissions(), shared);
  struct stat about {};
  ASSERT_EQ(::stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, root ? somebody : ::geteuid());
}

TEST_F(SqliteWakeChannelTest, DestructionIsPromptAndNothingIsWokenBehindIt) {
  SqliteWakeChannel channel(database_, log_.callback());
  Wakes wakes;
  auto subscription = channel.listen(wake_topic::queue, [&wakes] { wakes(); });
  ASSERT_TRUE(wakes.more_than(0));
  subscription.reset();  // it would wait for ever otherwise
  const int before = wakes.count();
  channel.notify(wake_topic::queue);
  EXPECT_EQ(wakes.count(), before);
}

TEST_F(SqliteWakeChannelTest, WithoutAFolderItComplainsOnceAndTriesAgain) {
  const std::filesystem::path folder = dir_.file("later");
  SqliteWakeChannel channel(folder / "shop.db", log_.callback());
  Wakes wakes;
  const auto subscription = channel.listen(wake_topic::queue, [&wakes] { wakes(); });
  EXPECT_ANY_THROW(channel.notify(wake_topic::queue));
  EXPECT_EQ(wakes.count(), 0);
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(wakes.more_than(0));
  if (const std::vector<std::string> said = log_.all();
      !said.empty()) {  // unless it came too late to see that
    EXPECT_THAT(said, ElementsAre(HasSubstr("shop.db-wake), trying again: ")));
  }
}

TEST_F(SqliteWakeChannelTest, WhatIsWokenMayThrow) {
  SqliteWakeChannel channel(database_, log_.callback());
  Wakes wakes;
  const auto subscription = channel.listen(wake_topic::queue, [&wakes] {
    wakes();
    throw std::runtime_error("not now");
  });
  ASSERT_TRUE(wakes.more_than(0));
  channel.notify(wake_topic::queue);
  EXPECT_TRUE(wakes.more_than(1));
}

}  // namespace
}  // namespace postrider::sqlite
