// SPDX-License-Identifier: Apache-2.0
// Libraries of others accept what we send; see node/check, which runs this.
#include <gtest/gtest.h>

#include <cstdlib>

#include "postrider/webhook_sink.hpp"
#include "sinks/webhook/webhook_server.hpp"
#include "support/places.hpp"

namespace postrider::test {
namespace {

TEST(WebhookInNode, StandardWebhooksAndCloudEventsAcceptBothModes) {
  const char* const modules = std::getenv("POSTRIDER_NODE_MODULES");
  if (modules == nullptr) GTEST_SKIP() << "the test sink.webhook.node installs the packages";
  const std::string old_secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
  const std::string new_secret = "whsec_QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVowMTIz";
  WebhookServer server;
  for (const CloudEventsMode mode : {CloudEventsMode::binary, CloudEventsMode::structured}) {
    const auto sink = webhook_sink({.url = server.url(),
                                    .secrets = {old_secret, new_secret},
                                    .allow_private = true,
                                    .cloud_events = {.mode = mode, .source = "/shop/orders"}});
    for (int i = 0; i < 20; ++i) {
      const EventId id = new_event_id();
      const Event event =
          Event::builder("OrderPlaced")
              .id(id)
              .aggregate("Order", "größe " + std::to_string(i))
              .ordering_key("key with \"quotes\" and %")
              .header("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
              .json("{\"id\":\"" + id.str() + "\", \"text\":\"grüße \\u0001\"}")
              .build();
      const SinkMessage message{.event = &event, .key = event.ordering_key()};
      const PublishResult result = sink->send({&message, 1});
      ASSERT_EQ(result.kind(), PublishResult::Kind::all) << result.reason();
    }
  }
  ChildProcess node({"/usr/bin/env", "node", test::source_file("tests/sinks/webhook/node/verify.mjs"),
                     modules, server.file(), old_secret, new_secret});
  const auto said = node.read_until("accepted");
  ASSERT_TRUE(said) << "see its stderr";
  EXPECT_EQ(*said, "accepted 20 binary, 20 structured");
  const auto end = node.wait();
  EXPECT_TRUE(end && end->ok());
}

}  // namespace
}  // namespace postrider::test
