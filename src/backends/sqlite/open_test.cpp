// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "postrider/error.hpp"
#include "postrider/sqlite.hpp"
#include "support/temp_dir.hpp"

namespace postrider::sqlite {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Storage> open_file(const std::string& url, const StorageOptions& options = {}) {
  const std::array drivers{driver()};
  return open_with(drivers, url, options);
}

Error error_of(const std::string& url) {
  try {
    (void)open_file(url);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown for " << url;
  return Error(ErrorCode::database, "nothing was thrown");
}

class SqliteOpen : public ::testing::Test {
 protected:
  test::TempDir dir_;
};

TEST_F(SqliteOpen, CreatesTheFileInWalModeWithFullSync) {
  const auto storage = open_file("sqlite:" + dir_.file("shop.db"));
  EXPECT_TRUE(std::filesystem::exists(dir_.file("shop.db")));
  EXPECT_EQ(storage->kind(), BackendKind::sqlite);
  EXPECT_EQ(storage->name(), "sqlite:" + dir_.file("shop.db"));
  storage->ping();
  Transaction tx = storage->begin();
  EXPECT_EQ(tx.execute("PRAGMA journal_mode").text(0, 0), "wal");
  EXPECT_EQ(tx.execute("PRAGMA synchronous").text(0, 0), "2");
  EXPECT_EQ(tx.execute("PRAGMA foreign_keys").text(0, 0), "0") << "left as SQLite has it";
}

TEST_F(SqliteOpen, LessSyncOnlyByChoice) {
  const auto storage = open_file("sqlite:" + dir_.file("x.db"), {.sqlite_full_sync = false});
  Transaction tx = storage->begin();
  EXPECT_EQ(tx.execute("PRAGMA synchronous").text(0, 0), "1");
}

TEST_F(SqliteOpen, TakesAbsolutePathsAsUrlToo) {
  (void)open_file("sqlite://" + dir_.file("abs.db"));
  EXPECT_TRUE(std::filesystem::exists(dir_.file("abs.db")));
}

TEST_F(SqliteOpen, AUrlWithAHostIsRefused) {
  const Error error = error_of("sqlite://host/file.db");
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.what(), HasSubstr("sqlite:///absolute/path"));
}

TEST_F(SqliteOpen, MemoryIsRefusedAndSaysWhy) {
  const Error error = error_of("sqlite::memory:");
  EXPECT_EQ(error.code(), ErrorCode::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("every connection would see a database of its own"));
  EXPECT_EQ(error_of("sqlite:").code(), ErrorCode::invalid_argument);
}

TEST_F(SqliteOpen, AMissingDirectory) {
  const Error error = error_of("sqlite:" + dir_.file("no/such/x.db"));
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_STREQ(error.what(), ("postrider: cannot open sqlite:" + dir_.file("no/such/x.db") + ": directory " +
                              dir_.file("no/such") + " does not exist. Hint: create it first: mkdir -p " +
                              dir_.file("no/such"))
                                 .c_str());
}

TEST_F(SqliteOpen, ADirectoryInsteadOfAFile) {
  EXPECT_THAT(error_of("sqlite:" + dir_.path().string()).what(), HasSubstr("is a directory"));
}

TEST_F(SqliteOpen, AFileThatIsNoDatabase) {
  std::ofstream(dir_.file("text.db")) << std::string(4096, 'x');
  const Error error = error_of("sqlite:" + dir_.file("text.db"));
  EXPECT_EQ(error.code(), ErrorCode::database) << error.what();
  EXPECT_THAT(error.what(), HasSubstr("not a database"));
}

/// Root may write everywhere: these tests look with somebody else's eyes.
class AsNobody {
 public:
  AsNobody() : changed_(::geteuid() == 0 && ::seteuid(65534) == 0) {}
  ~AsNobody() {
    if (changed_ && ::seteuid(0) != 0) std::abort();
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  bool changed_;
};

TEST_F(SqliteOpen, ADirectoryThatIsNotWritable) {
  std::filesystem::permissions(dir_.path(), std::filesystem::perms(0555));
  std::string what;
  {
    const AsNobody nobody;
    what = error_of("sqlite:" + dir_.file("x.db")).what();
  }
  std::filesystem::permissions(dir_.path(), std::filesystem::perms(0755));
  EXPECT_EQ(what, "postrider: cannot open sqlite:" + dir_.file("x.db") + ": directory " +
                      dir_.path().string() + " is not writable. Hint: choose another path or chmod u+w it");
}

TEST_F(SqliteOpen, TheFolderOfARelativePathIsNamedAsAWhole) {
  EXPECT_THAT(error_of("sqlite:no-such-folder/x.db").what(),
              HasSubstr("directory " + (std::filesystem::current_path() / "no-such-folder").string() +
                        " does not exist"));
}

TEST_F(SqliteOpen, ADirectoryThatTakesNoFilesWhateverItsPermissionsSay) {
  const Error error = error_of("sqlite:/proc/x.db");
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_THAT(error.what(), HasSubstr("directory /proc"));
  EXPECT_THAT(error.what(), HasSubstr("Hint: choose a"));  // as root, and as anybody else
  EXPECT_FALSE(error.retryable()) << "waiting will not help";
}

TEST_F(SqliteOpen, WhatALimitOnFilesForbidsMayWorkLater) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const std::string url = "sqlite:" + dir_.file("x.db");
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Error error = error_of(url);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_TRUE(error.retryable()) << error.what();
  EXPECT_THAT(error.what(), HasSubstr("ulimit"));
}

TEST_F(SqliteOpen, UrlsThatMeanSomethingElseMakeNoOddFiles) {
  struct Case {
    std::string url;
    const char* why;
  };
  for (const Case& one : {Case{"sqlite:" + dir_.file("x.db") + "?mode=ro", "has no parameters"},
                          Case{"sqlite://" + dir_.file("x.db") + "?mode=ro", "has no parameters"},
                          Case{"sqlite:file:" + dir_.file("x.db"), "file: URIs are not taken"},
                          Case{"sqlite:file:x.db?mode=memory", "file: URIs are not taken"},
                          Case{"sqlite:~/x.db", "known to shells only"}}) {
    const Error error = error_of(one.url);
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << one.url;
    EXPECT_FALSE(error.retryable());
    EXPECT_THAT(error.what(), HasSubstr(one.why));
    EXPECT_THAT(error.what(), HasSubstr("Hint: "));
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

TEST_F(SqliteOpen, AFileThatIsNotWritable) {
  (void)open_file("sqlite:" + dir_.file("x.db"));
  std::filesystem::permissions(dir_.path(), std::filesystem::perms(0777));
  std::filesystem::permissions(dir_.file("x.db"), std::filesystem::perms(0444));
  const AsNobody nobody;
  const Error error = error_of("sqlite:" + dir_.file("x.db"));
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_THAT(error.what(), HasSubstr("file " + dir_.file("x.db") + " is not writable"));
}

}  // namespace
}  // namespace postrider::sqlite
