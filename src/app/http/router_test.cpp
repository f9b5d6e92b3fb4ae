// SPDX-License-Identifier: Apache-2.0
#include "app/http/router.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/error.hpp"

namespace postrider::http {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

Router router() {
  Router made;
  for (const char* pattern :
       {"/v1/events", "/v1/events/{id}", "/v1/events/recent", "/v1/{what}/{id}/x", "/"}) {
    made.add({.method = Method::get, .pattern = pattern});
  }
  made.add({.method = Method::post, .pattern = "/v1/events"});
  return made;
}

std::string found(const Router& from, Method method, const std::vector<std::string>& path) {
  const Router::Match match = from.find(method, path);
  if (const auto* wrong = std::get_if<Router::WrongMethod>(&match)) return "allow " + wrong->allowed;
  const auto* route = std::get_if<Router::Found>(&match);
  if (route == nullptr) return "none";
  std::string text = route->route->pattern;
  for (const auto& [name, value] : route->parameters) text += " " + name + "=" + value;
  return text;
}

TEST(Router, FixedSegmentsGoBeforeNames) {
  const Router routes = router();
  EXPECT_EQ(found(routes, Method::get, {"v1", "events"}), "/v1/events");
  EXPECT_EQ(found(routes, Method::get, {"v1", "events", "7"}), "/v1/events/{id} id=7");
  EXPECT_EQ(found(routes, Method::get, {"v1", "events", "recent"}), "/v1/events/recent");
  EXPECT_EQ(found(routes, Method::get, {"v1", "a", "b", "x"}), "/v1/{what}/{id}/x what=a id=b");
  EXPECT_EQ(found(routes, Method::get, {""}), "/");
}

TEST(Router, TellsAWrongMethodFromAWrongPath) {
  const Router routes = router();
  EXPECT_EQ(found(routes, Method::remove, {"v1", "events"}), "allow GET, HEAD, POST");
  EXPECT_EQ(found(routes, Method::post, {"v1", "events", "7"}), "allow GET, HEAD");
  EXPECT_EQ(found(routes, Method::post, {"v1", "events", "recent"}), "allow GET, HEAD");
  EXPECT_EQ(found(routes, Method::get, {"v1", "events", ""}), "none");
  EXPECT_EQ(found(routes, Method::get, {"v1"}), "none");
  EXPECT_EQ(found(routes, Method::get, {}), "none");
}

TEST(Router, WhatHasAPathOfItsOwnIsNotFoundByAName) {
  Router routes = router();
  routes.add({.method = Method::post, .pattern = "/v1/events/batch"});
  EXPECT_EQ(found(routes, Method::get, {"v1", "events", "batch"}), "allow POST");
}

TEST(Router, TheSameRouteTwiceIsAMistake) {
  Router routes = router();
  EXPECT_THROW(routes.add({.method = Method::get, .pattern = "/v1/events"}), Error);
}

TEST(Reply, TheFirstAnswerCounts) {
  std::vector<int> statuses;
  {
    const Reply reply([&](const Response& response) { statuses.push_back(response.status); });
    const Reply copy = reply;  // NOLINT(performance-unnecessary-copy-initialization)
    copy({.status = 201});
    reply({.status = 202});
  }
  EXPECT_THAT(statuses, ElementsAre(201));
}

TEST(Reply, WhoForgetsItIsAnsweredFor) {
  std::vector<int> statuses;
  {
    const Reply reply([&](const Response& response) { statuses.push_back(response.status); });
  }
  EXPECT_THAT(statuses, ElementsAre(500));
}

TEST(Target, IsTakenApartAndDecoded) {
  const auto target = parse_target("/a%2Fb/c?x=1&y=%C3%BC+z&x=2&empty=&alone");
  ASSERT_TRUE(target.has_value());
  EXPECT_THAT(target->path, ElementsAre("a/b", "c"));
  EXPECT_THAT(target->query, ElementsAre(Pair("x", "1"), Pair("y", "ü z"), Pair("x", "2"), Pair("empty", ""),
                                         Pair("alone", "")));
  EXPECT_FALSE(target->authority.has_value());
  const std::optional<Target> absolute = parse_target("http://[::1]:3000/a?x=1");
  ASSERT_TRUE(absolute.has_value());
  EXPECT_EQ(absolute->authority, "[::1]:3000");
  EXPECT_THAT(absolute->path, ElementsAre("a"));
  EXPECT_THAT(absolute->query, ElementsAre(Pair("x", "1")));
  for (const char* wrong :
       {"", "v1", "/%zz", "/a b", "http://", "http://a@b/x", "http://h/%zz", "urn:x", "*"}) {
    EXPECT_FALSE(parse_target(wrong).has_value()) << wrong;
  }
}

TEST(Problem, IsJsonByRfc9457) {
  const Response response = to_response({.status = 422,
                                         .code = "invalid-event",
                                         .detail = "a \"quoted\" word",
                                         .hint = "h",
                                         .errors = {{"/x", "type", "d"}}});
  EXPECT_EQ(response.content_type, "application/problem+json");
  EXPECT_EQ(response.body,
            R"({"type":"urn:postrider:problem:invalid-event","title":"Unprocessable Content","status":422,)"
            R"("code":"invalid-event","detail":"a \"quoted\" word","hint":"h",)"
            R"("errors":[{"field":"/x","code":"type","detail":"d"}]})");
}

}  // namespace
}  // namespace postrider::http
