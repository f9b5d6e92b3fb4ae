// SPDX-License-Identifier: Apache-2.0
// A receiver that answers 500 to some events, or to all, and the outbox.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "postrider/open.hpp"
#include "postrider/outbox.hpp"
#include "postrider/outbox_admin.hpp"
#include "postrider/webhook_sink.hpp"
#include "sinks/webhook/webhook_server.hpp"
#include "support/eventually.hpp"
#include "support/temp_dir.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class WebhookOutboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    storage_ = open("sqlite:" + folder_.file("outbox.db"));
    storage_->migrate();
  }
  std::shared_ptr<Outbox> outbox_to(const std::string& path) {
    OutboxOptions options;
    options.poller_interval = 20ms;
    options.retry_base_delay = 1ms;
    options.retry_max_attempts = 4;
    options.log = [](LogLevel, std::string_view) {};
    auto outbox = std::make_shared<Outbox>(*storage_, options);
    outbox->on_all(sink_listener(
        webhook_sink({.url = server_.url(path),
                      .timeout = 10s,
                      .allow_private = true,
                      .limits = {.breaker_reset = 50ms, .log = [](LogLevel, std::string_view) {}}}),
        1ms));
    outbox->start();
    return outbox;
  }
  static Event event(const std::string& name) {
    return Event::builder("T").id(EventId(name)).json("{\"name\":\"" + name + "\"}").build();
  }
  void publish(Outbox& outbox, const std::string& name) {
    Transaction tx = storage_->begin();
    outbox.publish(tx, event(name));
    tx.commit();
  }
  /// Found by the poller.
  void publish_before(const std::string& name) {
    Transaction tx = storage_->begin();
    Outbox(*storage_).publish(tx, event(name));
    tx.commit();
  }
  WebhookServer server_;
  TempDir folder_;
  std::shared_ptr<Storage> storage_;
};

TEST_F(WebhookOutboxTest, EventsThatItFailsWithDieAndHoldUpNoOthers) {
  const auto outbox = outbox_to("/?status=500&only=bad");
  OutboxAdmin admin(*storage_);
  for (int i = 0; i < 10; ++i) publish(*outbox, "bad" + std::to_string(i));
  // Others go on coming, so it becomes clear whose fault it is.
  int good = 0;
  ASSERT_TRUE(eventually([&] {
    publish(*outbox, "good" + std::to_string(good++));
    return admin.counts().dead == 10;
  }));
  ASSERT_TRUE(eventually([&] { return admin.counts().done == good; }));
  const auto dead = admin.find(EventId("bad3"));
  ASSERT_TRUE(dead.has_value());
  EXPECT_EQ(dead->attempts, Attempt{4});
  EXPECT_THAT(dead->last_error, HasSubstr("HTTP 500"));
  EXPECT_THAT(dead->last_error, HasSubstr("has taken others meanwhile"));
}

TEST_F(WebhookOutboxTest, OthersAreDeliveredBesideAsManyThatItFailsWith) {
  constexpr int each = 200;
  for (int i = 0; i < each; ++i) {
    for (const char* name : {"bad", "good"}) publish_before(name + std::to_string(i));
  }
  const auto outbox = outbox_to("/?status=500&only=bad");
  OutboxAdmin admin(*storage_);
  ASSERT_TRUE(eventually([&] { return admin.counts().done == each; }));
  // Only while others are taken it is clear whose fault it is.
  int more = 0;
  ASSERT_TRUE(eventually([&] {
    publish(*outbox, "later" + std::to_string(more++));
    return admin.counts().dead == each;
  }));
  std::map<std::string, int> times;
  for (const auto& request : server_.posted()) ++times[request.headers.at("webhook-id")];
  for (int i = 0; i < each; ++i) EXPECT_EQ(times["good" + std::to_string(i)], 1) << "no copies";
}

TEST_F(WebhookOutboxTest, NoneDiesOfAReceiverThatFailsWithEverything) {
  const auto outbox = outbox_to("/?status=500&times=40");
  OutboxAdmin admin(*storage_);
  for (int i = 0; i < 3; ++i) publish(*outbox, "e" + std::to_string(i));
  EXPECT_TRUE(eventually([&] { return admin.counts().done == 3; }));
  EXPECT_EQ(admin.counts().dead, 0);
  EXPECT_GT(server_.posted().size(), 40U) << "more attempts than any had";
}

}  // namespace
}  // namespace postrider::test
