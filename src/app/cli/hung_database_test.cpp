// SPDX-License-Identifier: Apache-2.0
// The program while its database hangs: a proxy between them stops forwarding, and no connection ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <csignal>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/cli/run_daemon.hpp"
#include "app/http/socket_client_fixture.hpp"
#include "support/backend.hpp"
#include "support/child_process.hpp"
#include "support/cutting_proxy.hpp"
#include "support/places.hpp"

namespace postrider::cli {
namespace {

using namespace std::chrono_literals;
using test::ChildProcess;
using test::HttpAnswer;
using test::SocketClient;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string hung_event =
    R"({"applicationId":"a","processName":"P","processStatus":"PROCESS_STEP","idempotencyKey":"k"})";

class HungDatabaseTest : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend());
    const test::ServerAddress server = test::server_of(database_->url());
    proxy_.emplace(server.host, server.port);
  }

  void run(const std::string& more) {
    // The shell joins what goes to standard error.
    child_.emplace(std::vector<std::string>{
        "/bin/sh", "-c",
        "exec " + test::program_path() + " eventlog --listen 127.0.0.1:0 --schema " +
            database_->options().schema.str() + " --storage '" +
            test::url_through(database_->url(), proxy_->port()) + "' " + more + " 2>&1"});
  }
  /// Returns the line that tells its port.
  std::string serve(const std::string& more) {
    run(more);
    std::string line = child_->read_until("postrider: event log API on ").value_or("");
    const std::size_t at = line.find("127.0.0.1:");
    if (at == std::string::npos) {
      ADD_FAILURE() << "it has not started: " << line;
      return line;
    }
    std::from_chars(line.data() + at + 10, line.data() + line.size(), port_);
    return line;
  }
  HttpAnswer ask(std::string_view method, const std::string& target, const std::string& body = {}) const {
    return SocketClient(port_).ask(method, target, body).value_or(HttpAnswer{});
  }
  /// Asks until it is ready; false when that takes too long.
  [[nodiscard]] bool await_ready() const {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (std::chrono::steady_clock::now() < deadline) {
      if (ask("GET", "/readyz").status == 200) return true;
      std::this_thread::yield();
    }
    return false;
  }

  std::optional<test::TestDatabase> database_;
  std::optional<test::CuttingProxy> proxy_;
  std::uint16_t port_ = 0;
  std::optional<ChildProcess> child_;
};

TEST_P(HungDatabaseTest, RequestsAreAnsweredInTimeAndTheRestStaysAlive) {
  serve("--request-timeout 1");
  ASSERT_TRUE(await_ready());
  proxy_->stall();
  const HttpAnswer posted = ask("POST", "/v1/events", hung_event);
  EXPECT_EQ(posted.status, 503);
  EXPECT_EQ(posted.header("Content-Type"), "application/problem+json");
  EXPECT_EQ(posted.header("Retry-After"), "5");
  EXPECT_THAT(posted.body,
              AllOf(HasSubstr(R"("code":"storage-timeout")"), HasSubstr("same idempotency keys")));
  EXPECT_EQ(ask("POST", "/v1/events/batch", "[" + hung_event + "]").status, 503)
      << "also one that waits in line";
  EXPECT_EQ(ask("GET", "/v1/events").status, 503);
  EXPECT_EQ(ask("GET", "/livez").status, 200);
  const HttpAnswer ready = ask("GET", "/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_THAT(ready.body,
              AllOf(HasSubstr(R"("code":"not-ready")"), HasSubstr("the database (" + backend() + ")")));

  proxy_->resume();
  EXPECT_TRUE(await_ready());
  int status = 0;
  while ((status = ask("POST", "/v1/events", hung_event).status) == 503) std::this_thread::yield();
  EXPECT_TRUE(status == 200 || status == 201) << status;
  EXPECT_EQ(ask("POST", "/v1/events", hung_event).status, 200) << "stored once, however often it was sent";
  child_->signal(SIGTERM);
  EXPECT_TRUE(child_->wait().value().ok());
}

TEST_P(HungDatabaseTest, SigtermEndsTheProcessAndSaysWhatWasGivenUp) {
  serve("--request-timeout 60 --drain-timeout 1");
  ASSERT_TRUE(await_ready());
  proxy_->stall();
  SocketClient client(port_);
  ASSERT_TRUE(
      client.send("POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                  "Content-Length: " +
                  std::to_string(hung_event.size()) + "\r\nExpect: 100-continue\r\n\r\n"));
  ASSERT_TRUE(client.until("100 Continue\r\n\r\n").has_value()) << "now it has begun";
  ASSERT_TRUE(client.send(hung_event));
  child_->signal(SIGTERM);
  const std::string words =
      child_->read_until("postrider error: the database (" + backend() + ")", 30s).value_or("");
  EXPECT_THAT(words, AllOf(HasSubstr("has not answered within the drain timeout"), HasSubstr("1 event ")));
  const auto end = child_->wait(30s);
  ASSERT_TRUE(end.has_value()) << "it hangs";
  EXPECT_EQ(end->code, exit_gave_up) << end->text();
}

TEST_P(HungDatabaseTest, ADatabaseThatIsAwayAtTheStartIsWaitedFor) {
  proxy_->stall();
  EXPECT_THAT(serve("--request-timeout 1"), HasSubstr("waiting for it"));
  EXPECT_EQ(ask("GET", "/livez").status, 200);
  const HttpAnswer ready = ask("GET", "/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_THAT(ready.body, HasSubstr("waits for the database (" + backend() + ")"));
  const HttpAnswer posted = ask("POST", "/v1/events", hung_event);
  EXPECT_EQ(posted.status, 503);
  EXPECT_EQ(posted.header("Retry-After"), "5");
  EXPECT_EQ(ask("GET", "/v1/events").status, 503);
  EXPECT_TRUE(
      child_->read_until("postrider warning: waiting for the database, next attempt in 1 s: ").has_value());
  proxy_->resume();
  EXPECT_TRUE(await_ready());
  EXPECT_EQ(ask("POST", "/v1/events", hung_event).status, 201);
  child_->signal(SIGTERM);
  EXPECT_TRUE(child_->wait().value().ok());
}

TEST_P(HungDatabaseTest, WhatWaitsForItsDatabaseCanBeStopped) {
  proxy_->stall();
  serve("--drain-timeout 600");
  child_->signal(SIGTERM);
  const auto end = child_->wait(20s);
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->ok()) << end->text();
}

TEST_P(HungDatabaseTest, WhoeverDoesNotWantToWaitIsTold) {
  proxy_->stall();
  EXPECT_THAT(serve("--no-wait"),
              AllOf(HasSubstr("it is not waited for"), ::testing::Not(HasSubstr("waiting for"))));
  const auto end = child_->wait();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->code, 1) << end->text();
}

std::vector<std::string> servers() {
  std::vector<std::string> names = test::backend_names();
  std::erase(names, "sqlite");
  return names;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(HungDatabaseTest);
INSTANTIATE_TEST_SUITE_P(Backends, HungDatabaseTest, ::testing::ValuesIn(servers()),
                         [](const auto& chosen) { return chosen.param; });

}  // namespace
}  // namespace postrider::cli
