// SPDX-License-Identifier: Apache-2.0
// Handlers that do not answer in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>

#include "app/http/server.hpp"
#include "app/http/socket_client_fixture.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider::http {
namespace {

using namespace std::chrono_literals;
using test::SocketClient;
using ::testing::HasSubstr;

class LateTest : public ::testing::Test {
 protected:
  void start(ServerOptions options) {
    options.log = [](LogLevel, std::string_view) {};
    Router router;
    router.add({.method = Method::post,
                .pattern = "/keep",
                .lane = Lane::write,
                .body_limit = 100'000,
                .handler = [this](const Request&, Reply reply) {
                  const MutexLock lock(mutex_);
                  kept_.push_back(std::move(reply));
                }});
    router.add({.method = Method::get,
                .pattern = "/hang",
                .lane = Lane::read,
                .timeout = 20ms,
                .late = Problem{.status = 503, .code = "mine", .detail = "said by the route"},
                .handler = [this](const Request&, const Reply& reply) {
                  ++hanging_;
                  opened_.wait();
                  reply({.body = "at last"});
                }});
    router.add({.method = Method::get,
                .pattern = "/direct",
                .lane = Lane::direct,
                .handler = [](const Request&, const Reply& reply) { reply({.body = "ok"}); }});
    server_ = std::make_unique<Server>(std::move(router), options);
    server_->start();
  }
  void TearDown() override {
    if (opened_.wait_for(0s) != std::future_status::ready) gate_.set_value();
    kept_.clear();
  }
  [[nodiscard]] SocketClient client() const { return SocketClient(server_->port()); }

  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future().share();
  std::atomic<int> hanging_{0};
  std::unique_ptr<Server> server_;
  Mutex mutex_;
  std::vector<Reply> kept_;
};

TEST_F(LateTest, TheClientIsToldAndTheConnectionGoesOn) {
  start({.request_timeout = 20ms});
  SocketClient one = client();
  const auto answer = one.ask("POST", "/keep", "0123456789");
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->header("Content-Type"), "application/problem+json");
  EXPECT_EQ(answer->header("Retry-After"), "5");
  EXPECT_THAT(answer->body, HasSubstr(R"("code":"timeout")"));
  EXPECT_EQ(server_->stats().late, 1U);
  {
    const MutexLock lock(mutex_);
    ASSERT_EQ(kept_.size(), 1U);
    EXPECT_FALSE(kept_.front().wanted());
    kept_.front()({.body = "too late"});
  }
  const auto next = one.ask("GET", "/direct");
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(next->body, "ok") << "and not the answer to the one before";
}

TEST_F(LateTest, WhatAHandlerKeepsCountsUntilItLetsGo) {
  start({.body_memory = 1U << 20U, .request_timeout = 20ms});
  const std::string body(90'000, 'x');
  int busy = 0;
  for (int i = 0; i < 20; ++i) {
    const auto answer = client().ask("POST", "/keep", body);
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->status, 503);
    if (answer->body.find(R"("code":"busy")") != std::string::npos) ++busy;
  }
  EXPECT_GT(busy, 5) << "eleven fill the memory";
  {
    const MutexLock lock(mutex_);
    kept_.clear();
  }
  while (server_->stats().body_bytes > 0) std::this_thread::yield();
}

TEST_F(LateTest, ARouteHasItsOwnTimeAndItsOwnWords) {
  start({.read_workers = 1});
  for (int i = 0; i < 3; ++i) {
    const auto answer = client().ask("GET", "/hang");
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->status, 503);
    EXPECT_THAT(answer->body, HasSubstr("said by the route"));
  }
  EXPECT_EQ(client().ask("GET", "/direct").value().status, 200);
  gate_.set_value();
  EXPECT_TRUE(server_->stop(10s));
  EXPECT_EQ(hanging_, 1) << "those that waited for the worker in vain are not run any more";
}

TEST_F(LateTest, AHandlerThatNeverAnswersDoesNotHoldUpTheStopOfItsConnection) {
  start({.request_timeout = 1h});
  SocketClient one = client();
  ASSERT_TRUE(
      one.send("POST /keep HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
               "Content-Length: 2\r\n\r\n{}"));
  for (bool there = false; !there; std::this_thread::yield()) {
    const MutexLock lock(mutex_);
    there = !kept_.empty();
  }
  EXPECT_FALSE(server_->stop(0s)) << "it had to be cut";
  EXPECT_EQ(server_->stats().connections, 0U);
  EXPECT_TRUE(one.at_end());
  const MutexLock lock(mutex_);
  EXPECT_FALSE(kept_.front().wanted());
}

}  // namespace
}  // namespace postrider::http
