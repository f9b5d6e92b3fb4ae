// SPDX-License-Identifier: Apache-2.0
// What only this sink has, with a real broker.
#include "postrider/kafka_sink.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <random>
#include <set>

#include "postrider/detail/sync.hpp"
#include "postrider/error.hpp"
#include "sinks/kafka/kafka_broker.hpp"
#include "sinks/sink_fixture.hpp"

namespace postrider::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Kind = PublishResult::Kind;

SinkLimits quiet() {
  return {.breaker_threshold = 0, .log = [](LogLevel, std::string_view) {}};
}

class KafkaSinkTest : public SinkConformance {
 protected:
  void SetUp() override {
    broker_.start();
    broker_.thaw();
  }
  std::shared_ptr<Sink> sink(const std::string& topic, std::map<std::string, std::string> properties = {},
                             Duration timeout = 5s) const {
    return kafka_sink({.brokers = broker_.address(),
                       .topic = topic,
                       .properties = std::move(properties),
                       .timeout = timeout,
                       .limits = quiet()});
  }
  KafkaBroker& broker_ = KafkaBroker::shared();
};

std::string what_is_said_of(const KafkaSinkOptions& options) {
  try {
    (void)kafka_sink(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.what();
  }
  return "nothing";
}

TEST_F(KafkaSinkTest, KcatReadsThem) {
  const std::string topic = broker_.create_topic(1);
  const Event event =
      Event::builder("OrderPlaced").id(EventId("id-7")).ordering_key("k 7").json("{}").build();
  const SinkMessage message{.event = &event, .key = event.ordering_key()};
  ASSERT_EQ(sink(topic)->send({&message, 1}).kind(), Kind::all);

  ChildProcess kcat({"/usr/bin/kcat", "-C", "-q", "-e", "-b", broker_.address(), "-t", topic, "-J"});
  const auto line = kcat.read_line();
  ASSERT_TRUE(line);
  const boost::json::value read = boost::json::parse(*line);
  EXPECT_EQ(read.at("key").as_string(), "k 7");
  EXPECT_EQ(read.at("payload").as_string(), "{}");
  std::map<std::string, std::string> headers;
  const boost::json::array& list = read.at("headers").as_array();
  for (std::size_t i = 0; i + 1 < list.size(); i += 2) {
    headers[list[i].as_string().c_str()] = list[i + 1].as_string().c_str();
  }
  EXPECT_EQ(headers["ce_specversion"], "1.0");
  EXPECT_EQ(headers["ce_id"], "id-7");
  EXPECT_EQ(headers["ce_type"], "OrderPlaced");
  EXPECT_EQ(headers["content-type"], "application/json");
}

TEST_F(KafkaSinkTest, KeysAreOfThePartitionsThatJavaWouldTake) {
  constexpr int partitions = 7;
  const std::string topic = broker_.create_topic(partitions);
  // Known hashes, of the tests of Kafka's own clients.
  const std::map<std::string, std::uint32_t> murmur2{{"21", static_cast<std::uint32_t>(-973932308)},
                                                     {"foobar", static_cast<std::uint32_t>(-790332482)},
                                                     {"abc", 479470107U}};
  std::vector<Event> events;
  for (const auto& [key, hash] : murmur2) {
    events.push_back(Event::builder("T").ordering_key(key).json("{}").build());
  }
  ASSERT_EQ(sink(topic)->send(messages(events)).kind(), Kind::all);
  KafkaReader reader(broker_.address(), topic);
  const std::vector<Received>& all = reader.read();
  ASSERT_EQ(all.size(), murmur2.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(reader.partitions()[i],
              static_cast<std::int32_t>((murmur2.at(all[i].key) & 0x7fffffffU) % partitions))
        << all[i].key;
  }
}

TEST_F(KafkaSinkTest, MessagesWithoutAKeyHaveNone) {
  const std::string topic = broker_.create_topic(1);
  const Event event = Event::json("T", "{}");
  const SinkMessage message{.event = &event};
  ASSERT_EQ(sink(topic)->send({&message, 1}).kind(), Kind::all);
  ChildProcess kcat({"/usr/bin/kcat", "-C", "-q", "-e", "-b", broker_.address(), "-t", topic, "-J"});
  const auto line = kcat.read_line();
  ASSERT_TRUE(line);
  EXPECT_TRUE(boost::json::parse(*line).at("key").is_null()) << *line;
}

TEST_F(KafkaSinkTest, TheTopicMayDependOnTheEvent) {
  const std::string topic = broker_.create_topic(1);
  broker_.create_topic("shop." + topic + "-Placed", 1);
  broker_.create_topic("shop." + topic + "-Paid", 1);
  const auto to = sink("shop.{topic}-{type}");
  std::vector<Event> events;
  for (const char* type : {"Placed", "Paid", "Placed", "nö"}) events.push_back(Event::json(type, "{}"));
  std::vector<SinkMessage> all = messages(events);
  for (SinkMessage& message : all) message.topic = topic;
  const PublishResult result = to->send(all);
  EXPECT_EQ(result.kind(), Kind::refused);
  EXPECT_EQ(result.count(4), 3U) << result.reason();
  EXPECT_THAT(result.reason(), HasSubstr("no name of a Kafka topic"));
  EXPECT_EQ(KafkaReader(broker_.address(), "shop." + topic + "-Placed").read().size(), 2U);
  EXPECT_EQ(KafkaReader(broker_.address(), "shop." + topic + "-Paid").read().size(), 1U);

  broker_.create_topic("shop.outbox-Placed", 1);
  const SinkMessage of_the_outbox{.event = events.data()};
  const PublishResult no_topic = to->send({&of_the_outbox, 1});
  EXPECT_EQ(no_topic.kind(), Kind::all) << no_topic.reason();
  EXPECT_EQ(KafkaReader(broker_.address(), "shop.outbox-Placed").read().size(), 1U);
}

TEST_F(KafkaSinkTest, ATopicThatIsNotThereIsAwaited) {
  const std::string topic = "not-yet-" + std::string(new_event_id().view());
  const auto to = sink(topic, {}, 2s);
  const std::vector<Event> events = numbered(5, 1);
  const PublishResult result = to->send(messages(events));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), HasSubstr("'" + topic + "'"));
  EXPECT_THAT(result.reason(), HasSubstr("auto.create.topics.enable"));
  broker_.create_topic(topic, 1);
  EXPECT_TRUE(send_all(*to, messages(events)));
  EXPECT_EQ(KafkaReader(broker_.address(), topic).read().size(), 5U);
}

/// JSON that no compression makes much smaller.
std::string noise(std::size_t size) {
  std::mt19937 random(7);
  std::string text = "\"";
  while (text.size() <= size) text += static_cast<char>(std::uniform_int_distribution<int>('#', '[')(random));
  return text += '"';
}

TEST_F(KafkaSinkTest, CompressesUnlessItIsToldNotTo) {
  const std::string topic = broker_.create_topic(1, {{"max.message.bytes", "20000"}});
  const Event event = Event::builder("Large").json("\"" + std::string(30'000, 'x') + "\"").build();
  const SinkMessage message{.event = &event};
  const PublishResult plain = sink(topic, {{"compression.type", "none"}})->send({&message, 1});
  EXPECT_EQ(plain.kind(), Kind::refused);
  EXPECT_EQ(sink(topic)->send({&message, 1}).kind(), Kind::all);
  KafkaReader reader(broker_.address(), topic);
  ASSERT_EQ(reader.read().size(), 1U);
  EXPECT_EQ(reader.read().front().body, event.payload());
}

TEST_F(KafkaSinkTest, OnlyTheMessageIsRefusedThatIsTooLarge) {
  const std::string topic = broker_.create_topic(3, {{"max.message.bytes", "20000"}});
  const auto to = sink(topic);
  std::vector<Event> events = numbered(100, 10);
  events[57] = Event::builder("Large").ordering_key("k7").json(noise(30'000)).build();
  const std::vector<SinkMessage> all = messages(events);
  const PublishResult result = to->send(all);
  EXPECT_EQ(result.kind(), Kind::refused);
  EXPECT_EQ(result.count(100), 57U);
  EXPECT_THAT(result.reason(), HasSubstr("max.message.bytes"));
  ASSERT_TRUE(send_all(*to, std::span(all).subspan(58)));

  std::map<std::string, std::vector<int>> expected;
  for (int i = 0; i < 100; ++i) {
    if (i != 57) expected["k" + std::to_string(i % 10)].push_back(i / 10);
  }
  KafkaReader reader(broker_.address(), topic);
  EXPECT_EQ(order_by_key(reader.read()), expected);
}

TEST_F(KafkaSinkTest, SmallMessagesAreNotRefusedForTheirCompany) {
  const std::string topic = broker_.create_topic(1, {{"max.message.bytes", "10000"}});
  const auto to = sink(topic, {{"compression.type", "none"}});
  const std::vector<Event> events = numbered(600, 3);
  ASSERT_TRUE(send_all(*to, messages(events), 300));
  EXPECT_EQ(to->send(messages(events)).kind(), Kind::all) << "it has learned";
}

TEST_F(KafkaSinkTest, ABatchLargerThanTheQueueIsNoTrouble) {
  const std::string topic = broker_.create_topic(1);
  const auto to = sink(topic, {{"queue.buffering.max.messages", "50"}}, 20s);
  const std::vector<Event> events = numbered(1'000, 3);
  EXPECT_EQ(to->send(messages(events)).kind(), Kind::all);
  KafkaReader reader(broker_.address(), topic);
  EXPECT_EQ(reader.read().size(), 1'000U);
}

TEST_F(KafkaSinkTest, LogsIn) {
  const std::string topic = broker_.create_topic(1);
  struct Heard {
    Mutex mutex;
    std::string all POSTRIDER_GUARDED_BY(mutex);
  };
  const auto heard = std::make_shared<Heard>();
  const auto with_password = [&](const std::string& password) {
    SinkLimits limits = quiet();
    limits.log = [heard](LogLevel, std::string_view text) {
      const MutexLock lock(heard->mutex);
      heard->all += text;
      heard->all += '\n';
    };
    return kafka_sink({.brokers = broker_.login_address(),
                       .topic = topic,
                       .properties = {{"security.protocol", "sasl_plaintext"},
                                      {"sasl.mechanisms", "PLAIN"},
                                      {"sasl.username", "postrider"},
                                      {"sasl.password", password},
                                      {"debug", "security,broker"}},
                       .timeout = 3s,
                       .limits = limits});
  };
  const std::vector<Event> events = numbered(1, 1);
  EXPECT_EQ(with_password("knock-knock")->send(messages(events)).kind(), Kind::all);
  const PublishResult wrong = with_password("open-sesame")->send(messages(events));
  EXPECT_EQ(wrong.kind(), Kind::unavailable);
  EXPECT_THAT(wrong.reason(), HasSubstr("uthentication"));
  EXPECT_THAT(wrong.reason(), Not(HasSubstr("open-sesame")));
  const MutexLock lock(heard->mutex);
  EXPECT_THAT(heard->all, HasSubstr("librdkafka"));
  EXPECT_THAT(heard->all, Not(HasSubstr("open-sesame")));
  EXPECT_THAT(heard->all, Not(HasSubstr("knock-knock")));
}

TEST_F(KafkaSinkTest, TlsToWhoeverDoesNotSpeakItIsUnavailable) {
  const auto to = sink(broker_.create_topic(1), {{"security.protocol", "ssl"}}, 1s);
  const std::vector<Event> events = numbered(1, 1);
  const PublishResult result = to->send(messages(events));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), HasSubstr("SSL")) << "the reason is the broker's, not only the timeout";
}

TEST(KafkaSinkOptionsTest, AreRefusedOutOfBounds) {
  const KafkaSinkOptions good{.brokers = "127.0.0.1:1", .topic = "t", .limits = quiet()};
  EXPECT_EQ(what_is_said_of(good), "nothing");
  const auto with = [&](const auto& change) {
    KafkaSinkOptions options = good;
    change(options);
    return what_is_said_of(options);
  };
  EXPECT_THAT(with([](auto& o) { o.brokers = ""; }), HasSubstr("brokers"));
  EXPECT_THAT(with([](auto& o) { o.name = ""; }), HasSubstr("name"));
  EXPECT_THAT(with([](auto& o) { o.timeout = 1ms; }), HasSubstr("timeout"));
  EXPECT_THAT(with([](auto& o) { o.cloud_events.source = "no uri"; }), HasSubstr("source"));
  for (const char* topic : {"", ".", "..", "a b", "{nothing}", "{topic", "x{type}{", "topic}"}) {
    EXPECT_THAT(with([&](auto& o) { o.topic = topic; }), HasSubstr("KafkaSinkOptions::topic")) << topic;
  }
  EXPECT_THAT(with([](auto& o) { o.topic = std::string(250, 'x'); }), HasSubstr("topic"));
  EXPECT_EQ(with([](auto& o) { o.topic = "{topic}{type}"; }), "nothing");
}

TEST(KafkaSinkOptionsTest, PropertiesAreCheckedByTheLibrary) {
  const auto with = [](const std::string& property, const std::string& value) {
    return what_is_said_of(
        {.brokers = "127.0.0.1:1", .topic = "t", .properties = {{property, value}}, .limits = quiet()});
  };
  EXPECT_EQ(with("compression.type", "lz4"), "nothing");
  EXPECT_THAT(with("compression.typo", "lz4"), HasSubstr("No such configuration property"));
  EXPECT_THAT(with("compression.type", "rar"), HasSubstr("rar"));
  EXPECT_THAT(with("linger.ms", "-1"), HasSubstr("linger.ms"));
  EXPECT_THAT(with("acks", "1"), HasSubstr("sets it by itself"));
  EXPECT_THAT(with("enable.idempotence", "false"), HasSubstr("sets it by itself"));
  EXPECT_THAT(with("message.timeout.ms", "1"), HasSubstr("sets it by itself"));
  // Only together are they wrong.
  EXPECT_THAT(with("max.in.flight.requests.per.connection", "6"), HasSubstr("max.in.flight"));
}

TEST(KafkaSinkOptionsTest, NoSecretIsSaid) {
  const std::string said = what_is_said_of({.brokers = "127.0.0.1:1",
                                            .topic = "t",
                                            .properties = {{"security.protocol", "ssl"},
                                                           {"ssl.key.password", "open-sesame"},
                                                           {"ssl.key.pem", "my-private-key"}},
                                            .limits = quiet()});
  EXPECT_THAT(said, HasSubstr("ssl.key"));
  EXPECT_THAT(said, Not(HasSubstr("open-sesame")));
  EXPECT_THAT(said, Not(HasSubstr("my-private-key")));
}

}  // namespace
}  // namespace postrider::test
