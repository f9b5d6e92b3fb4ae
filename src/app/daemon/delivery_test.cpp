// SPDX-License-Identifier: Apache-2.0
// What a daemon delivers: the outbox's events by routes, the store's by topics; and what sinks that are away
// or hang do to that.
#include <filesystem>

#include "app/daemon/daemon_fixture.hpp"
#include "postrider/event_store.hpp"
#include "support/silent_peer.hpp"

namespace postrider::daemon {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using test::eventually;
using test::HttpAnswer;
using ::testing::HasSubstr;

class DeliveryTest : public DaemonFixture {};

TEST_P(DeliveryTest, RoutesEventsOfTheOutboxToTheirSinks) {
  const auto daemon = make_daemon(config(R"(
[outbox]
poller-interval-ms = 20
[[outbox.routes]]
type = "OrderPlaced"
sink = "out"
[[outbox.routes]]
tenant = "t1"
sink = "other"
[[outbox.routes]]
type = "OrderPlaced"
tenant = "t1"
sink = "out"
)"));
  daemon->start();
  const Event placed = Event::builder("OrderPlaced").json("{}").build();
  const Event both = Event::builder("OrderPlaced").tenant("t1").json("{}").build();
  const Event other = Event::builder("OrderPaid").tenant("t1").json("{}").build();
  const Event nobodys = Event::builder("Unknown").json("{}").build();
  publish({placed, both, other, nobodys});
  OutboxAdmin admin(database_->storage());
  ASSERT_TRUE(eventually([&] {
    const OutboxCounts counts = admin.counts();
    return counts.done == 3 && counts.dead == 1;
  }));
  EXPECT_TRUE(daemon->stop());
  EXPECT_EQ(ids_in("out.jsonl"), (std::multiset<std::string>{placed.id().str(), both.id().str()}))
      << "each once";
  EXPECT_EQ(ids_in("other.jsonl"), (std::multiset<std::string>{both.id().str(), other.id().str()}));
  const auto dead = admin.find(nobodys.id());
  ASSERT_TRUE(dead.has_value());
  EXPECT_EQ(dead->status, EventStatus::dead) << "what no route takes is not lost";
  EXPECT_THAT(dead->last_error, HasSubstr("no route takes an event of type 'Unknown'"));
}

TEST_P(DeliveryTest, ASinkThatIsAwayHoldsUpNoOtherAndIsSeen) {
  LogLines log;
  const auto daemon = make_daemon(config_with_routes({"out", "broken", "other"}), log.callback());
  daemon->start();
  const Event event = Event::json("Placed", "{}");
  publish({event});
  const auto metrics = [&] { return ask(*daemon, "GET", "/metrics").body; };
  const auto failures = [&] {
    const std::string name = "postrider_sink_failures_total{sink=\"broken\",type=\"file\"} ";
    const std::string text = metrics();
    const std::size_t at = text.find(name);
    return at == std::string::npos ? 0 : std::stoi(text.substr(at + name.size()));
  };
  ASSERT_TRUE(eventually([&] { return failures() >= 3; }));
  const std::multiset<std::string> once{event.id().str()};
  EXPECT_EQ(ids_in("out.jsonl"), once) << "no copy at each retry";
  EXPECT_EQ(ids_in("other.jsonl"), once) << "it is behind the one that is away";
  EXPECT_THAT(metrics(), HasSubstr("postrider_sink_up{sink=\"broken\",type=\"file\"} 0\n"));
  EXPECT_THAT(metrics(), HasSubstr("postrider_sink_up{sink=\"out\",type=\"file\"} 1\n"));
  EXPECT_THAT(metrics(), HasSubstr("postrider_sink_circuit_open{sink=\"out\",type=\"file\"} 0\n"));
  EXPECT_EQ(log.with("sink 'broken' does not take events"), 1);
  ASSERT_TRUE(eventually([&] {
    const json::value outbox =
        json::parse(ask(*daemon, "GET", "/api/overview").body).at("figures").at("outbox");
    return outbox.at("retrying").to_number<int>() == 1 &&
           outbox.at("oldestUndeliveredSeconds").to_number<double>() > 1 &&
           outbox.at("lastError").is_string();
  }));
  OutboxAdmin admin(database_->storage());
  EXPECT_THAT(admin.find(event.id()).value().last_error, HasSubstr("sink broken: "));
  ASSERT_TRUE(std::filesystem::create_directory(folder_.file("missing")));
  ASSERT_TRUE(eventually([&] { return admin.counts().done == 1; }));
  EXPECT_TRUE(daemon->stop());
  for (const char* file : {"out.jsonl", "missing/broken.jsonl", "other.jsonl"}) {
    EXPECT_EQ(ids_in(file), once) << file;
  }
  EXPECT_EQ(log.with("sink 'broken' takes events again"), 1);
}

TEST_P(DeliveryTest, AReplayAndASecondEventOfTheSameIdAreWithheldFromNobody) {
  const auto daemon = make_daemon(config_with_routes({"out", "broken"}));
  daemon->start();
  OutboxAdmin admin(database_->storage());
  const EventId id{"order-1"};
  const auto publish_it = [&] { publish({Event::builder("Placed").id(id).json("{}").build()}); };
  const auto came_to_both = [&](std::size_t times) {
    return eventually([&] {
      return admin.find(id).value().last_error.find("sink broken") != std::string::npos &&
             ids_in("out.jsonl").size() == times;
    });
  };
  OutboxFilter only;
  only.ids = {id};
  publish_it();
  ASSERT_TRUE(came_to_both(1));
  ASSERT_EQ(admin.cancel(only, "by hand"), 1);
  ASSERT_EQ(admin.replay_dead_letters({.ids = {id}}), 1);
  EXPECT_TRUE(came_to_both(2)) << "a replay";
  ASSERT_EQ(admin.cancel(only, "by hand"), 1);
  ASSERT_EQ(admin.purge({.status = EventStatus::dead, .older_than = 0s}), 1);
  publish_it();
  EXPECT_TRUE(came_to_both(3)) << "another event";
  EXPECT_TRUE(daemon->stop());
}

TEST_P(DeliveryTest, RelaysTopicsAndAnswersForThem) {
  const auto daemon = make_daemon(config(R"(
[relay.topics.wallets]
required-tags = ["wallet"]
publishers = ["out"]
polling-interval-ms = 20
)"));
  daemon->start();
  ASSERT_TRUE(eventually([&] { return daemon->ready(); }));
  EventStore store(database_->storage());
  store.append({AppendEvent::builder("Opened").tag("wallet", "1").data("{}").build(),
                AppendEvent::builder("Noise").data("{}").build()});
  ASSERT_TRUE(eventually([&] { return ids_in("out.jsonl").size() == 1; }));
  const HttpAnswer status = ask(*daemon, "GET", "/api/topics/wallets/publishers/out");
  EXPECT_EQ(status.status, 200);
  EXPECT_EQ(json::parse(status.body).at("status").as_string(), "ACTIVE");
  EXPECT_EQ(ask(*daemon, "POST", "/api/outbox/publishers/out/pause").status, 200);
  store.append({AppendEvent::builder("Opened").tag("wallet", "2").data("{}").build()});
  EXPECT_EQ(json::parse(ask(*daemon, "GET", "/api/outbox/publishers/out").body).at("status").as_string(),
            "PAUSED");
  EXPECT_EQ(ids_in("out.jsonl").size(), 1U);
  EXPECT_EQ(ask(*daemon, "POST", "/api/topics/wallets/publishers/out/resume").status, 200);
  EXPECT_TRUE(eventually([&] { return ids_in("out.jsonl").size() == 2; }));
  EXPECT_TRUE(eventually([&] {
    return ask(*daemon, "GET", "/metrics").body.find("postrider_relay_published_total 2") !=
           std::string::npos;
  }));
  EXPECT_TRUE(daemon->stop());
}

TEST_P(DeliveryTest, ASinkThatHangsHoldsUpNeitherTheEndNorTheLeadership) {
  const test::SilentPeer peer;  // takes connections, and never answers
  auto parsed = parsed_config(config(R"(
[sinks.hook]
type = "webhook"
url = "http://127.0.0.1:)" + std::to_string(peer.port()) +
                                     R"(/x"
allow-private = true
timeout-ms = 600000
[outbox]
poller-interval-ms = 20
drain-timeout-ms = 100
[[outbox.routes]]
sink = "hook"
[relay.topics.all]
publishers = ["hook"]
polling-interval-ms = 20
)"));
  parsed.relay.options.stop_timeout = 100ms;
  Daemon daemon(std::move(parsed), [](LogLevel, std::string_view) {});
  daemon.start();
  ASSERT_TRUE(eventually([&] { return daemon.ready(); }));
  EventStore(database_->storage()).append({AppendEvent::builder("Opened").data("{}").build()});
  publish({Event::json("Placed", "{}")});
  ASSERT_TRUE(eventually([&] { return peer.has_visitor(); }));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(daemon.stop());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 60s) << "not as long as the sink waits";
  RelayAdmin admin(database_->storage());
  for (const LeaderStatus& leader : admin.leaders()) EXPECT_FALSE(leader.alive) << leader.node;
  const auto pair = admin.find("all", "hook");
  ASSERT_TRUE(pair.has_value());
  EXPECT_EQ(pair->position, Position{0}) << "it comes again";
}

POSTRIDER_FOR_EACH_BACKEND(DeliveryTest);

}  // namespace
}  // namespace postrider::daemon
