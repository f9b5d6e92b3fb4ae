// SPDX-License-Identifier: Apache-2.0
// What arrives is what was sent.
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <thread>

#include "sinks/sink_fixture.hpp"

namespace postrider::test {
namespace {

constexpr TimePoint noon{std::chrono::seconds{1'780'315'200}};  // 2026-06-01T12:00:00Z
const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// With everything that an event can have.
StoredEvent full_event(const std::string& payload, bool json) {
  auto builder = Event::builder("OrderPlaced");
  builder.id(EventId("id-1"))
      .occurred_at(noon)
      .aggregate("Order", "order 7")
      .tenant("mülleimer")
      .ordering_key("key-7")
      .header("traceparent", trace)
      .header("tracestate", "a=1,b=2")
      .header("x-colour", "dark blue");
  json ? builder.json(payload) : builder.bytes(payload);
  return StoredEvent({.position = Position{42},
                      .event = builder.build(),
                      .tags = {{.key = "order", .value = "7"}, {.key = "who", .value = "\"me\""}},
                      .correlation_id = "corr",
                      .causation_id = "cause",
                      .stored_at = noon});
}

SinkMessage message_of(const StoredEvent& stored) {
  return {.event = &stored.event(), .stored = &stored, .topic = "orders", .epoch = Epoch{3}, .key = "key-7"};
}

TEST_F(SinkConformance, PassesEveryFieldInBinaryMode) {
  if (!receiver_->speaks(CloudEventsMode::binary)) GTEST_SKIP() << "this sink is structured always";
  const StoredEvent stored = full_event(R"({"total": 12.50, "text":"grüße \u0001"})", true);
  const SinkMessage message = message_of(stored);
  const auto sink = receiver_->sink({});
  const PublishResult result = sink->send({&message, 1});
  ASSERT_EQ(result.kind(), PublishResult::Kind::all) << result.reason();

  const std::vector<Received> all = receiver_->received();
  ASSERT_EQ(all.size(), 1U);
  const Received& one = all.front();
  const std::map<std::string, std::string> expected{
      {"specversion", "1.0"},
      {"id", "id-1"},
      {"source", "/postrider"},
      {"type", "OrderPlaced"},
      {"time", "2026-06-01T12:00:00Z"},
      {"subject", "order 7"},
      {"partitionkey", "key-7"},
      {"tenantid", "mülleimer"},
      {"aggregatetype", "Order"},
      {"sequence", "0000000000000000042"},
      {"correlationid", "corr"},
      {"causationid", "cause"},
      {"topic", "orders"},
      {"epoch", "3"},
      {"tags", R"(["order=7","who=\"me\""])"},
  };
  EXPECT_EQ(one.attributes, expected);
  EXPECT_EQ(one.headers.at("traceparent"), trace) << "untouched";
  EXPECT_EQ(one.headers.at("tracestate"), "a=1,b=2");
  EXPECT_EQ(one.headers.at("x-colour"), "dark blue");
  EXPECT_EQ(one.content_type, "application/json");
  EXPECT_EQ(one.body, stored.data()) << "byte for byte";
}

TEST_F(SinkConformance, PassesEveryFieldInStructuredMode) {
  if (!receiver_->speaks(CloudEventsMode::structured)) GTEST_SKIP() << "this sink is binary always";
  const StoredEvent stored = full_event(R"({"total":1})", true);
  const SinkMessage message = message_of(stored);
  const auto sink = receiver_->sink({.mode = CloudEventsMode::structured});
  ASSERT_EQ(sink->send({&message, 1}).kind(), PublishResult::Kind::all);

  const std::vector<Received> all = receiver_->received();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(boost::json::parse(all.front().body),
            boost::json::parse(R"({
    "specversion":"1.0","id":"id-1","source":"/postrider","type":"OrderPlaced","time":"2026-06-01T12:00:00Z",
    "subject":"order 7","partitionkey":"key-7","tenantid":"mülleimer","aggregatetype":"Order",
    "sequence":"0000000000000000042","correlationid":"corr","causationid":"cause","topic":"orders","epoch":"3",
    "tags":"[\"order=7\",\"who=\\\"me\\\"\"]","traceparent":")" +
                               trace + R"(","tracestate":"a=1,b=2",
    "eventheaders":"{\"traceparent\":\")" +
                               trace + R"(\",\"tracestate\":\"a=1,b=2\",\"x-colour\":\"dark blue\"}",
    "datacontenttype":"application/json","data":{"total":1}})"));
}

TEST_F(SinkConformance, PassesAnyBytes) {
  std::string every;
  for (int i = 0; i < 256; ++i) every += static_cast<char>(i);
  const StoredEvent stored = full_event(every, false);
  const SinkMessage message = message_of(stored);
  const bool binary = receiver_->speaks(CloudEventsMode::binary);
  const auto sink = receiver_->sink({.mode = binary ? CloudEventsMode::binary : CloudEventsMode::structured});
  ASSERT_EQ(sink->send({&message, 1}).kind(), PublishResult::Kind::all);
  const std::vector<Received> all = receiver_->received();
  ASSERT_EQ(all.size(), 1U);
  if (binary) {
    EXPECT_EQ(all.front().content_type, "application/octet-stream");
    EXPECT_EQ(all.front().body, every);
  } else {
    const auto text = boost::json::parse(all.front().body).at("data_base64").as_string();
    EXPECT_TRUE(text.starts_with("AAECAwQFBgcICQoL")) << text;
    EXPECT_TRUE(text.ends_with("+/w==")) << text;
    EXPECT_EQ(text.size(), 344U);
  }
}

TEST_F(SinkConformance, KeepsTheOrderOfEachKey) {
  const std::vector<Event> events = numbered(2'000, 7);
  const auto sink =
      receiver_->sink({.mode = receiver_->speaks(CloudEventsMode::binary) ? CloudEventsMode::binary
                                                                          : CloudEventsMode::structured});
  ASSERT_TRUE(send_all(*sink, messages(events), 333));
  EXPECT_EQ(receiver_->received().size(), 2'000U) << "and no message twice, when nothing fails";
  expect_complete_and_in_order(2'000, 7);
}

TEST_F(SinkConformance, TakesOrRefusesTheLargestEvent) {
  const std::vector<Event> events{Event::bytes("Large", std::string(EventLimits::payload_bytes, '\xff')),
                                  Event::json("Small", "{}")};
  const auto sink =
      receiver_->sink({.mode = receiver_->speaks(CloudEventsMode::structured) ? CloudEventsMode::structured
                                                                              : CloudEventsMode::binary,
                       .timeout = 20s});
  const std::vector<SinkMessage> both = messages(events);
  const PublishResult result = sink->send(both);
  if (result.kind() == PublishResult::Kind::all) {
    EXPECT_EQ(receiver_->received().size(), 2U);
    return;
  }
  ASSERT_EQ(result.kind(), PublishResult::Kind::refused)
      << "too large is the event's fault: " << result.reason();
  EXPECT_EQ(result.count(2), 0U);
  EXPECT_EQ(sink->send({&both[1], 1}).kind(), PublishResult::Kind::all) << "and the next one goes through";
}

TEST_F(SinkConformance, ServesManyThreads) {
  constexpr int threads = 8;
  constexpr int each = 200;
  const auto sink =
      receiver_->sink({.mode = receiver_->speaks(CloudEventsMode::binary) ? CloudEventsMode::binary
                                                                          : CloudEventsMode::structured});
  std::vector<std::jthread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      const std::vector<Event> events = numbered(each, 1, "t" + std::to_string(t) + "-");
      EXPECT_TRUE(send_all(*sink, messages(events), 1));
    });
  }
  running.clear();
  const auto order = order_by_key(receiver_->received());
  EXPECT_EQ(order.size(), static_cast<std::size_t>(threads));
  for (const auto& [key, numbers] : order) {
    EXPECT_EQ(numbers.size(), static_cast<std::size_t>(each)) << key;
    EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end())) << key;
  }
}

TEST_F(SinkConformance, IsNothingButUnavailableAfterClose) {
  const std::vector<Event> events = numbered(1, 1);
  const auto sink = receiver_->sink({});
  EXPECT_TRUE(sink->healthy());
  sink->close();
  sink->close();
  EXPECT_FALSE(sink->healthy());
  EXPECT_EQ(sink->send(messages(events)).kind(), PublishResult::Kind::unavailable);
  EXPECT_TRUE(receiver_->received().empty());
}

}  // namespace
}  // namespace postrider::test
