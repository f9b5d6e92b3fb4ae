// SPDX-License-Identifier: Apache-2.0
// Every route of the management API × every kind of caller. A route that is not in the table fails the test:
// whoever adds one says here who may use it.
#include "app/daemon/management.hpp"

#include <map>
#include <set>

#include "app/api/api_fixture.hpp"
#include "app/api/openapi.hpp"
#include "app/daemon/overview_api.hpp"
#include "app/http/body_stream.hpp"

namespace postrider::daemon {
namespace {

using api::Role;
using ::testing::HasSubstr;

/// Method and pattern → who may.
const std::map<std::string, Role>& table() {
  static const std::map<std::string, Role> all{
      {"GET /api/overview", Role::viewer},
      {"GET /api/live", Role::viewer},
      {"GET /api/nodes", Role::viewer},
      {"GET /api/outbox/publishers", Role::viewer},
      {"GET /api/outbox/publishers/lag", Role::viewer},
      {"GET /api/outbox/publishers/leaders", Role::viewer},
      {"GET /api/outbox/publishers/backoff", Role::viewer},
      {"GET /api/outbox/publishers/{publisher}", Role::viewer},
      {"POST /api/outbox/publishers/{publisher}/pause", Role::operator_},
      {"POST /api/outbox/publishers/{publisher}/resume", Role::operator_},
      {"POST /api/outbox/publishers/{publisher}/reset", Role::operator_},
      {"GET /api/topics", Role::viewer},
      {"GET /api/topics/{topic}/publishers/{publisher}", Role::viewer},
      {"GET /api/topics/{topic}/publishers/{publisher}/status", Role::viewer},
      {"GET /api/topics/{topic}/publishers/{publisher}/lag", Role::viewer},
      {"POST /api/topics/{topic}/publishers/{publisher}/pause", Role::operator_},
      {"POST /api/topics/{topic}/publishers/{publisher}/resume", Role::operator_},
      {"POST /api/topics/{topic}/publishers/{publisher}/reset", Role::operator_},
      {"POST /api/topics/{topic}/publishers/{publisher}/rewind", Role::admin},
      {"POST /api/topics/{topic}/publishers/{publisher}/forget", Role::admin},
      {"GET /api/topics/{topic}/publishers/{publisher}/dead", Role::viewer},
      {"POST /api/topics/{topic}/publishers/{publisher}/dead/discard", Role::admin},
      {"GET /api/outbox/counts", Role::viewer},
      {"GET /api/outbox/events", Role::viewer},
      {"GET /api/outbox/events/{id}", Role::viewer},
      {"GET /api/outbox/stuck", Role::viewer},
      {"POST /api/outbox/requeue", Role::operator_},
      {"POST /api/outbox/cancel", Role::operator_},
      {"GET /api/outbox/dead", Role::viewer},
      {"GET /api/outbox/dead/groups", Role::viewer},
      {"POST /api/outbox/dead/replay", Role::operator_},
      {"POST /api/outbox/dead/{id}/edit", Role::admin},
      {"POST /api/outbox/purge", Role::admin},
      {"POST /api/events", Role::operator_},
      {"GET /api/queue/counts", Role::viewer},
      {"GET /api/queue/events", Role::viewer},
      {"GET /api/queue/events/{id}", Role::viewer},
      {"GET /api/queue/stuck", Role::viewer},
      {"GET /api/queue/quarantine", Role::viewer},
      {"GET /api/queue/log", Role::viewer},
      {"POST /api/queue/requeue", Role::operator_},
      {"POST /api/queue/cancel", Role::operator_},
      {"POST /api/queue/release", Role::operator_},
      {"POST /api/queue/replay", Role::operator_},
      {"GET /api/projections", Role::viewer},
      {"POST /api/projections/{name}/pause", Role::operator_},
      {"POST /api/projections/{name}/resume", Role::operator_},
      {"GET /read", Role::viewer},
      {"POST /append", Role::admin},
      {"GET /api/store/head", Role::viewer},
      {"GET /api/store/events", Role::viewer},
      {"GET /api/audit", Role::viewer},
      {"GET /api/spill", Role::viewer},
      {"GET /api/me", Role::viewer},
  };
  return all;
}

class ManagementTest : public ::testing::Test {
 protected:
  ManagementTest()
      : database_("sqlite"), store_(database_.storage()), live_([] { return std::string("{}"); }, clock_) {
    routes_ =
        management_routes({.relay = [] { return nullptr; },
                           .outbox = [] { return nullptr; },
                           .store = &store_,
                           .stuck_after = std::chrono::minutes{5},
                           .overview = [this] { return overview_json({.observer = {.phase = phase_}}); },
                           .live = &live_,
                           .access = &access_,
                           .spill = &spill_});
    mount(router_, routes_,
          {.access = &access_,
           .storage = [this]() -> Storage* { return there_ ? &database_.storage() : nullptr; },
           .audit = [this](const api::AuditRecord&) { ++audited_; },
           .log = [](LogLevel, std::string_view) {}});
  }
  static std::string name_of(const api::ApiRoute& route) {
    return std::string(http::to_string(route.method)) + " " + route.pattern;
  }
  std::string token(Role role, std::optional<TimePoint> expires = {}) {
    const std::string made = api::make_token();
    records_.push_back({.name = std::string(to_string(role)),
                        .role = role,
                        .sha256 = api::hash_of(made),
                        .expires = expires});
    access_.use(records_);
    return made;
  }
  int status(const api::ApiRoute& route, const std::string& token, http::Fields more = {}) {
    std::string target = route.pattern;
    for (std::size_t at = 0; (at = target.find('{')) != std::string::npos;) {
      target.replace(at, target.find('}') - at + 1, "7");
    }
    if (!token.empty()) more.emplace_back("Authorization", "Bearer " + token);
    const http::Response answer = api::ask_router(router_, route.method, target, {}, std::move(more));
    if (answer.stream != nullptr) answer.stream->abandon();
    return answer.status;
  }
  std::shared_ptr<http::BodyStream> listen(const std::string& token) {
    return api::ask_router(router_, http::Method::get, "/api/live", {},
                           {{"Authorization", "Bearer " + token}})
        .stream;
  }
  /// What is told to `stream` now: nothing when it has ended.
  std::string told(http::BodyStream& stream) {
    live_.tell();
    auto [text, state] = stream.take();
    return state == http::BodyStream::State::open ? std::move(text) : std::string();
  }
  /// The handler was reached: whatever it thinks of the request.
  static bool let_in(int status) { return status == 200 || status == 400 || status == 404; }

  test::TestDatabase database_;
  ManualClock clock_;
  EventStore store_;
  LiveFeed live_;
  SpillBoard spill_{{"/nowhere"}, clock_};
  api::Access access_{clock_};
  std::vector<api::TokenRecord> records_;
  std::vector<api::ApiRoute> routes_;
  http::Router router_;
  std::string phase_ = "running";
  bool there_ = true;
  int audited_ = 0;
};

TEST_F(ManagementTest, EveryRouteIsInTheTableAndTheTableHasNoOthers) {
  std::set<std::string> names;
  for (const api::ApiRoute& route : routes_) {
    names.insert(name_of(route));
    ASSERT_TRUE(table().contains(name_of(route))) << "say in the table who may " << name_of(route);
  }
  for (const auto& [name, role] : table()) EXPECT_TRUE(names.contains(name)) << name;
}

TEST_F(ManagementTest, EveryRouteTimesEveryCaller) {
  std::map<Role, std::string> tokens;
  for (const Role role : {Role::viewer, Role::operator_, Role::admin}) tokens[role] = token(role);
  for (const api::ApiRoute& route : routes_) {
    const std::string name = name_of(route);
    EXPECT_EQ(status(route, {}), 401) << name << " without a token";
    EXPECT_EQ(status(route, "prt_wrong"), 401) << name << " with a wrong token";
    for (const auto& [role, token] : tokens) {
      const int got = status(route, token);
      if (role >= table().at(name)) {
        EXPECT_TRUE(let_in(got)) << name << " as " << to_string(role) << ": " << got;
        EXPECT_EQ(status(route, token, {{"Sec-Fetch-Site", "cross-site"}}), 403)
            << name << " from a foreign page";
      } else {
        EXPECT_EQ(got, 403) << name << " as " << to_string(role);
      }
    }
  }
  EXPECT_EQ(audited_, 0) << "none of these requests has changed anything";
}

TEST_F(ManagementTest, EverybodyIsToldWhatHisRoleReaches) {
  namespace json = boost::json;
  const auto me = [&](http::Fields headers) {
    const http::Response answer =
        api::ask_router(router_, http::Method::get, "/api/me", {}, std::move(headers));
    return json::parse(answer.body).as_object();
  };
  const auto text = [](const json::value& value) { return std::string(value.as_string().c_str()); };
  there_ = false;  // not even the database is needed
  const json::object local = me({});
  EXPECT_EQ(local.at("name"), "local");
  EXPECT_EQ(local.at("token"), false);
  EXPECT_EQ(local.at("role"), "admin");
  std::size_t changes = 0;
  for (const auto& [name, role] : table()) changes += role == Role::viewer ? 0 : 1;
  for (const Role role : {Role::viewer, Role::operator_, Role::admin}) {
    const json::object answer = me({{"Authorization", "Bearer " + token(role)}});
    EXPECT_EQ(text(answer.at("role")), to_string(role));
    EXPECT_EQ(answer.at("token"), true);
    EXPECT_EQ(answer.at("changes").as_array().size(), changes);
    for (const json::value& one : answer.at("changes").as_array()) {
      const Role needed = table().at(text(one.at("method")) + " " + text(one.at("path")));
      EXPECT_EQ(text(one.at("role")), to_string(needed)) << one;
      EXPECT_EQ(one.at("allowed").as_bool(), role >= needed) << one;
    }
  }
}

TEST_F(ManagementTest, WhatOnlyLooksIsForViewersAndWhatChangesIsNot) {
  for (const api::ApiRoute& route : routes_) {
    EXPECT_EQ(route.role == Role::viewer, route.method == http::Method::get) << name_of(route);
  }
}

TEST_F(ManagementTest, EveryRouteIsDescribed) {
  const std::string text(api::openapi_yaml());
  for (const api::ApiRoute& route : routes_) {
    const std::size_t at = text.find("\n  " + route.pattern + ":\n");
    ASSERT_NE(at, std::string::npos) << "docs/openapi.yaml does not have " << route.pattern;
    const std::string item = text.substr(at + 3, text.find("\n  /", at + 3) - at);
    EXPECT_THAT(item, HasSubstr(route.method == http::Method::get ? "\n    get:" : "\n    post:"))
        << route.pattern;
    if (route.role == Role::viewer) continue;
    EXPECT_THAT(item, HasSubstr("(" + std::string(to_string(route.role)) + ")"))
        << "who may " << route.pattern;
  }
}

TEST_F(ManagementTest, WithoutItsDatabaseItSaysSo) {
  there_ = false;
  phase_ = "waiting for the database: no route";
  for (const api::ApiRoute& route : routes_) {
    EXPECT_EQ(status(route, {}), route.without_database ? 200 : 503) << name_of(route);
  }
  const http::Response overview = api::ask_router(router_, http::Method::get, "/api/overview");
  EXPECT_THAT(overview.body, HasSubstr(R"("stuck":"waiting for the database: no route")"));
  EXPECT_THAT(overview.body, HasSubstr(R"("figures":null)"));
}

TEST_F(ManagementTest, AStreamDoesNotOutliveTheTimeOfItsToken) {
  const auto stream = listen(token(Role::viewer, clock_.now() + std::chrono::hours{1}));
  ASSERT_NE(stream, nullptr);
  EXPECT_THAT(told(*stream), HasSubstr("event: overview"));
  clock_.advance(std::chrono::hours{1});
  EXPECT_EQ(told(*stream), "");
  EXPECT_FALSE(stream->is_open());
}

TEST_F(ManagementTest, AStreamDoesNotOutliveARevokedToken) {
  const auto kept = listen(token(Role::admin));
  const auto revoked = listen(token(Role::viewer));
  ASSERT_NE(revoked, nullptr);
  EXPECT_THAT(told(*revoked), HasSubstr("event: overview"));
  records_.pop_back();
  access_.use(records_);
  EXPECT_EQ(told(*revoked), "");
  EXPECT_FALSE(revoked->is_open());
  EXPECT_THAT(told(*kept), HasSubstr("event: overview"));
}

TEST_F(ManagementTest, TheOverviewHasFiguresOfEverything) {
  Figures figures{.at = clock_.now(), .database_up = true};
  figures.outbox.dead = 3;
  figures.pairs.push_back({.name = {"t", "p"}, .state = PairState::paused, .lag_events = 4});
  figures.leaders.push_back({.lease = "leader", .node = "n1", .alive = true});
  const boost::json::object all = overview_json({.figures = &figures,
                                                 .observer = {.sinks = {{"kafka", true}}, .phase = "running"},
                                                 .node = "n1",
                                                 .storage = "sqlite:x.db",
                                                 .pool = {.open = 3, .limit = 16}});
  EXPECT_EQ(all.at("database").at("connections").at("open"), 3);
  EXPECT_EQ(all.at("database").at("connections").at("limit"), 16);
  EXPECT_EQ(all.at("figures").at("outbox").at("dead"), 3);
  EXPECT_EQ(all.at("figures").at("pairs").at("paused"), 1);
  EXPECT_EQ(all.at("figures").at("pairs").at("maxLagEvents"), 4);
  EXPECT_EQ(all.at("figures").at("leaders").at(0).at("node"), "n1");
  EXPECT_EQ(all.at("findings").at(0).at("cause"), "paused-pair");
  EXPECT_EQ(all.at("sinks").at(0).at("healthy"), true);
  EXPECT_EQ(all.at("node").at("name"), "n1");
}

}  // namespace
}  // namespace postrider::daemon
