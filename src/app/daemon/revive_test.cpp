// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "app/daemon/daemon.hpp"
#include "postrider/open.hpp"
#include "support/backend.hpp"
#include "support/eventually.hpp"

namespace postrider::daemon {
namespace {

using namespace std::chrono_literals;
using test::eventually;

constexpr std::array<const char*, 1> empty_environment{nullptr};

/// A receiver that has had enough, until it is told otherwise.
class FedUpReceiver {
 public:
  FedUpReceiver() : server_(routes(), {.log = [](LogLevel, std::string_view) {}}) { server_.start(); }
  ~FedUpReceiver() { (void)server_.stop(5s); }
  FedUpReceiver(const FedUpReceiver&) = delete;
  FedUpReceiver& operator=(const FedUpReceiver&) = delete;

  void want_events() { status_ = 200; }
  [[nodiscard]] int requests() const { return requests_; }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(server_.port()); }

 private:
  http::Router routes() {
    http::Router router;
    router.add({.method = http::Method::post,
                .pattern = "/hook",
                .lane = http::Lane::direct,
                .body_limit = 1U << 20U,
                .handler = [this](const http::Request&, const http::Reply& reply) {
                  ++requests_;
                  reply({.status = status_, .body = "{}"});
                }});
    return router;
  }
  std::atomic<int> status_{410};
  std::atomic<int> requests_{0};
  http::Server server_;
};

TEST(DaemonReload, RevivesAWebhookThatWasSwitchedOff) {
  FedUpReceiver receiver;
  const test::TempDir folder;
  const auto config = config::parse_daemon_config("[storage]\nurl = \"sqlite:" + folder.file("x.db") +
                                                      "\"\n[server]\nlisten = \"127.0.0.1:0\"\n"
                                                      "[outbox]\npoller-interval-ms = 20\n"
                                                      "[[outbox.routes]]\nsink = \"hook\"\n"
                                                      "[sinks.hook]\ntype = \"webhook\"\nurl = \"" +
                                                      receiver.url() + "/hook\"\nallow-private = true\n",
                                                  "test.toml", empty_environment.data())
                          .config;
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto told = [&](std::string_view text) {
    const std::scoped_lock lock(mutex);
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string& line) { return line.find(text) != std::string::npos; });
  };
  Daemon daemon(config, [&](LogLevel, std::string_view line) {
    const std::scoped_lock lock(mutex);
    lines.emplace_back(line);
  });
  daemon.start();
  ASSERT_TRUE(eventually([&] { return daemon.ready(); }));
  const auto storage = open("sqlite:" + folder.file("x.db"));
  {
    Transaction tx = storage->begin();
    Outbox(*storage).publish(tx, Event::json("Placed", "{}"));
    tx.commit();
  }
  ASSERT_TRUE(eventually([&] { return told("sink 'hook' is switched off") == 1; }));
  EXPECT_EQ(receiver.requests(), 1);
  receiver.want_events();
  OutboxAdmin admin(*storage);
  ASSERT_TRUE(eventually([&] { return admin.counts().retrying == 1; }));
  EXPECT_EQ(receiver.requests(), 1) << "it is left alone";
  daemon.reload(config);
  EXPECT_EQ(told("sink 'hook' is switched on again"), 1);
  EXPECT_TRUE(eventually([&] { return admin.counts().done == 1; }));
  EXPECT_EQ(receiver.requests(), 2);
  EXPECT_TRUE(daemon.stop());
}

}  // namespace
}  // namespace postrider::daemon
