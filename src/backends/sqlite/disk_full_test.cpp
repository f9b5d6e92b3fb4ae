// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "backends/sqlite/storage.hpp"
#include "postrider/error.hpp"
#include "support/temp_dir.hpp"

namespace postrider::sqlite {
namespace {

using namespace std::chrono_literals;

class DiskFull : public ::testing::Test {
 protected:
  static void publish(Storage& storage, const std::string& id) {
    const Event event = Event::builder("E").id(EventId(id)).bytes(std::string(20'000, 'x')).build();
    const NewOutboxRow row{.event = &event};
    Transaction tx = storage.begin();
    storage.outbox_store().insert(tx, "n", {&row, 1});
    tx.commit();
  }
  test::TempDir dir_;
};

/// A file system of two mebibytes. Needs root.
class SmallDisk : public DiskFull {
 protected:
  void SetUp() override {
    mounted_ = ::mount("tmpfs", dir_.path().c_str(), "tmpfs", 0, "size=2m") == 0;
    if (!mounted_)
      GTEST_SKIP() << "SKIPPED, NOT TESTED: cannot mount a small tmpfs: " << std::strerror(errno);
  }
  void TearDown() override {
    if (mounted_ && ::umount(dir_.path().c_str()) != 0) ADD_FAILURE() << std::strerror(errno);
  }
  bool mounted_ = false;
};

TEST_F(SmallDisk, AFullDiskRefusesClearlyAndEverythingGoesOnOnceThereIsRoom) {
  SqliteStorage storage("sqlite:" + dir_.file("test.db"), {});
  storage.migrate({});
  std::ofstream(dir_.file("ballast")) << std::string(600'000, 'b');
  int published = 0;
  std::optional<Error> error;
  while (!error.has_value() && published < 1000) {
    try {
      publish(storage, "e" + std::to_string(published));
      ++published;
    } catch (const Error& full) {
      error = full;
    }
  }
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::storage_full) << error->what();
  EXPECT_TRUE(error->retryable());
  EXPECT_FALSE(error->in_doubt());
  EXPECT_THAT(error->what(), ::testing::HasSubstr("free some space"));
  ASSERT_GT(published, 5);
  const std::string refused = "e" + std::to_string(published);
  EXPECT_FALSE(storage.outbox_admin_store().find(EventId(refused)).has_value());
  EXPECT_EQ(storage.outbox_admin_store().counts().pending, published) << "what was committed is there";
  for (int i = 0; i < 3; ++i) EXPECT_THROW(publish(storage, refused), Error) << "still full, still clear";

  std::filesystem::remove(dir_.file("ballast"));
  publish(storage, refused);
  EXPECT_EQ(storage.outbox_admin_store().counts().pending, published + 1);
  const auto claimed = storage.outbox_store().claim({.owner = "n", .lease = 1h, .limit = 3});
  EXPECT_EQ(claimed.size(), 3U);
}

TEST_F(DiskFull, AFileThatMayNotGrowIsNamedAsACauseAndEverythingGoesOnWhenItMay) {
  SqliteStorage storage("sqlite:" + dir_.file("test.db"), {});
  storage.migrate({});
  publish(storage, "before");
  struct rlimit usual {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 4096, usual.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::optional<Error> error;
  try {
    publish(storage, "full");
  } catch (const Error& full) {
    error = full;
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &usual), 0);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->code(), ErrorCode::unavailable) << error->what();
  EXPECT_TRUE(error->retryable());
  EXPECT_THAT(error->what(), ::testing::HasSubstr("ulimit -f"));
  publish(storage, "after");
  EXPECT_EQ(storage.outbox_admin_store().counts().pending, 2);
}

}  // namespace
}  // namespace postrider::sqlite
