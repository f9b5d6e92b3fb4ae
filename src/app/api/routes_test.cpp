// SPDX-License-Identifier: Apache-2.0
// What `mount` makes of what handlers return and throw.
#include "app/api/routes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/api/api_fixture.hpp"
#include "app/api/json_values.hpp"

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

TEST(JsonValues, FractionsAreWrittenAsOneWritesThem) {
  EXPECT_EQ(
      serialized(json::array{1.5, 2.0, 0.25, -0.001, 1e300, 7, "1.5E0", nullptr, json::object{{"a\"", 0.1}}}),
      R"([1.5,2.0,0.25,-0.001,1e+300,7,"1.5E0",null,{"a\"":0.1}])");
  EXPECT_EQ(
      serialized(json::array{12.5, 1e5, 1e20, 1e21, 0.0001, 1e-6, 1e-7, -0.0, -1.7976931348623157e308,
                             -1.2345678901234567e-6}),
      "[12.5,100000.0,100000000000000000000.0,1e+21,0.0001,0.000001,1e-07,-0.0,-1.7976931348623157e+308,"
      "-0.0000012345678901234567]");
}

TEST_F(MountTest, AParameterThatIsGivenTwiceIsRefused) {
  const auto ask = [](const http::Fields& query) {
    try {
      return query_value({.query = query}, "limit").value_or("none");
    } catch (const Refusal& refusal) {
      return std::to_string(refusal.problem.status) + " " + refusal.problem.detail;
    }
  };
  EXPECT_EQ(ask({{"limit", "1"}, {"type", "a"}, {"type", "b"}}), "1");
  EXPECT_EQ(ask({{"limit", "1"}, {"limit", "1"}}), "400 limit is given more than once");
  EXPECT_EQ(ask({}), "none");
}

TEST_F(MountTest, WhoMayNotAskSendsNoBody) {
  http::Router router;
  access_.use(std::vector<TokenRecord>{{.name = "a", .role = Role::viewer, .sha256 = hash_of("secret")}});
  mount(router, {{.method = http::Method::post, .pattern = "/x", .role = Role::admin, .body_limit = 10}},
        {.access = &access_});
  const auto found = std::get<http::Router::Found>(router.find(http::Method::post, {"x"}));
  EXPECT_EQ(found.route->admit({}).value().status, 401);
  const std::optional<http::Problem> low =
      found.route->admit({.headers = {{"Authorization", "Bearer secret"}}});
  EXPECT_EQ(low.value().status, 403);
  EXPECT_FALSE(low->hint.empty());
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
