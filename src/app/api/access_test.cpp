// SPDX-License-Identifier: Apache-2.0
#include "app/api/access.hpp"

#include <gtest/gtest.h>

namespace postrider::api {
namespace {

using namespace std::chrono_literals;

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

TEST_F(AccessTest, WhoWasLetInIsJudgedAgainByWhatHoldsNow) {
  const Caller local = access_.decide({}, Role::viewer).caller.value();
  EXPECT_TRUE(access_.still_good(local, Role::viewer));
  const auto let_in = [&](const std::string& token) {
    return access_.decide(with_header("Authorization", "Bearer " + token), Role::viewer).caller.value();
  };
  const Caller viewer = let_in(token(Role::viewer, clock_.now() + 1h));
  const Caller operator_ = let_in(token(Role::operator_));
  EXPECT_FALSE(access_.still_good(local, Role::viewer)) << "from now on a token is needed";
  EXPECT_TRUE(access_.still_good(viewer, Role::viewer));
  EXPECT_FALSE(access_.still_good(viewer, Role::operator_));
  clock_.advance(1h);
  EXPECT_FALSE(access_.still_good(viewer, Role::viewer)) << "its time is over";
  EXPECT_TRUE(access_.still_good(operator_, Role::viewer));
  records_.back().sha256 = hash_of(make_token());
  access_.use(records_);
  EXPECT_FALSE(access_.still_good(operator_, Role::viewer)) << "another token of the same name";
}

TEST_F(AccessTest, ForeignPagesAreRefusedTokenOrNot) {
  EXPECT_EQ(status(with_header("Sec-Fetch-Site", "cross-site"), Role::viewer), 403);
  EXPECT_EQ(status(with_header("Sec-Fetch-Site", "same-site"), Role::viewer), 403);
  EXPECT_EQ(status(with_header("Sec-Fetch-Site", "same-origin"), Role::viewer), 200);
  EXPECT_EQ(status(with_header("Sec-Fetch-Site", "none"), Role::viewer), 200);
}

}  // namespace
}  // namespace postrider::api
