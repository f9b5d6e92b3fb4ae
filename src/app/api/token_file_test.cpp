// SPDX-License-Identifier: Apache-2.0
#include "app/api/token_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "postrider/error.hpp"
#include "support/temp_dir.hpp"

namespace postrider::api {
namespace {

using ::testing::HasSubstr;

TEST(Tokens, AreKeptAsHashesInAFileOfTheirOwner) {
  const test::TempDir folder;
  const std::string path = folder.file("tokens");
  const std::string token = make_token();
  EXPECT_EQ(token.size(), 68U);
  EXPECT_NE(token, make_token());
  add_token(path, {.name = "ops", .role = Role::operator_, .sha256 = hash_of(token)});
  const TimePoint then{std::chrono::seconds{2'000'000'000}};
  add_token(path, {.name = "me", .role = Role::admin, .sha256 = hash_of("x"), .expires = then});
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0600U);
  { std::ofstream(path, std::ios::app) << "\n# a comment\n"; }
  const std::vector<TokenRecord> read = read_tokens(path);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read[0].name, "ops");
  EXPECT_EQ(read[0].role, Role::operator_);
  EXPECT_EQ(read[0].sha256, hash_of(token));
  EXPECT_FALSE(read[0].expires);
  EXPECT_EQ(read[1].expires, then);
  std::ifstream file(path);
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(file), {}), ::testing::Not(HasSubstr(token)));
  EXPECT_THROW(add_token(path, {.name = "ops", .sha256 = hash_of("y")}), Error);
  EXPECT_THROW(add_token(path, {.name = "two words", .sha256 = hash_of("y")}), Error);
  ASSERT_EQ(::chmod(path.c_str(), 0620), 0);
  EXPECT_THROW((void)read_tokens(path), Error) << "others may write to it";
}

TEST(Tokens, LinesThatAreNoneAreRefusedWithTheirNumber) {
  const test::TempDir folder;
  const std::string path = folder.file("tokens");
  const std::string hash = hash_of("x");
  for (const std::string& line :
       {std::string("ops"), "ops root " + hash + " never", std::string("ops admin abc never"),
        "ops admin " + hash + " soon", "ops admin " + hash + " never more"}) {
    std::ofstream(path) << "# first\n" << line << "\n";
    ::chmod(path.c_str(), 0600);
    try {
      (void)read_tokens(path);
      ADD_FAILURE() << line;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(path + ", line 2")) << line;
    }
  }
  EXPECT_THROW((void)read_tokens(folder.file("none")), Error);
}

TEST(Tokens, ALastLineWithoutItsEndIsNotJoinedWithTheNext) {
  const test::TempDir folder;
  const std::string path = folder.file("tokens");
  std::ofstream(path) << "ops admin " + hash_of("x") + " never";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  add_token(path, {.name = "me", .sha256 = hash_of("y")});
  add_token(path, {.name = "you", .sha256 = hash_of("z")});
  const std::vector<TokenRecord> read = read_tokens(path);
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read[0].name, "ops");
  EXPECT_EQ(read[1].name, "me");
  EXPECT_EQ(read[2].name, "you");
}

TEST(Tokens, WhatIsNoRegularFileIsNeitherEmptyNorWaitedFor) {
  const test::TempDir folder;
  const std::string directory = folder.file("directory");
  const std::string pipe = folder.file("pipe");
  ASSERT_TRUE(std::filesystem::create_directory(directory));
  ASSERT_EQ(::chmod(directory.c_str(), 0700), 0);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const std::string& path : {directory, pipe}) {
    try {
      (void)read_tokens(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(path + " is refused: it is no regular file"));
    }
    EXPECT_THROW(add_token(path, {.name = "me", .sha256 = hash_of("y")}), Error);
    EXPECT_THROW((void)remove_token(path, "me"), Error);
  }
}

class RevokedTokenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path_) << "# whose they are\n";
    ASSERT_EQ(::chmod(path_.c_str(), 0640), 0) << "as somebody has set it";
    for (const char* const name : {"anna", "ann", "berta"}) {
      add_token(path_, {.name = name, .role = Role::operator_, .sha256 = hash_of(name)});
    }
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const TokenRecord& record : read_tokens(path_)) all.push_back(record.name);
    return all;
  }
  std::string content() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }
  const test::TempDir folder_;
  const std::string path_ = folder_.file("tokens");
};

TEST_F(RevokedTokenTest, OnlyItsLineIsGoneAndTheFileStaysWhatItWas) {
  struct stat before {};
  ASSERT_EQ(::stat(path_.c_str(), &before), 0);
  const TokenRecord removed = remove_token(path_, "ann");
  EXPECT_EQ(removed.name, "ann");
  EXPECT_EQ(removed.role, Role::operator_);
  EXPECT_THAT(names(), ::testing::ElementsAre("anna", "berta"));
  EXPECT_THAT(content(), ::testing::StartsWith("# whose they are\n"));
  struct stat after {};
  ASSERT_EQ(::stat(path_.c_str(), &after), 0);
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_uid, before.st_uid);
  EXPECT_NE(after.st_ino, before.st_ino) << "replaced in one step, never half written";
  EXPECT_EQ(files(), 1U) << "nothing is left beside it";
  add_token(path_, {.name = "ann", .sha256 = hash_of("new")});
  EXPECT_THAT(names(), ::testing::ElementsAre("anna", "berta", "ann"));
}

TEST_F(RevokedTokenTest, ANameThatIsNotThereChangesNothing) {
  const std::string before = content();
  try {
    (void)remove_token(path_, "bertha");
    ADD_FAILURE() << "there is no bertha";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("did you mean berta?"));
  }
  try {
    (void)remove_token(path_, "whose");
    ADD_FAILURE() << "a comment's word is no name";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("postrider token list --file " + path_));
  }
  EXPECT_EQ(content(), before);
  EXPECT_THROW((void)remove_token(folder_.file("none"), "anna"), Error);
  EXPECT_EQ(files(), 1U);
}

TEST_F(RevokedTokenTest, ASymbolicLinkIsNotReplacedByAFile) {
  const std::string link = folder_.file("link");
  ASSERT_EQ(::symlink(path_.c_str(), link.c_str()), 0);
  EXPECT_THROW((void)remove_token(link, "anna"), Error);
  EXPECT_THROW(add_token(link, {.name = "carla", .sha256 = hash_of("x")}), Error);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_THAT(names(), ::testing::ElementsAre("anna", "ann", "berta"));
}

TEST_F(RevokedTokenTest, WhatIsAddedMeanwhileIsNotLost) {
  constexpr int rounds = 50;
  std::thread adds([&] {
    for (int i = 0; i < rounds; ++i) {
      add_token(path_, {.name = "new" + std::to_string(i), .sha256 = hash_of("x")});
    }
  });
  for (int i = 0; i < rounds; ++i) {
    add_token(path_, {.name = "brief", .sha256 = hash_of("x")});
    (void)remove_token(path_, "brief");
  }
  adds.join();
  EXPECT_EQ(names().size(), 3U + rounds);
}

}  // namespace
}  // namespace postrider::api
