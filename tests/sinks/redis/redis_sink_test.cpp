// SPDX-License-Identifier: Apache-2.0
// What only Redis has.
#include "postrider/redis_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "postrider/error.hpp"
#include "sinks/redis/redis_entries.hpp"
#include "sinks/sink_fixture.hpp"

namespace postrider::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = PublishResult::Kind;

class RedisSinkTest : public ::testing::Test {
 protected:
  RedisSinkOptions options(RedisServer& server) const {
    return {.url = server.url(),
            .stream = "events",
            .timeout = 5s,
            .limits = {.breaker_threshold = 0, .log = [](LogLevel, std::string_view) {}}};
  }
  static PublishResult send(Sink& sink, const std::vector<Event>& events, std::string_view topic = {}) {
    std::vector<SinkMessage> all;
    for (const Event& event : events) all.push_back({.event = &event, .topic = topic});
    return sink.send(all);
  }
  static PublishResult send_one(Sink& sink) { return send(sink, {Event::json("T", "{}")}); }
  static std::vector<Event> of_size(std::size_t count, std::size_t bytes) {
    std::vector<Event> events;
    for (std::size_t i = 0; i < count; ++i) {
      std::string payload = std::to_string(i) + " ";
      payload.resize(bytes, static_cast<char>('a' + i % 26));
      events.push_back(Event::bytes("T", std::move(payload)));
    }
    return events;
  }
  static std::vector<std::string> bodies(const std::vector<Received>& all) {
    std::vector<std::string> texts;
    for (const Received& one : all) texts.push_back(one.body);
    return texts;
  }
  static std::vector<std::string> payloads(const std::vector<Event>& events) {
    std::vector<std::string> texts;
    for (const Event& event : events) texts.emplace_back(event.payload());
    return texts;
  }
};

TEST_F(RedisSinkTest, AFullServerTakesNothingOfATransactionAndGoesOnWhenThereIsRoom) {
  RedisServer server;
  const auto sink = redis_sink(options(server));
  ASSERT_EQ(send_one(*sink).kind(), Kind::all);
  server.ask({"DEL", "events"});
  const std::string info = server.ask({"INFO", "memory"})->str;
  const std::size_t used = std::stoul(info.substr(info.find("used_memory:") + 12));
  server.ask({"CONFIG", "SET", "maxmemory", std::to_string(used + 6'000'000)});
  // Large and small in turn: where a large one finds no room, a small one behind it would.
  std::vector<Event> events;
  for (int i = 0; i < 400; ++i) {
    events.push_back(Event::bytes("T", std::to_string(i) + std::string(i % 2 == 0 ? 50'000 : 10, 'x')));
  }
  std::vector<SinkMessage> all;
  for (const Event& event : events) all.push_back({.event = &event});
  const PublishResult full = sink->send(all);
  ASSERT_EQ(full.kind(), Kind::unavailable);
  EXPECT_THAT(full.reason(), AllOf(HasSubstr("the server is full"), HasSubstr("maxmemory")));
  const std::size_t taken = full.count(all.size());
  EXPECT_GT(taken, 0U);
  EXPECT_LT(taken, all.size());
  server.ask({"CONFIG", "SET", "maxmemory", "0"});
  EXPECT_EQ(entries_of(server, "events").size(), taken) << "what was not acknowledged is not there";
  ASSERT_EQ(sink->send(std::span(all).subspan(taken)).kind(), Kind::all);
  EXPECT_EQ(bodies(entries_of(server, "events")), payloads(events)) << "each once, and in order";
}

TEST_F(RedisSinkTest, AnEventThatIsTooLargeIsRefusedBehindThoseBeforeIt) {
  RedisServer server({"--proto-max-bulk-len", "1mb"});
  const auto sink = redis_sink([&] {
    RedisSinkOptions structured = options(server);
    structured.cloud_events.mode = CloudEventsMode::structured;  // base64 makes it larger than 1 MiB
    return structured;
  }());
  std::vector<Event> events = of_size(5, 1'000);
  events[2] = Event::bytes("T", std::string(1'000'000, 'x'));
  const PublishResult result = send(*sink, events);
  ASSERT_EQ(result.kind(), Kind::refused) << result.reason();
  EXPECT_EQ(result.count(5), 2U);
  EXPECT_THAT(result.reason(), HasSubstr("proto-max-bulk-len"));
  EXPECT_EQ(entries_of(server, "events").size(), 2U);
  EXPECT_EQ(send(*sink, {events[3], events[4]}).kind(), Kind::all);
  EXPECT_EQ(send(*sink, {events[2]}).count(1), 0U) << "the first of a batch as well";
}

TEST_F(RedisSinkTest, ALargeBatchGoesInPieces) {
  RedisServer server({"--client-query-buffer-limit", "3mb"});
  const std::vector<Event> events = of_size(100, 200'000);
  const PublishResult result = send(*redis_sink(options(server)), events);
  ASSERT_EQ(result.kind(), Kind::all) << result.reason();
  EXPECT_EQ(bodies(entries_of(server, "events")), payloads(events));
}

TEST_F(RedisSinkTest, StreamsAreNamedByTopicAndType) {
  RedisServer server;
  RedisSinkOptions some = options(server);
  some.stream = "shop:{topic}:{type}";
  const auto sink = redis_sink(some);
  ASSERT_EQ(
      send(*sink, {Event::json("A", "1"), Event::json("B", "2"), Event::json("A", "3")}, "orders").kind(),
      Kind::all);
  ASSERT_EQ(send(*sink, {Event::json("A", "4")}).kind(), Kind::all);
  EXPECT_THAT(bodies(entries_of(server, "shop:orders:A")), ::testing::ElementsAre("1", "3"));
  EXPECT_THAT(bodies(entries_of(server, "shop:orders:B")), ::testing::ElementsAre("2"));
  EXPECT_THAT(bodies(entries_of(server, "shop:outbox:A")), ::testing::ElementsAre("4"));
}

TEST_F(RedisSinkTest, CutsOldEntriesWhenAsked) {
  RedisServer server({"--stream-node-max-entries", "10"});
  RedisSinkOptions some = options(server);
  some.max_len = 50;
  ASSERT_EQ(send(*redis_sink(some), of_size(500, 10)).kind(), Kind::all);
  const std::size_t left = entries_of(server, "events").size();
  EXPECT_GE(left, 50U);
  EXPECT_LE(left, 70U) << "about so many";
}

TEST_F(RedisSinkTest, TheIdIsAFieldInBothModes) {
  RedisServer server;
  const Event event = Event::json("T", "{}");
  for (const auto mode : {CloudEventsMode::binary, CloudEventsMode::structured}) {
    RedisSinkOptions some = options(server);
    some.cloud_events.mode = mode;
    ASSERT_EQ(send(*redis_sink(some), {event}).kind(), Kind::all);
  }
  const std::vector<Received> both = entries_of(server, "events");
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].attributes.at("id"), event.id().str());
  EXPECT_EQ(both[1].attributes.at("id"), event.id().str());
}

TEST_F(RedisSinkTest, AKeyOfAnotherTypeIsNoEventsFault) {
  RedisServer server;
  server.ask({"SET", "events", "something else"});
  const auto sink = redis_sink(options(server));
  const PublishResult result = send_one(*sink);
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), AllOf(HasSubstr("no stream"), HasSubstr("Hint: choose another stream")));
  server.ask({"DEL", "events"});
  EXPECT_EQ(send_one(*sink).kind(), Kind::all);
}

TEST_F(RedisSinkTest, LogsInAndNeverTellsThePassword) {
  RedisServer server({"--requirepass", "s3cret-default"});
  server.log_in("default", "s3cret-default");
  server.ask({"ACL", "SETUSER", "rider", "on", ">s3cret-rider", "~events", "+multi", "+exec", "+xadd"});
  const auto with = [&](const std::string& user, const std::string& password) {
    RedisSinkOptions some = options(server);
    some.username = user;
    some.password = password;
    return send_one(*redis_sink(some));
  };
  EXPECT_EQ(with("", "s3cret-default").kind(), Kind::all);
  EXPECT_EQ(with("rider", "s3cret-rider").kind(), Kind::all) << "MULTI, EXEC and XADD are all it needs";
  const PublishResult none = with("", "");
  EXPECT_EQ(none.kind(), Kind::unavailable);
  EXPECT_THAT(none.reason(), HasSubstr("wants a login"));
  const PublishResult wrong = with("rider", "s3cret-wrong");
  EXPECT_EQ(wrong.kind(), Kind::unavailable);
  EXPECT_THAT(wrong.reason(),
              AllOf(HasSubstr("does not know this user or password"), Not(HasSubstr("s3cret"))));

  RedisSinkOptions by_url = options(server);
  by_url.url = "redis://rider:s3cret%2Drider@127.0.0.1:" + std::to_string(server.port());
  EXPECT_EQ(send_one(*redis_sink(by_url)).kind(), Kind::all);
  by_url.stream = "another";
  const PublishResult forbidden = send_one(*redis_sink(by_url));
  EXPECT_EQ(forbidden.kind(), Kind::unavailable);
  EXPECT_THAT(forbidden.reason(),
              AllOf(HasSubstr("not allowed"), HasSubstr("NOPERM"), Not(HasSubstr("s3cret"))));
}

TEST_F(RedisSinkTest, AServerThatRepeatsTheLoginInItsAnswerTellsNothing) {
  RedisServer server({"--rename-command", "AUTH", "NOBODYKNOWS"});
  RedisSinkOptions some = options(server);
  some.password = "s3cret";
  const PublishResult result = send_one(*redis_sink(some));
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), AllOf(HasSubstr("refuses the login"), Not(HasSubstr("s3cret"))));
}

TEST_F(RedisSinkTest, WhoMayNotOpenATransactionWritesNothing) {
  RedisServer server;
  server.ask({"ACL", "SETUSER", "rider", "on", ">pw", "~events", "+exec", "+xadd"});
  RedisSinkOptions some = options(server);
  some.username = "rider";
  some.password = "pw";
  const auto sink = redis_sink(some);
  EXPECT_EQ(send_one(*sink).kind(), Kind::unavailable);
  EXPECT_TRUE(entries_of(server, "events").empty()) << "or each retry would add it again";
}

TEST_F(RedisSinkTest, AReplicaIsUnavailableUntilItIsAMaster) {
  RedisServer master;
  RedisServer replica({"--replicaof", "127.0.0.1 " + std::to_string(master.port())});
  const auto sink = redis_sink(options(replica));
  const PublishResult result = send_one(*sink);
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), HasSubstr("replica"));
  replica.ask({"REPLICAOF", "NO", "ONE"});
  EXPECT_EQ(send_one(*sink).kind(), Kind::all);
  EXPECT_EQ(entries_of(replica, "events").size(), 1U);
}

TEST_F(RedisSinkTest, WaitsForReplicasWhenAsked) {
  RedisServer master({"--repl-diskless-sync-delay", "0"});
  RedisSinkOptions some = options(master);
  some.wait_replicas = 1;
  some.wait_timeout = 50ms;
  const auto sink = redis_sink(some);
  const PublishResult alone = send_one(*sink);
  EXPECT_EQ(alone.kind(), Kind::unavailable);
  EXPECT_EQ(alone.count(1), 0U);
  EXPECT_THAT(alone.reason(), HasSubstr("only 0 of 1 replica confirmed within 50 ms"));
  RedisServer replica({"--replicaof", "127.0.0.1 " + std::to_string(master.port())});
  some.wait_timeout = 5s;
  const auto patient = redis_sink(some);
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (send_one(*patient).kind() != Kind::all && std::chrono::steady_clock::now() < end) {
  }
  const std::size_t before = entries_of(replica, "events").size();
  ASSERT_GE(before, 1U) << "it has come in time";
  ASSERT_EQ(send_one(*patient).kind(), Kind::all);
  EXPECT_EQ(entries_of(replica, "events").size(), before + 1) << "what is acknowledged is on the replica";
}

TEST_F(RedisSinkTest, TakesASocketAndADatabase) {
  RedisServer server;
  RedisSinkOptions some = options(server);
  some.url = "unix://" + server.socket() + "?db=3";
  ASSERT_EQ(send_one(*redis_sink(some)).kind(), Kind::all);
  some.url = server.url() + "/3";
  ASSERT_EQ(send_one(*redis_sink(some)).kind(), Kind::all);
  server.ask({"SELECT", "3"});
  EXPECT_EQ(entries_of(server, "events").size(), 2U);
  some.url = server.url() + "/99";
  EXPECT_THAT(send_one(*redis_sink(some)).reason(), HasSubstr("out of range"));
  some.url = "unix:///nowhere/redis.sock";
  EXPECT_THAT(send_one(*redis_sink(some)).reason(), HasSubstr("No such file"));
}

TEST_F(RedisSinkTest, AConnectionThatWasEndedWhileItRestedIsNobodysProblem) {
  RedisServer server;
  const auto sink = redis_sink(options(server));
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(send_one(*sink).kind(), Kind::all);
    ASSERT_EQ(server.ask({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"})->integer, 1);
  }
  EXPECT_EQ(entries_of(server, "events").size(), 3U) << "and none came twice";
}

TEST_F(RedisSinkTest, AttemptsThatWereCutOffInTheMiddleDoNotSpoilTheNext) {
  RedisServer server;
  RedisSinkOptions some = options(server);
  some.timeout = 100ms;
  const auto sink = redis_sink(some);
  ASSERT_EQ(send_one(*sink).kind(), Kind::all);
  server.ask({"DEL", "events"});
  const std::vector<Event> events = of_size(50, 400'000);
  server.freeze();
  // More than any socket takes, were it one.
  for (int i = 0; i < 15; ++i) ASSERT_EQ(send(*sink, events).kind(), Kind::unavailable);
  server.thaw();
  std::vector<SinkMessage> all;
  for (const Event& event : events) all.push_back({.event = &event});
  std::span<const SinkMessage> rest = all;
  for (int i = 0; i < 1'000 && !rest.empty(); ++i) rest = rest.subspan(sink->send(rest).count(rest.size()));
  ASSERT_TRUE(rest.empty());
  std::vector<std::string> first_arrivals;
  for (const std::string& body : bodies(entries_of(server, "events"))) {
    const bool seen = std::find(first_arrivals.begin(), first_arrivals.end(), body) != first_arrivals.end();
    if (!seen) first_arrivals.push_back(body);
  }
  EXPECT_EQ(first_arrivals, payloads(events));
}

TEST_F(RedisSinkTest, AServerThatMayNotWriteIsWaitedFor) {
  RedisServer server;
  const auto sink = redis_sink(options(server));
  server.ask({"CONFIG", "SET", "min-replicas-to-write", "1"});
  const PublishResult result = send_one(*sink);
  EXPECT_EQ(result.kind(), Kind::unavailable);
  EXPECT_THAT(result.reason(), HasSubstr("too few replicas"));
  server.ask({"CONFIG", "SET", "min-replicas-to-write", "0"});
  EXPECT_EQ(send_one(*sink).kind(), Kind::all);
}

TEST_F(RedisSinkTest, RefusesOptionsThatMakeNoSense) {
  const auto refuses = [](auto&& change) {
    RedisSinkOptions some;
    change(some);
    EXPECT_THROW((void)redis_sink(some), Error);
  };
  EXPECT_NE(redis_sink({}), nullptr);
  refuses([](RedisSinkOptions& o) { o.name = ""; });
  refuses([](RedisSinkOptions& o) { o.stream = ""; });
  refuses([](RedisSinkOptions& o) { o.stream = "{subject}"; });
  refuses([](RedisSinkOptions& o) { o.max_len = 1'000'000'000'001; });
  refuses([](RedisSinkOptions& o) { o.timeout = 0s; });
  refuses([](RedisSinkOptions& o) { o.connect_timeout = 1h; });
  refuses([](RedisSinkOptions& o) { o.wait_replicas = -1; });
  refuses([](RedisSinkOptions& o) { o.wait_replicas = 1, o.wait_timeout = 11s; });
  refuses([](RedisSinkOptions& o) { o.password = std::string(5000, 'x'); });
  refuses([](RedisSinkOptions& o) { o.cloud_events.source = "not a uri"; });
  refuses([](RedisSinkOptions& o) { o.limits.batch = 0; });
}

}  // namespace
}  // namespace postrider::test
