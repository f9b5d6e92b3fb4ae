// SPDX-License-Identifier: Apache-2.0
#include "postrider/rabbitmq_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "postrider/error.hpp"
#include "publishers/rabbitmq/confirms.hpp"
#include "sinks/rabbitmq/rabbitmq_client.hpp"
#include "sinks/rabbitmq/rabbitmq_server.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = PublishResult::Kind;

/// Of messages without keys.
Confirms unordered(std::size_t count, std::uint64_t first) {
  return {KeyOrder(std::vector<SinkMessage>(count)), count, first};
}

TEST(RabbitmqConfirms, OneOfEachKeyIsOnItsWay) {
  const std::vector<SinkMessage> messages{{.key = "a"}, {.key = "a"}, {.key = "b"}, {.key = "a"}};
  Confirms confirms(KeyOrder(messages), messages.size(), 1);
  confirms.sent();
  ASSERT_EQ(confirms.next(), 2U) << "b passes the second a";
  confirms.sent();
  EXPECT_FALSE(confirms.next());
  confirms.ack(2, false);
  EXPECT_EQ(confirms.safe(), 0U);
  EXPECT_FALSE(confirms.next());
  confirms.ack(1, false);
  EXPECT_EQ(confirms.safe(), 1U);
  ASSERT_EQ(confirms.next(), 1U);
  confirms.sent();
  confirms.nack(3, false);
  EXPECT_EQ(confirms.failed(), 1U);
  EXPECT_FALSE(confirms.next()) << "nothing of its key passes it";
  EXPECT_EQ(confirms.safe(), 1U);
  EXPECT_EQ(confirms.on_the_way(), 0U);
}

TEST(RabbitmqConfirms, WithoutOrderNobodyWaitsForItsKey) {
  const std::vector<SinkMessage> messages{{.key = "a"}, {.key = "a"}, {.key = "b"}};
  Confirms confirms(KeyOrder(messages, KeyOrder::Rule::any), messages.size(), 1);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    ASSERT_EQ(confirms.next(), i) << "in their order";
    confirms.sent();
  }
  confirms.nack(1, false);
  confirms.ack(2, false);
  EXPECT_EQ(confirms.failed(), 0U) << "and the second a is there all the same";
  EXPECT_EQ(confirms.safe(), 0U);
}

TEST(RabbitmqConfirms, APrefixIsSafe) {
  Confirms confirms = unordered(5, 11);
  for (int i = 0; i < 5; ++i) confirms.sent();
  confirms.ack(13, false);
  EXPECT_EQ(confirms.safe(), 0U);
  confirms.ack(12, true);
  EXPECT_EQ(confirms.safe(), 3U);
  EXPECT_EQ(confirms.on_the_way(), 2U);
  confirms.ack(13, false);
  EXPECT_EQ(confirms.on_the_way(), 2U) << "twice is once";
  confirms.ack(15, true);
  EXPECT_EQ(confirms.safe(), 5U);
  EXPECT_FALSE(confirms.failed());
}

TEST(RabbitmqConfirms, ANackEndsIt) {
  Confirms confirms = unordered(4, 1);
  for (int i = 0; i < 4; ++i) confirms.sent();
  confirms.ack(4, false);
  confirms.nack(3, false);
  EXPECT_EQ(confirms.failed(), 2U);
  EXPECT_EQ(confirms.safe(), 0U);
  confirms.ack(2, true);
  EXPECT_EQ(confirms.safe(), 2U);
  EXPECT_EQ(confirms.on_the_way(), 0U);
}

TEST(RabbitmqConfirms, AnAckAfterAReturnMeansNothing) {
  Confirms confirms = unordered(3, 1);
  for (int i = 0; i < 3; ++i) confirms.sent();
  confirms.returned(1);
  confirms.ack(3, true);
  EXPECT_EQ(confirms.safe(), 1U);
  EXPECT_EQ(confirms.failed(), 1U);
  EXPECT_EQ(confirms.on_the_way(), 0U);
}

TEST(RabbitmqConfirms, TagsOfOthersAreNotOurs) {
  Confirms confirms = unordered(3, 10);
  confirms.sent();
  confirms.ack(9, true);
  confirms.ack(11, false);  // not sent yet
  EXPECT_EQ(confirms.safe(), 0U);
  confirms.ack(0, true);  // all
  EXPECT_EQ(confirms.safe(), 1U);
}

class RabbitmqSinkTest : public ::testing::Test {
 protected:
  RabbitmqSinkTest() {
    static int tests = 0;
    name_ = "own-" + std::to_string(++tests);
  }
  RabbitmqSinkOptions options() const {
    return {.url = server_.url(),
            .timeout = 10s,
            .limits = {.breaker_threshold = 0, .log = [](LogLevel, std::string_view) {}}};
  }
  RabbitmqSinkOptions to_queue() const {
    RabbitmqSinkOptions wanted = options();
    wanted.queue = name_;
    return wanted;
  }
  static std::vector<Event> events(std::size_t count, const std::string& type = "T", std::size_t size = 10) {
    std::vector<Event> all;
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(Event::builder(EventType(type)).ordering_key("k").bytes(std::string(size, 'x')).build());
    }
    return all;
  }
  static PublishResult send(Sink& sink, const std::vector<Event>& events) {
    std::vector<SinkMessage> messages;
    for (const Event& event : events) {
      messages.push_back({.event = &event, .topic = "orders", .key = event.ordering_key()});
    }
    return sink.send(messages);
  }
  /// Different ones, in the order of their first arrival.
  static std::vector<std::string> ids(const std::vector<Received>& all) {
    std::vector<std::string> list;
    std::set<std::string> seen;
    for (const Received& one : all) {
      if (seen.insert(one.headers.at("message_id")).second) list.push_back(one.headers.at("message_id"));
    }
    return list;
  }
  static std::vector<std::string> ids(const std::vector<Event>& all) {
    std::vector<std::string> list;
    for (const Event& event : all) list.push_back(event.id().str());
    return list;
  }

  RabbitmqServer& server_ = RabbitmqServer::shared();
  RabbitmqClient client_{server_.port()};
  std::string name_;
};

TEST_F(RabbitmqSinkTest, MakesAQueueThatLasts) {
  const std::vector<Event> all = events(3);
  ASSERT_EQ(send(*rabbitmq_sink(to_queue()), all).kind(), Kind::all);
  EXPECT_NO_THROW(client_.declare_queue(name_)) << "durable, or it would be refused";
  const std::vector<Received> taken = client_.take_all(name_);
  EXPECT_EQ(ids(taken), ids(all)) << "the event's id is the message's";
  ASSERT_EQ(taken.size(), 3U);
  EXPECT_EQ(taken[0].headers.at("delivery_mode"), "2") << "persistent";
}

TEST_F(RabbitmqSinkTest, AQueueThatIsThereStaysAsItIs) {
  client_.declare_queue(name_, {{"x-queue-type", "quorum"}});
  const std::vector<Event> all = events(2'500);
  ASSERT_EQ(send(*rabbitmq_sink(to_queue()), all).kind(), Kind::all);
  EXPECT_EQ(ids(client_.take_all(name_)), ids(all));
}

TEST_F(RabbitmqSinkTest, RoutesByTopicTypeAndKey) {
  client_.declare_exchange(name_, "topic");
  client_.declare_queue(name_);
  client_.bind(name_, name_, "v1.orders.*.k.#");
  RabbitmqSinkOptions wanted = options();
  wanted.exchange = name_;
  wanted.routing_key = "v1.{topic}.{type}.{key}.end";
  ASSERT_EQ(send(*rabbitmq_sink(wanted), events(1, "OrderPlaced")).kind(), Kind::all);
  const std::vector<Received> taken = client_.take_all(name_);
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].headers.at("routing_key"), "v1.orders.OrderPlaced.k.end");
}

TEST_F(RabbitmqSinkTest, WhatFindsNoQueueIsNotSent) {
  client_.declare_exchange(name_, "direct");
  client_.declare_queue(name_);
  client_.bind(name_, name_, "Known");
  RabbitmqSinkOptions wanted = options();
  wanted.exchange = name_;
  const auto sink = rabbitmq_sink(wanted);
  std::vector<Event> all = events(3, "Known");
  all.push_back(events(1, "Unknown", 300'000).front());  // comes back in several frames
  for (const Event& event : events(3, "Known")) all.push_back(event);
  const PublishResult result = send(*sink, all);
  EXPECT_EQ(result.kind(), Kind::unavailable) << "a matter of configuration, not of the event";
  EXPECT_EQ(result.count(7), 3U);
  EXPECT_THAT(result.reason(),
              AllOf(HasSubstr("no queue"), HasSubstr("NO_ROUTE"), HasSubstr("bind a queue")));
  client_.bind(name_, name_, "Unknown");
  all.erase(all.begin(), all.begin() + 3);
  EXPECT_EQ(send(*sink, all).kind(), Kind::all);
}

TEST_F(RabbitmqSinkTest, WithAPipelineOfOneNothingGoesPastARefusedMessage) {
  client_.declare_exchange(name_, "direct");
  client_.declare_queue(name_);
  client_.bind(name_, name_, "Known");
  RabbitmqSinkOptions wanted = options();
  wanted.exchange = name_;
  wanted.pipeline = 1;
  std::vector<Event> all = events(3, "Known");
  all.push_back(events(1, "Unknown").front());
  all.push_back(events(1, "Known").front());
  EXPECT_EQ(send(*rabbitmq_sink(wanted), all).count(5), 3U);
  EXPECT_EQ(client_.take_all(name_).size(), 3U);
}

TEST_F(RabbitmqSinkTest, NothingPassesARefusedMessageOfItsKey) {
  client_.declare_exchange(name_, "direct");
  client_.declare_queue(name_);
  client_.bind(name_, name_, "Known");
  RabbitmqSinkOptions wanted = options();
  wanted.exchange = name_;
  const auto sink = rabbitmq_sink(wanted);
  ASSERT_EQ(send(*sink, events(1, "Known")).kind(), Kind::all) << "from now on many may be on their way";
  std::vector<Event> all = events(3, "Known");
  all.push_back(events(1, "Unknown").front());
  for (const Event& event : events(5, "Known")) all.push_back(event);
  EXPECT_EQ(send(*sink, all).count(9), 3U);
  EXPECT_EQ(client_.take_all(name_).size(), 4U);
}

TEST_F(RabbitmqSinkTest, WithoutOrderWhenFullOthersOfItsKeyPassARefusedMessage) {
  client_.declare_exchange(name_, "direct");
  client_.declare_queue(name_);
  client_.bind(name_, name_, "Known");
  RabbitmqSinkOptions wanted = options();
  wanted.exchange = name_;
  wanted.order_when_full = false;
  const auto sink = rabbitmq_sink(wanted);
  ASSERT_EQ(send(*sink, events(1, "Known")).kind(), Kind::all) << "from now on many may be on their way";
  ASSERT_EQ(client_.take_all(name_).size(), 1U);
  std::vector<Event> all = events(3, "Known");
  all.push_back(events(1, "Unknown").front());
  for (const Event& event : events(5, "Known")) all.push_back(event);
  EXPECT_EQ(send(*sink, all).count(9), 3U) << "what is sure is a prefix all the same";
  all.erase(all.begin() + 3);
  EXPECT_EQ(ids(client_.take_all(name_)), ids(all)) << "in their order, without waiting for each other";
}

TEST_F(RabbitmqSinkTest, AFullQueueIsUnavailableUntilThereIsRoom) {
  client_.declare_queue(
      name_, {{"x-queue-type", "classic"}, {"x-max-length", "5"}, {"x-overflow", "reject-publish"}});
  const auto sink = rabbitmq_sink(to_queue());
  const std::vector<Event> all = events(20);
  const PublishResult result = send(*sink, all);
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), HasSubstr("full"));
  const std::size_t first = result.count(20);
  EXPECT_LT(first, 20U);
  std::vector<Received> taken = client_.take_all(name_);
  EXPECT_EQ(ids(taken), [&] {
    std::vector<std::string> some = ids(all);
    some.resize(first);
    return some;
  }());
  EXPECT_EQ(send(*sink, {all.begin() + static_cast<std::ptrdiff_t>(first),
                         all.begin() + static_cast<std::ptrdiff_t>(first) + 3})
                .kind(),
            Kind::all);
}

TEST_F(RabbitmqSinkTest, AnExchangeThatIsNotThereIsNamed) {
  RabbitmqSinkOptions wanted = options();
  wanted.exchange = name_;
  const auto sink = rabbitmq_sink(wanted);
  const PublishResult result = send(*sink, events(1));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), AllOf(HasSubstr("404"), HasSubstr(name_)));
  client_.declare_exchange(name_, "fanout");
  client_.declare_queue(name_);
  client_.bind(name_, name_, "");
  EXPECT_EQ(send(*sink, events(1)).kind(), Kind::all);
}

TEST_F(RabbitmqSinkTest, AWrongPasswordIsNotShown) {
  RabbitmqSinkOptions wanted = to_queue();
  wanted.password = "wr0ng-s3cret";
  const PublishResult result = send(*rabbitmq_sink(wanted), events(1));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), AllOf(HasSubstr("ACCESS_REFUSED"), Not(HasSubstr("wr0ng"))));
}

TEST_F(RabbitmqSinkTest, TlsIsVerified) {
  RabbitmqSinkOptions wanted = to_queue();
  wanted.url = "amqps://localhost:" + std::to_string(server_.tls_port());
  const PublishResult unknown = send(*rabbitmq_sink(wanted), events(1));
  EXPECT_EQ(unknown.kind(), Kind::unavailable);
  EXPECT_THAT(unknown.reason(), HasSubstr("ca_file"));
  wanted.ca_file = server_.ca_file();
  const std::vector<Event> all = events(200, "T", 20'000);
  const PublishResult result = send(*rabbitmq_sink(wanted), all);
  EXPECT_EQ(result.kind(), Kind::all) << result.reason();
  EXPECT_EQ(ids(client_.take_all(name_)), ids(all));
  wanted.url = "amqps://127.0.0.1:" + std::to_string(server_.tls_port());
  EXPECT_EQ(send(*rabbitmq_sink(wanted), events(1)).kind(), Kind::unavailable) << "of another name";
  wanted.verify_tls = false;
  EXPECT_EQ(send(*rabbitmq_sink(wanted), events(1)).kind(), Kind::all);
}

TEST_F(RabbitmqSinkTest, RefusesWhatNoBrokerCanTake) {
  const auto sink = rabbitmq_sink(to_queue());
  std::vector<Event> all = events(2);
  auto builder = Event::builder("T");
  for (int i = 0; i < 40; ++i) builder.header("x-" + std::to_string(i), std::string(4'000, 'x'));
  all.push_back(builder.json("{}").build());
  all.push_back(events(1).front());
  const PublishResult result = send(*sink, all);
  EXPECT_EQ(result.kind(), Kind::refused);
  EXPECT_EQ(result.count(4), 2U);
  EXPECT_THAT(result.reason(), HasSubstr("headers"));
  EXPECT_EQ(send(*sink, {all[3]}).kind(), Kind::all) << "over the same connection";

  RabbitmqSinkOptions wanted = options();
  wanted.routing_key = std::string(200, 'x') + "{key}";
  const Event event = Event::builder("T").ordering_key(std::string(100, 'k')).json("{}").build();
  EXPECT_THAT(send(*rabbitmq_sink(wanted), {event}).reason(), HasSubstr("255 bytes"));
}

TEST_F(RabbitmqSinkTest, FindsTheMessageThatIsTooLargeForTheBroker) {
  client_.declare_queue(name_);
  server_.control({"eval", "application:set_env(rabbit, max_message_size, 1000)."});
  const auto sink = rabbitmq_sink(to_queue());
  std::vector<Event> all = events(5);
  all.push_back(events(1, "T", 2'000).front());
  for (const Event& event : events(3)) all.push_back(event);
  std::span<const Event> rest = all;
  std::size_t refused = 0;
  for (int attempt = 0; attempt < 5 && refused == 0; ++attempt) {
    const PublishResult result = send(*sink, {rest.begin(), rest.end()});
    rest = rest.subspan(result.count(rest.size()));
    if (result.kind() == Kind::refused) refused = all.size() - rest.size();
  }
  EXPECT_EQ(refused, 5U) << "the sixth, and nobody else";
  EXPECT_EQ(send(*sink, {rest.begin() + 1, rest.end()}).kind(), Kind::all);
  server_.control({"eval", "application:set_env(rabbit, max_message_size, 134217728)."});
}

TEST_F(RabbitmqSinkTest, ABrokerWithoutMemoryIsUnavailableAndSaysWhy) {
  RabbitmqSinkOptions wanted = to_queue();
  wanted.timeout = 1s;
  const auto sink = rabbitmq_sink(wanted);
  const std::vector<Event> before = events(2);
  const std::vector<Event> all = events(300, "T", 50'000);  // more than the sockets hold
  ASSERT_EQ(send(*sink, before).kind(), Kind::all);
  server_.control({"set_vm_memory_high_watermark", "0.0001"});
  std::span<const Event> rest = all;
  std::string why;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto begin = std::chrono::steady_clock::now();
    const PublishResult result = send(*sink, {rest.begin(), rest.end()});
    EXPECT_EQ(result.kind(), Kind::unavailable);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s) << "although it reads nothing";
    rest = rest.subspan(result.count(rest.size()));
    why = result.reason();
  }
  EXPECT_THAT(why, AllOf(HasSubstr("low on memory"), HasSubstr("Hint")));
  server_.control({"set_vm_memory_high_watermark", "0.4"});
  while (!rest.empty()) {
    rest = rest.subspan(send(*sink, {rest.begin(), rest.end()}).count(rest.size()));
  }
  std::vector<std::string> expected = ids(before);
  for (const std::string& id : ids(all)) expected.push_back(id);
  EXPECT_EQ(ids(client_.take_all(name_)), expected) << "in order, nothing lost";
}

TEST_F(RabbitmqSinkTest, CloseEndsAPublishThatTheBrokerDoesNotRead) {
  RabbitmqSinkOptions wanted = to_queue();
  wanted.timeout = 10min;
  const auto sink = rabbitmq_sink(wanted);
  ASSERT_EQ(send(*sink, events(1)).kind(), Kind::all);
  server_.freeze();
  const std::vector<Event> many = events(100, "T", 1'000'000);
  std::atomic<bool> begun = false;
  std::jthread sender([&] {
    begun = true;
    EXPECT_EQ(send(*sink, many).kind(), Kind::unavailable);
  });
  while (!begun) std::this_thread::yield();
  sink->close();  // in the call or just before it: close ends both
  const auto begin = std::chrono::steady_clock::now();
  sender.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  server_.thaw();
}

TEST_F(RabbitmqSinkTest, AFrozenBrokerThatDoesNotReadIsUnavailableInTime) {
  RabbitmqSinkOptions wanted = to_queue();
  wanted.timeout = 500ms;
  const auto sink = rabbitmq_sink(wanted);
  ASSERT_EQ(send(*sink, events(1)).kind(), Kind::all);
  server_.freeze();
  const std::vector<Event> many = events(60, "T", 1'000'000);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(send(*sink, many).kind(), Kind::unavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  server_.thaw();
}

TEST_F(RabbitmqSinkTest, RefusesOptionsThatMakeNoSense) {
  const auto refused = [](RabbitmqSinkOptions wanted) -> std::string {
    try {
      (void)rabbitmq_sink(std::move(wanted));
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  };
  for (const char* const url :
       {"", "localhost", "http://localhost", "amqp://", "amqp:///vhost", "amqp://host?x=1"}) {
    EXPECT_THAT(refused({.url = url}), HasSubstr("RabbitmqSinkOptions::url")) << url;
  }
  EXPECT_THAT(refused({.url = "amqp://user:passw0rd@host"}),
              AllOf(HasSubstr("url"), Not(HasSubstr("passw0rd"))));
  EXPECT_THAT(refused({.password = std::string(5'000, 'p')}),
              AllOf(HasSubstr("password"), Not(HasSubstr("ppp"))));
  EXPECT_THAT(refused({.queue = std::string(256, 'q')}), HasSubstr("queue"));
  EXPECT_THAT(refused({.queue = "q", .exchange = "e"}), HasSubstr("one of them"));
  for (const char* const key : {"{tenant}", "a.{type", "a}b", "{}"}) {
    EXPECT_THAT(refused({.routing_key = key}), HasSubstr("{topic}, {type} and {key}")) << key;
  }
  EXPECT_THAT(refused({.pipeline = 0}), HasSubstr("pipeline"));
  EXPECT_THAT(refused({.timeout = 0s}), HasSubstr("timeout"));
  EXPECT_THAT(refused({.ca_file = "/does/not/exist"}), HasSubstr("ca_file"));
  EXPECT_THAT(refused({.cert_file = "/etc/hostname"}), HasSubstr("key_file"));
  EXPECT_EQ(refused({}), "taken");
}

}  // namespace
}  // namespace postrider::test
