// SPDX-License-Identifier: Apache-2.0
// Routes of the management API on a fresh database, without sockets.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "app/api/access.hpp"
#include "app/api/routes.hpp"
#include "app/http/router.hpp"
#include "core/rfc3339.hpp"
#include "support/backend.hpp"

namespace postrider::api {

namespace json = boost::json;
using namespace std::chrono_literals;

/// Asks a router as the server would, and waits for nobody.
inline http::Response ask_router(const http::Router& router, http::Method method, const std::string& target,
                                 const std::string& body = {}, http::Fields headers = {}) {
  const std::optional<http::Target> parsed = http::parse_target(target);
  if (!parsed) return {.status = 400};
  const http::Router::Match match = router.find(method, parsed->path);
  if (std::holds_alternative<http::Router::NotFound>(match)) return {.status = 404};
  if (std::holds_alternative<http::Router::WrongMethod>(match)) return {.status = 405};
  const auto& found = std::get<http::Router::Found>(match);
  if (body.size() > found.route->body_limit) return {.status = 413};
  http::Response answer{.status = 0};
  found.route->handler({.method = method,
                        .path = parsed->path,
                        .parameters = found.parameters,
                        .query = parsed->query,
                        .headers = std::move(headers),
                        .body = body},
                       http::Reply([&](http::Response response) { answer = std::move(response); }));
  return answer;
}

/// A time of an answer.
inline TimePoint time_at(const json::object& answer, std::string_view member) {
  return parse_time(std::string_view(answer.at(member).as_string())).value();
}

class ApiTest : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend());
  }
  Storage& storage() { return database_->storage(); }
  void use(const std::vector<ApiRoute>& routes) {
    mount(router_, routes,
          {.access = &access_,
           .storage = [this] { return &storage(); },
           .audit =
               [this](const AuditRecord& record) {
                 audited_.push_back(record.who + ": " + record.what);
                 if (record.piece) pieces_.push_back(record.piece->action);
               },
           .log = [](LogLevel, std::string_view line) { ADD_FAILURE() << line; }});
  }

  http::Response ask(http::Method method, const std::string& target, const std::string& body = {}) {
    return ask_router(router_, method, target, body);
  }
  /// The answer to a request that is expected to go well.
  json::object get(const std::string& target) { return object(ask(http::Method::get, target), target); }
  json::object post(const std::string& target, const std::string& body = {}, int status = 200) {
    return object(ask(http::Method::post, target, body), target, status);
  }
  /// What is wrong with a request: "400 invalid-parameter: detail | hint".
  std::string problem(http::Method method, const std::string& target, const std::string& body = {}) {
    const http::Response answer = ask(method, target, body);
    if (answer.content_type != "application/problem+json")
      return std::to_string(answer.status) + " " + answer.body;
    const json::object problem = json::parse(answer.body).as_object();
    const auto text = [&](const char* name) {
      return problem.contains(name) ? std::string(problem.at(name).as_string().c_str()) : std::string();
    };
    return std::to_string(answer.status) + " " + text("code") + ": " + text("detail") + " | " + text("hint");
  }
  std::string get_problem(const std::string& target) { return problem(http::Method::get, target); }
  std::string post_problem(const std::string& target, const std::string& body) {
    return problem(http::Method::post, target, body);
  }
  static json::object object(const http::Response& answer, const std::string& what, int status = 200) {
    EXPECT_EQ(answer.status, status) << what << ": " << answer.body;
    json::error_code error;
    const json::value value = json::parse(answer.body, error);
    if (error || !value.is_object()) {
      ADD_FAILURE() << what << ": " << answer.body;
      return {};
    }
    return value.get_object();
  }
  /// One member of each object of a list.
  static std::vector<std::string> each(const json::object& answer, const char* list, const char* member) {
    std::vector<std::string> all;
    for (const json::value& one : answer.at(list).as_array()) {
      const json::value& value = one.at(member);
      all.emplace_back(value.is_string() ? std::string(value.get_string().c_str()) : json::serialize(value));
    }
    return all;
  }
  /// The same of all pages.
  std::vector<std::string> pages(const std::string& target, const char* list, const char* member) {
    std::vector<std::string> all;
    std::string cursor;
    for (int i = 0; i < 100; ++i) {
      const std::string join = target.find('?') == std::string::npos ? "?" : "&";
      const json::object page = get(target + (cursor.empty() ? "" : join + "cursor=" + cursor));
      if (!page.contains("nextCursor")) return all;
      for (std::string& one : each(page, list, member)) all.push_back(std::move(one));
      if (page.at("nextCursor").is_null()) return all;
      cursor = page.at("nextCursor").as_string().c_str();
    }
    ADD_FAILURE() << "no end of " << target;
    return all;
  }

  std::optional<test::TestDatabase> database_;
  Access access_{Clock::system()};
  http::Router router_;
  std::vector<std::string> audited_;
  std::vector<std::string> pieces_;  // of which actions
  std::vector<std::string> log_;
};

}  // namespace postrider::api
