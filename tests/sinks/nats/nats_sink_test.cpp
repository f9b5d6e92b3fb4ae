// SPDX-License-Identifier: Apache-2.0
// What only NATS has.
#include "postrider/nats_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/error.hpp"
#include "sinks/nats/nats_server.hpp"
#include "sinks/sink_fixture.hpp"

namespace postrider::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Kind = PublishResult::Kind;
using Clock = std::chrono::steady_clock;

class NatsSinkTest : public ::testing::Test {
 protected:
  static NatsSinkOptions options(const NatsServer& server) {
    return {.url = server.url(),
            .timeout = 5s,
            .limits = {.breaker_threshold = 0, .log = [](LogLevel, std::string_view) {}}};
  }
  static std::vector<SinkMessage> messages(const std::vector<Event>& events, std::string_view topic = {}) {
    std::vector<SinkMessage> all;
    for (const Event& event : events) {
      all.push_back({.event = &event, .topic = topic, .key = event.ordering_key()});
    }
    return all;
  }
  static PublishResult send(Sink& sink, const std::vector<Event>& events, std::string_view topic = {}) {
    return sink.send(messages(events, topic));
  }
  static PublishResult send_one(Sink& sink) { return send(sink, {Event::json("T", "{}")}); }
  static Event keyed(const std::string& key, std::string payload) {
    return Event::builder("T").ordering_key(key).bytes(std::move(payload)).build();
  }
  static std::vector<std::string> bodies(NatsServer& server) {
    std::vector<std::string> texts;
    for (const Received& one : server.messages_of("postrider")) texts.push_back(one.body);
    return texts;
  }
};

TEST_F(NatsSinkTest, AFullStreamKeepsTheOrderAndGoesOnWhenThereIsRoom) {
  NatsServer server;
  server.add_stream([](jsStreamConfig& config) {
    config.MaxBytes = 1'000'000;
    config.Discard = js_DiscardNew;
  });
  // Large and small in turn: where a large one finds no room, a small one behind it does.
  std::vector<Event> events;
  std::vector<std::string> expected;
  for (int i = 0; i < 100; ++i) {
    expected.push_back(std::to_string(i) + std::string(i % 2 == 0 ? 50'000 : 10, 'x'));
    events.push_back(keyed("k", expected.back()));
  }
  const auto sink = nats_sink(options(server));
  const std::vector<SinkMessage> all = messages(events);
  const PublishResult full = sink->send(all);
  ASSERT_EQ(full.kind(), Kind::unavailable);
  EXPECT_THAT(full.reason(), AllOf(HasSubstr("the stream is full"), HasSubstr("Hint")));
  const std::size_t taken = full.count(all.size());
  EXPECT_GT(taken, 10U);
  EXPECT_LT(taken, 50U);
  EXPECT_EQ(bodies(server).size(), taken) << "nothing behind the one that found no room";
  server.update_stream([](jsStreamConfig& config) { config.MaxBytes = -1; });
  ASSERT_EQ(sink->send(std::span(all).subspan(taken)).kind(), Kind::all);
  EXPECT_EQ(bodies(server), expected) << "each once, and in order";
}

TEST_F(NatsSinkTest, WhatIsTooLargeForTheServerIsRefusedBehindThoseBeforeIt) {
  NatsServer server({.config = "max_payload: 20000"});
  NatsSinkOptions some = options(server);
  some.create_stream = true;
  const auto sink = nats_sink(some);
  // Of one key and of several: the refused one overtakes nobody.
  for (const std::string key : {"", "k"}) {
    std::vector<Event> events;
    for (int i = 0; i < 5; ++i) events.push_back(keyed(key, std::string(i == 3 ? 30'000 : 10, 'x')));
    const PublishResult result = send(*sink, events);
    ASSERT_EQ(result.kind(), Kind::refused) << result.reason();
    EXPECT_EQ(result.count(5), 3U);
    EXPECT_THAT(result.reason(), HasSubstr("max_payload"));
    EXPECT_EQ(send(*sink, {events[4]}).kind(), Kind::all);
  }
}

TEST_F(NatsSinkTest, WhatIsTooLargeForTheStreamIsRefused) {
  NatsServer server;
  server.add_stream([](jsStreamConfig& config) { config.MaxMsgSize = 2'000; });
  const auto sink = nats_sink(options(server));
  const PublishResult result =
      send(*sink, {keyed("k", "1"), keyed("k", std::string(5'000, 'x')), keyed("k", "3")});
  ASSERT_EQ(result.kind(), Kind::refused) << result.reason();
  EXPECT_EQ(result.count(3), 1U);
  EXPECT_THAT(bodies(server), ElementsAre("1"));
}

TEST_F(NatsSinkTest, MoreHeadersThanTheServerTakesAreRefused) {
  NatsServer server;
  NatsSinkOptions some = options(server);
  some.create_stream = true;
  auto builder = Event::builder("T");
  for (int i = 0; i < 30; ++i) builder.header("h" + std::to_string(i), std::string(4'000, 'x'));
  const auto sink = nats_sink(some);
  const PublishResult result = send(*sink, {builder.json("{}").build()});
  EXPECT_EQ(result.kind(), Kind::refused) << result.reason();
  EXPECT_EQ(send_one(*sink).kind(), Kind::all);
}

TEST_F(NatsSinkTest, TheStreamDropsRepeats) {
  NatsServer server;
  NatsSinkOptions some = options(server);
  some.create_stream = true;
  const std::vector<Event> events{keyed("k", "1"), keyed("k", "2")};
  const auto sink = nats_sink(some);
  ASSERT_EQ(send(*sink, events).kind(), Kind::all);
  ASSERT_EQ(send(*sink, events).kind(), Kind::all) << "what is there already is safe";
  ASSERT_EQ(send(*nats_sink(some), events).kind(), Kind::all);
  EXPECT_THAT(bodies(server), ElementsAre("1", "2"));
  const Received first = server.messages_of("postrider").front();
  EXPECT_THAT(first.headers.at("Nats-Msg-Id"), StartsWith(events.front().id().str() + "-"));
  EXPECT_EQ(first.attributes.at("id"), events.front().id().str()) << "consumers see the event's own";
}

TEST_F(NatsSinkTest, WhatAnotherLeaderRepeatsIsDroppedInEitherMode) {
  for (const CloudEventsMode mode : {CloudEventsMode::binary, CloudEventsMode::structured}) {
    NatsServer server;
    NatsSinkOptions some = options(server);
    some.create_stream = true;
    some.cloud_events.mode = mode;
    const StoredEvent stored({.position = Position{7}, .event = Event::json("T", "{}")});
    for (const Epoch epoch : {Epoch{1}, Epoch{2}}) {
      const SinkMessage message{
          .event = &stored.event(), .stored = &stored, .topic = "orders", .epoch = epoch};
      ASSERT_EQ(nats_sink(some)->send({&message, 1}).kind(), Kind::all);
    }
    EXPECT_EQ(server.messages_of("postrider").size(), 1U);
  }
}

TEST_F(NatsSinkTest, AnEventOfTwoTopicsIsOnBothSubjects) {
  NatsServer server;
  NatsSinkOptions some = options(server);
  some.create_stream = true;
  const std::vector<Event> events{keyed("k", "1"), keyed("k", "2")};
  const auto sink = nats_sink(some);
  ASSERT_EQ(send(*sink, events, "orders").kind(), Kind::all);
  ASSERT_EQ(send(*sink, events, "audit").kind(), Kind::all);
  EXPECT_THAT(server.subjects_of("postrider"),
              ElementsAre("postrider.orders", "postrider.orders", "postrider.audit", "postrider.audit"));
}

TEST_F(NatsSinkTest, TwoTopicsOnOneSubjectLoseNothing) {
  NatsServer server;
  server.add_stream([](jsStreamConfig&) {});
  NatsSinkOptions some = options(server);
  some.subject = "postrider.all";
  const std::vector<Event> events{keyed("k", "1")};
  const auto sink = nats_sink(some);
  for (const char* topic : {"orders", "audit", "orders"}) {
    ASSERT_EQ(send(*sink, events, topic).kind(), Kind::all);
  }
  EXPECT_THAT(bodies(server), ElementsAre("1", "1")) << "one of each; the last is a repeat";
}

TEST_F(NatsSinkTest, TwoSinksOfOneStreamBothSendAnEvent) {
  NatsServer server;
  server.add_stream([](jsStreamConfig&) {});
  NatsSinkOptions one = options(server);
  one.subject = "postrider.billing";
  NatsSinkOptions other = options(server);
  other.subject = "postrider.shipping";
  const std::vector<Event> events{keyed("k", "1")};
  ASSERT_EQ(send(*nats_sink(one), events).kind(), Kind::all);
  ASSERT_EQ(send(*nats_sink(other), events).kind(), Kind::all);
  EXPECT_THAT(server.subjects_of("postrider"), ElementsAre("postrider.billing", "postrider.shipping"));
}

TEST_F(NatsSinkTest, AnEventThatWasMendedAndReplayedArrives) {
  NatsServer server;
  NatsSinkOptions some = options(server);
  some.create_stream = true;
  const auto sink = nats_sink(some);
  const EventId id = Event::json("T", "{}").id();
  const auto with = [&](std::string payload, std::string header) {
    return Event::builder("T").id(id).header("h", std::move(header)).bytes(std::move(payload)).build();
  };
  for (const Event& event :
       {with("WRONG", "1"), with("RIGHT", "1"), with("RIGHT", "2"), with("RIGHT", "2")}) {
    ASSERT_EQ(send(*sink, {event}).kind(), Kind::all);
  }
  EXPECT_THAT(bodies(server), ElementsAre("WRONG", "RIGHT", "RIGHT"));
}

TEST_F(NatsSinkTest, SubjectsAreNamedByTopicAndType) {
  NatsServer server;
  NatsSinkOptions some = options(server);
  some.subject = "shop.{topic}.t-{type}";
  some.stream = "shop";
  some.create_stream = true;
  const auto sink = nats_sink(some);
  ASSERT_EQ(send(*sink, {Event::json("order.placed", "1")}, "all orders>*").kind(), Kind::all);
  ASSERT_EQ(send(*sink, {Event::json("grün", "2")}).kind(), Kind::all);
  EXPECT_THAT(server.subjects_of("shop"),
              ElementsAre("shop.all_orders__.t-order_placed", "shop.outbox.t-grün"));
}

TEST_F(NatsSinkTest, WithoutAStreamItSaysWhatIsMissing) {
  NatsServer server;
  const auto sink = nats_sink(options(server));
  const auto begin = Clock::now();
  const PublishResult result = send_one(*sink);
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), AllOf(HasSubstr("no stream takes the subject"), HasSubstr("create_stream"),
                                     HasSubstr("postrider.*")));
  EXPECT_LT(Clock::now() - begin, 3s) << "at once, not after the timeout";
  server.add_stream([](jsStreamConfig&) {});
  EXPECT_EQ(send_one(*sink).kind(), Kind::all);
}

TEST_F(NatsSinkTest, ASubjectThatNoStreamTakesHoldsUpNobodyBeforeIt) {
  NatsServer server;
  server.add_stream([](jsStreamConfig& config) {
    static const char* subject = "postrider.A";
    config.Subjects = &subject;
  });
  NatsSinkOptions some = options(server);
  some.subject = "postrider.{type}";
  const PublishResult result = send(*nats_sink(some), {Event::json("A", "1"), Event::json("A", "2"),
                                                       Event::json("B", "3"), Event::json("A", "4")});
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_EQ(result.count(4), 2U) << "or they would come again and again";
}

TEST_F(NatsSinkTest, AnotherStreamThanTheNamedOneIsAMistake) {
  NatsServer server;
  server.add_stream([](jsStreamConfig& config) { config.Name = "other"; });
  const PublishResult result = send_one(*nats_sink(options(server)));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), AllOf(HasSubstr("'other' has taken it"), HasSubstr("Hint")));
}

TEST_F(NatsSinkTest, AServerWithoutJetStreamSaysSo) {
  NatsServer server({.jetstream = false});
  NatsSinkOptions some = options(server);
  some.create_stream = true;
  const PublishResult result = send_one(*nats_sink(some));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), HasSubstr("no JetStream"));
}

TEST_F(NatsSinkTest, OtherWritersDoNotDisturb) {
  NatsServer server;
  server.add_stream([](jsStreamConfig&) {});
  const auto sink = nats_sink(options(server));
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(send(*sink, {keyed("k", std::to_string(i)), keyed("k", "then")}).kind(), Kind::all);
    server.publish("postrider.somebody", "else");
  }
  EXPECT_EQ(server.messages_of("postrider").size(), 60U);
}

TEST_F(NatsSinkTest, LogsInWithUserAndPassword) {
  NatsServer server({.config = R"(
    authorization { users: [
      { user: "admin", password: "s3cret-admin" },
      { user: "rider", password: "s3cret-rider",
        permissions: { publish: ["postrider.>"], subscribe: ["_INBOX.>"] } } ] })",
                     .admin = "admin:s3cret-admin@"});
  server.add_stream([](jsStreamConfig&) {});
  const auto with = [&](const std::string& user, const std::string& password) {
    NatsSinkOptions some = options(server);
    some.username = user;
    some.password = password;
    return send_one(*nats_sink(some));
  };
  const PublishResult rider = with("rider", "s3cret-rider");
  EXPECT_EQ(rider.kind(), Kind::all) << "these rights are all it needs: " << rider.reason();
  for (const PublishResult& result : {with("rider", "s3cret-wrong"), with("", "")}) {
    EXPECT_EQ(result.kind(), Kind::unavailable);
    EXPECT_THAT(result.reason(), AllOf(HasSubstr("refuses the login"), Not(HasSubstr("s3cret"))));
  }
  NatsSinkOptions by_url = options(server);
  by_url.url = "nats://rider:s3cret%2Drider@127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(send_one(*nats_sink(by_url)).kind(), Kind::all);
  by_url.subject = "forbidden.{topic}";
  const auto begin = Clock::now();
  const PublishResult forbidden = send_one(*nats_sink(by_url));
  EXPECT_EQ(forbidden.kind(), Kind::unavailable);
  EXPECT_THAT(forbidden.reason(), AllOf(HasSubstr("may not publish"), Not(HasSubstr("s3cret"))));
  EXPECT_LT(Clock::now() - begin, 3s) << "before the timeout";
}

TEST_F(NatsSinkTest, LogsInWithAToken) {
  NatsServer server({.config = R"(authorization { token: "s3cret" })", .admin = "s3cret@"});
  server.add_stream([](jsStreamConfig&) {});
  NatsSinkOptions some = options(server);
  some.token = "s3cret";
  EXPECT_EQ(send_one(*nats_sink(some)).kind(), Kind::all);
  some.token = "s3cret-wrong";
  const PublishResult wrong = send_one(*nats_sink(some));
  EXPECT_THAT(wrong.reason(), AllOf(HasSubstr("refuses the login"), Not(HasSubstr("s3cret"))));
  some.token = "";
  some.url = "nats://s3cret@127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(send_one(*nats_sink(some)).kind(), Kind::all);
}

TEST_F(NatsSinkTest, CredentialsThatAreNotThereAreNamed) {
  NatsServer server;
  NatsSinkOptions some = options(server);
  some.credentials_file = "/nowhere/rider.creds";
  const PublishResult result = send_one(*nats_sink(some));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_FALSE(result.reason().empty());
}

TEST_F(NatsSinkTest, SpeaksTlsWithServersThatSomebodyVouchesFor) {
  const TempDir folder;
  const std::string cert = folder.file("cert.pem");
  const std::string key = folder.file("key.pem");
  ChildProcess openssl({"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-subj",
                        "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"});
  ASSERT_TRUE(openssl.wait()->ok());
  NatsServer server(
      {.config = "tls { cert_file: \"" + cert + "\", key_file: \"" + key + "\" }", .admin_tls = true});
  server.add_stream([](jsStreamConfig&) {});
  const std::string port = std::to_string(server.port());
  const auto with = [&](const std::string& url, const std::string& authority) {
    NatsSinkOptions some = options(server);
    some.url = url;
    some.tls = true;
    some.tls_ca = authority;
    return send_one(*nats_sink(some));
  };
  const PublishResult trusted = with("tls://localhost:" + port, cert);
  EXPECT_EQ(trusted.kind(), Kind::all) << trusted.reason();
  EXPECT_EQ(with("nats://localhost:" + port, cert).kind(), Kind::all);
  EXPECT_THAT(with("tls://localhost:" + port, "").reason(), HasSubstr("not trusted"));
  EXPECT_THAT(with("tls://127.0.0.1:" + port, cert).reason(), HasSubstr("not for this host"));
  EXPECT_THAT(with("tls://localhost:" + port, "/nowhere/ca.pem").reason(), HasSubstr("tls_ca"));
  NatsSinkOptions plain = options(server);
  EXPECT_EQ(send_one(*nats_sink(plain)).kind(), Kind::unavailable)
      << "what the server asks for is not enough";
}

TEST_F(NatsSinkTest, TakesTheServerThatIsThere) {
  NatsServer away;
  away.kill();
  NatsServer server;
  NatsSinkOptions some = options(server);
  some.url = away.url() + "," + server.url();
  some.create_stream = true;
  EXPECT_EQ(send_one(*nats_sink(some)).kind(), Kind::all);
}

TEST_F(NatsSinkTest, RefusesOptionsThatMakeNoSense) {
  const auto refuses = [](auto&& change) {
    NatsSinkOptions some;
    change(some);
    EXPECT_THROW((void)nats_sink(some), Error);
  };
  EXPECT_NE(nats_sink({}), nullptr);
  refuses([](NatsSinkOptions& o) { o.name = ""; });
  refuses([](NatsSinkOptions& o) { o.url = "redis://host"; });
  refuses([](NatsSinkOptions& o) { o.stream = "a.b"; });
  refuses([](NatsSinkOptions& o) { o.stream = ""; });
  refuses([](NatsSinkOptions& o) { o.subject = "a.>"; });
  refuses([](NatsSinkOptions& o) { o.subject = "{topic}.a"; });
  refuses([](NatsSinkOptions& o) { o.subject = "a.{tpic}"; });
  refuses([](NatsSinkOptions& o) { o.replicas = 0; });
  refuses([](NatsSinkOptions& o) { o.duplicates = 1ms; });
  refuses([](NatsSinkOptions& o) { o.timeout = 0s; });
  refuses([](NatsSinkOptions& o) { o.connect_timeout = 2min; });
  refuses([](NatsSinkOptions& o) { o.tls_ca = "ca.pem"; });
  refuses([](NatsSinkOptions& o) { o.tls = true, o.tls_cert = "cert.pem"; });
  refuses([](NatsSinkOptions& o) { o.cloud_events.source = ""; });
  refuses([](NatsSinkOptions& o) { o.limits.batch = 0; });
  try {
    (void)nats_sink({.password = "s3cret" + std::string(5'000, 'x')});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), Not(HasSubstr("s3cret")));
  }
}

}  // namespace
}  // namespace postrider::test
