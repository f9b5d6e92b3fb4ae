// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/vitals.hpp"

#include <gtest/gtest.h>

#include <array>
#include <future>

#include "app/daemon/engines.hpp"
#include "app/http/server.hpp"
#include "postrider/open.hpp"
#include "support/temp_dir.hpp"

namespace postrider::daemon {
namespace {

using namespace std::chrono_literals;

class VitalsTest : public ::testing::Test {
 protected:
  static LogCallback quiet() {
    return [](LogLevel, std::string_view) {};
  }
  static config::DaemonConfig read(const std::string& url) {
    constexpr std::array<const char*, 1> no_environment{nullptr};
    const std::string text =
        "[storage]\nurl = \"" + url +
        "\"\n[outbox]\nenabled = true\n[relay.topics.all]\npublishers = [\"LogPublisher\"]\n";
    return config::parse_daemon_config(text, "t.toml", no_environment.data()).config;
  }
  /// Asks until the answer is this one.
  bool await_answer(const std::string& wanted) {
    const SteadyPoint deadline = Clock::system().steady_now() + 60s;
    while (Clock::system().steady_now() < deadline) {
      if (vitals_.hanging(Clock::system().steady_now(), 200ms) == wanted) return true;
      std::this_thread::yield();
    }
    return false;
  }

  test::TempDir dir_;
  const std::string url_ = "sqlite:" + dir_.file("events.db");
  const std::unique_ptr<Storage> storage_ = open(url_);
  const config::DaemonConfig config_ = read(url_);
  SinkSet sinks_{config_.sinks, quiet()};
  metrics::PrometheusMetrics metrics_;
  Engines engines_{*storage_, config_, sinks_, metrics_, quiet()};
  http::Server server_{http::Router{}, {.io_threads = 1, .log = quiet()}};
  Vitals vitals_{server_, engines_};
};

TEST_F(VitalsTest, HttpThreadsThatHangAreFoundOutAndForgivenWhenTheyGoOn) {
  storage_->migrate();
  engines_.start();
  server_.start();
  EXPECT_TRUE(await_answer(""));
  std::promise<void> go_on;
  std::promise<void> hangs;
  server_.post([&] {
    hangs.set_value();
    go_on.get_future().wait();
  });
  hangs.get_future().wait();
  EXPECT_TRUE(await_answer("the HTTP server"));
  go_on.set_value();
  EXPECT_TRUE(await_answer(""));
  server_.stop(0s);
}

TEST_F(VitalsTest, WhatDoesNotRunDoesNotHang) {
  server_.start();
  (void)vitals_.hanging(Clock::system().steady_now(), 1s);
  EXPECT_EQ(engines_.relay()->overdue(), 0s);
  EXPECT_EQ(engines_.outbox()->overdue(), 0s);
  storage_->migrate();
  engines_.start();
  engines_.stop();
  // Whatever they were waiting for when they ended is over by then.
  EXPECT_EQ(engines_.relay()->overdue(), 0s);
  EXPECT_EQ(engines_.outbox()->overdue(), 0s);
  server_.stop(0s);
}

}  // namespace
}  // namespace postrider::daemon
