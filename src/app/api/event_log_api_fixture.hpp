// SPDX-License-Identifier: Apache-2.0
// The API on a fresh database, over real sockets.
#pragma once

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/api/event_log_api.hpp"
#include "app/http/server.hpp"
#include "app/http/socket_client_fixture.hpp"
#include "support/backend.hpp"

namespace postrider::api {

namespace json = boost::json;
using namespace std::chrono_literals;
using test::HttpAnswer;
using test::SocketClient;

/// A valid event; `more` is added to it.
inline std::string event(const std::string& more = {}) {
  return R"({"applicationId":"pet-resort-api","correlationId":"a1b2","processName":"CreateBooking",)"
         R"("processStatus":"PROCESS_START")" +
         more + "}";
}

class EventLogApiTest : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend());
    serve({});
  }
  void serve(EventLogApiOptions options) {
    server_.reset();
    options.log = [](LogLevel, std::string_view) {};
    api_ = std::make_unique<EventLogApi>(database_->storage(), options);
    http::Router router;
    api_->add_routes(router);
    router.add({.pattern = "/livez",
                .lane = http::Lane::direct,
                .handler = [](const http::Request&, const http::Reply& reply) { reply({}); }});
    server_ = std::make_unique<http::Server>(std::move(router), http::ServerOptions{.log = options.log});
    server_->start();
  }
  void TearDown() override {
    if (server_ != nullptr) server_->stop(10s);
    if (api_ != nullptr) api_->stop();
    server_.reset();
  }

  HttpAnswer ask(std::string_view method, const std::string& target, const std::string& body = {},
                 const std::string& headers = {}) {
    return SocketClient(server_->port()).ask(method, target, body, headers).value();
  }
  static json::object object(const HttpAnswer& answer) { return json::parse(answer.body).as_object(); }
  /// One member of all events that are found.
  std::vector<std::string> found(const std::string& query, const char* member = "step") {
    const HttpAnswer answer = ask("GET", "/v1/events" + query);
    EXPECT_EQ(answer.status, 200) << answer.body;
    std::vector<std::string> values;
    const json::object result = object(answer);
    for (const json::value& one : result.at("events").as_array()) {
      values.emplace_back(one.at(member).as_string().c_str());
    }
    return values;
  }
  std::int64_t rows() {
    Transaction tx = database_->storage().begin();
    return tx.execute("select count(*) from " + database_->table("event_log_entries")).integer(0, 0);
  }

  std::optional<test::TestDatabase> database_;
  std::unique_ptr<EventLogApi> api_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace postrider::api
