// SPDX-License-Identifier: Apache-2.0
#include "app/api/access.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "postrider/error.hpp"
#include "support/temp_dir.hpp"

namespace postrider::api {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

http::Request with_header(const std::string& name, const std::string& value) {
  http::Request request;
  request.headers.emplace_back(name, value);
  return request;
}

class AccessTest : public ::testing::Test {
 protected:
  int status(const http::Request& request, Role needed) const {
    const Access::Verdict verdict = access_.decide(request, needed);
    return verdict.caller ? 200 : verdict.problem.status;
  }
  std::string token(Role role, std::optional<TimePoint> expires = {}) {
    const std::string made = make_token();
    records_.push_back(
        {.name = std::string(to_string(role)), .role = role, .sha256 = hash_of(made), .expires = expires});
    access_.use(records_);
    return made;
  }
  ManualClock clock_;
  Access access_{clock_};
  std::vector<TokenRecord> records_;
};

TEST_F(AccessTest, WithoutTokensEverybodyIsAdmin) {
  EXPECT_EQ(status({}, Role::admin), 200);
  EXPECT_FALSE(access_.needs_token());
}

TEST_F(AccessTest, EveryRoleMayDoWhatThoseBelowItMay) {
  for (const Role has : {Role::viewer, Role::operator_, Role::admin}) {
    const http::Request request = with_header("authorization", "bearer " + token(has));
    for (const Role needed : {Role::viewer, Role::operator_, Role::admin}) {
      EXPECT_EQ(status(request, needed), has >= needed ? 200 : 403)
          << to_string(has) << ", " << to_string(needed);
    }
  }
}

TEST_F(AccessTest, WhatIsNoTokenIsRefused) {
  const std::string good = token(Role::admin);
  for (const std::string& header :
       {std::string(), std::string("Bearer"), std::string("Bearer "), "Bearer x" + good,
        "Bearer " + good.substr(1), "Basic " + good, good, "Bearer " + hash_of(good)}) {
    EXPECT_EQ(status(with_header("Authorization", header), Role::viewer), 401) << header;
  }
  access_.use(std::vector<TokenRecord>{});
  EXPECT_EQ(status(with_header("Authorization", "Bearer " + good), Role::viewer), 401)
      << "an empty list lets nobody in";
}

TEST_F(AccessTest, TokensGetOld) {
  const http::Request request =
      with_header("Authorization", "Bearer " + token(Role::viewer, clock_.now() + 1h));
  EXPECT_EQ(status(request, Role::viewer), 200);
  clock_.advance(1h);
  EXPECT_EQ(status(request, Role::viewer), 401);
}

TEST_F(AccessTest, ForeignPagesAreRefusedTokenOrNot) {
  EXPECT_EQ(status(with_header("Sec-Fetch-Site", "cross-site"), Role::viewer), 403);
  EXPECT_EQ(status(with_header("Sec-Fetch-Site", "same-site"), Role::viewer), 403);
  EXPECT_EQ(status(with_header("Sec-Fetch-Site", "same-origin"), Role::viewer), 200);
  EXPECT_EQ(status(with_header("Sec-Fetch-Site", "none"), Role::viewer), 200);
}

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

}  // namespace
}  // namespace postrider::api
