// SPDX-License-Identifier: Apache-2.0
// What `mount` makes of what handlers return and throw.
#include "app/api/routes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/api/api_fixture.hpp"

namespace postrider::api {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class MountTest : public ::testing::Test {
 protected:
  http::Response answer_of(std::function<http::Response(Call&)> handler) {
    http::Router router;
    mount(
        router,
        {{.method = http::Method::post, .pattern = "/x", .role = Role::admin, .handler = std::move(handler)}},
        {.access = &access_,
         .storage = [this] { return &database_.storage(); },
         .audit = [this](const AuditRecord& record) { audited_.push_back(record.what); },
         .log = [this](LogLevel, std::string_view line) { log_.emplace_back(line); }});
    return ask_router(router, http::Method::post, "/x");
  }
  std::string problem_of(const Error& error) {
    const http::Response answer = answer_of([&](Call&) -> http::Response { throw error; });
    return std::to_string(answer.status) + " " + answer.body;
  }
  test::TestDatabase database_{"sqlite", {.migrate = false}};
  Access access_{Clock::system()};
  std::vector<std::string> audited_;
  std::vector<std::string> log_;
};

TEST_F(MountTest, ErrorsBecomeProblems) {
  EXPECT_THAT(
      problem_of(Error(ErrorCode::invalid_argument, "no", "too long", "cut it")),
      AllOf(HasSubstr("400"), HasSubstr(R"("detail":"no: too long")"), HasSubstr(R"("hint":"cut it")")));
  EXPECT_THAT(problem_of(Error(ErrorCode::conflict, "it is there")),
              AllOf(HasSubstr("409"), HasSubstr("\"hint\"")));
  EXPECT_THAT(log_, IsEmpty()) << "the caller's faults are not ours";
  EXPECT_THAT(
      problem_of(Error(ErrorCode::unavailable, "connection to secret-host refused")),
      AllOf(HasSubstr("503"), HasSubstr("storage-unavailable"), ::testing::Not(HasSubstr("secret-host"))));
  EXPECT_THAT(problem_of(Error(ErrorCode::database, "relation secret")),
              AllOf(HasSubstr("500"), HasSubstr("its log says why"), ::testing::Not(HasSubstr("secret"))));
  EXPECT_THAT(log_, ElementsAre(HasSubstr("secret-host"), HasSubstr("relation secret")));
}

TEST_F(MountTest, WhatWasDoneIsAuditedWhateverIsAnswered) {
  (void)answer_of([](Call& call) {
    call.done = "well";
    return http::Response{};
  });
  (void)answer_of([](Call& call) -> http::Response {
    call.done = "then missed";
    refuse_missing("it is gone");
  });
  (void)answer_of([](Call& call) -> http::Response {
    call.tried = "half";
    throw Error(ErrorCode::unavailable, "away");
  });
  (void)answer_of([](Call& call) -> http::Response {
    call.tried = "nothing";
    throw Error(ErrorCode::invalid_argument, "no");
  });
  EXPECT_THAT(audited_, ElementsAre("well", "then missed", "tried, and failed: half"));
}

}  // namespace
}  // namespace postrider::api
