// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/daemon.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "app/http/socket_client_fixture.hpp"
#include "postrider/event_store.hpp"
#include "postrider/open.hpp"
#include "support/backend.hpp"
#include "support/eventually.hpp"
#include "support/private_server.hpp"
#include "support/silent_peer.hpp"

namespace postrider::daemon {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using test::eventually;
using test::HttpAnswer;
using test::SocketClient;
using ::testing::HasSubstr;

constexpr std::array<const char*, 1> no_environment{nullptr};

std::unique_ptr<Daemon> make(const std::string& text) {
  return std::make_unique<Daemon>(
      config::parse_daemon_config(text, "test.toml", no_environment.data()).config,
      [](LogLevel, std::string_view) {});
}

HttpAnswer ask(const Daemon& daemon, std::string_view method, const std::string& target,
               const std::string& headers = {}) {
  return SocketClient(daemon.port()).ask(method, target, {}, headers).value();
}

class DaemonTest : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (!IsSkipped() && !HasFatalFailure()) database_ = std::make_unique<test::TestDatabase>(backend());
  }
  std::string config(const std::string& more) const {
    return "[storage]\nurl = \"" + database_->url() + "\"\nschema = \"" + database_->options().schema.str() +
           "\"\n[server]\nlisten = \"127.0.0.1:0\"\n[sinks.out]\ntype = \"file\"\npath = \"" +
           folder_.file("out.jsonl") + "\"\n[sinks.other]\ntype = \"file\"\npath = \"" +
           folder_.file("other.jsonl") + "\"\n" + more;
  }
  std::multiset<std::string> ids_in(const std::string& file) const {
    std::ifstream in(folder_.file(file));
    std::multiset<std::string> ids;
    for (std::string line; std::getline(in, line);)
      ids.insert(json::parse(line).at("id").as_string().c_str());
    return ids;
  }
  test::TempDir folder_;
  std::unique_ptr<test::TestDatabase> database_;
};

TEST_P(DaemonTest, RoutesEventsOfTheOutboxToTheirSinks) {
  const auto daemon = make(config(R"(
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
  Outbox publisher(database_->storage());  // not started: somebody else's process
  const Event placed = Event::builder("OrderPlaced").json("{}").build();
  const Event both = Event::builder("OrderPlaced").tenant("t1").json("{}").build();
  const Event other = Event::builder("OrderPaid").tenant("t1").json("{}").build();
  const Event nobodys = Event::builder("Unknown").json("{}").build();
  {
    Transaction tx = database_->storage().begin();
    publisher.publish(tx, {placed, both, other, nobodys});
    tx.commit();
  }
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

TEST_P(DaemonTest, ASinkThatIsAwayHoldsUpNoOtherAndIsSeen) {
  std::vector<std::string> lines;
  std::mutex mutex;
  const auto told = [&](std::string_view text) {
    const std::scoped_lock lock(mutex);
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string& line) { return line.find(text) != std::string::npos; });
  };
  Daemon daemon(config::parse_daemon_config(config(R"(
[sinks.broken]
type = "file"
path = ")" + folder_.file("missing/broken.jsonl") +
                                                   R"("
[outbox]
poller-interval-ms = 20
[[outbox.routes]]
sink = "out"
[[outbox.routes]]
sink = "broken"
[[outbox.routes]]
sink = "other"
)"),
                                            "test.toml", no_environment.data())
                    .config,
                [&](LogLevel, std::string_view line) {
                  const std::scoped_lock lock(mutex);
                  lines.emplace_back(line);
                });
  daemon.start();
  const Event event = Event::json("Placed", "{}");
  {
    Transaction tx = database_->storage().begin();
    Outbox(database_->storage()).publish(tx, event);
    tx.commit();
  }
  const auto metrics = [&] { return ask(daemon, "GET", "/metrics").body; };
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
  EXPECT_EQ(told("sink 'broken' does not take events"), 1);
  ASSERT_TRUE(eventually([&] {
    const json::value outbox =
        json::parse(ask(daemon, "GET", "/api/overview").body).at("figures").at("outbox");
    return outbox.at("retrying").to_number<int>() == 1 &&
           outbox.at("oldestUndeliveredSeconds").to_number<double>() > 1 &&
           outbox.at("lastError").is_string();
  }));
  OutboxAdmin admin(database_->storage());
  EXPECT_THAT(admin.find(event.id()).value().last_error, HasSubstr("sink broken: "));
  ASSERT_TRUE(std::filesystem::create_directory(folder_.file("missing")));
  ASSERT_TRUE(eventually([&] { return admin.counts().done == 1; }));
  EXPECT_TRUE(daemon.stop());
  for (const char* file : {"out.jsonl", "missing/broken.jsonl", "other.jsonl"}) {
    EXPECT_EQ(ids_in(file), once) << file;
  }
  EXPECT_EQ(told("sink 'broken' takes events again"), 1);
}

TEST_P(DaemonTest, AReplayAndASecondEventOfTheSameIdAreWithheldFromNobody) {
  const auto daemon = make(config(R"(
[sinks.broken]
type = "file"
path = ")" + folder_.file("missing/broken.jsonl") +
                                  R"("
[outbox]
poller-interval-ms = 20
[[outbox.routes]]
sink = "out"
[[outbox.routes]]
sink = "broken"
)"));
  daemon->start();
  OutboxAdmin admin(database_->storage());
  const EventId id{"order-1"};
  const auto publish = [&] {
    Transaction tx = database_->storage().begin();
    Outbox(database_->storage()).publish(tx, Event::builder("Placed").id(id).json("{}").build());
    tx.commit();
  };
  const auto came_to_both = [&](std::size_t times) {
    return eventually([&] {
      return admin.find(id).value().last_error.find("sink broken") != std::string::npos &&
             ids_in("out.jsonl").size() == times;
    });
  };
  OutboxFilter only;
  only.ids = {id};
  publish();
  ASSERT_TRUE(came_to_both(1));
  ASSERT_EQ(admin.cancel(only, "by hand"), 1);
  ASSERT_EQ(admin.replay_dead_letters({.ids = {id}}), 1);
  EXPECT_TRUE(came_to_both(2)) << "a replay";
  ASSERT_EQ(admin.cancel(only, "by hand"), 1);
  ASSERT_EQ(admin.purge({.status = EventStatus::dead, .older_than = 0s}), 1);
  publish();
  EXPECT_TRUE(came_to_both(3)) << "another event";
  EXPECT_TRUE(daemon->stop());
}

TEST_P(DaemonTest, ANodeWithoutANameIsCalledByItsProcess) {
  const auto daemon = make(config("[relay.topics.all]\npublishers = [\"StatisticsPublisher\"]\n"));
  daemon->start();
  ASSERT_TRUE(eventually([&] { return daemon->ready(); }));
  const auto overview = json::parse(ask(*daemon, "GET", "/api/overview").body);
  ASSERT_TRUE(overview.at("node").at("name").is_string()) << overview;
  const std::string name = overview.at("node").at("name").as_string().c_str();
  EXPECT_THAT(name, ::testing::EndsWith("/" + std::to_string(::getpid())));
  const auto nodes = [&] { return json::parse(ask(*daemon, "GET", "/api/nodes").body); };
  EXPECT_EQ(nodes().at("thisNode").at("name").as_string(), name);
  ASSERT_TRUE(eventually([&] { return nodes().at("leases").as_array().size() == 1; }));
  EXPECT_THAT(nodes().at("leases").at(0).at("node").as_string().c_str(), ::testing::StartsWith(name + "/"));
  EXPECT_TRUE(daemon->stop());
}

TEST_P(DaemonTest, CountsWhatIsAppendedThroughItsApi) {
  const auto daemon = make(config(""));
  daemon->start();
  ASSERT_TRUE(eventually([&] { return daemon->ready(); }));
  const auto append = [&](const std::string& body) {
    return SocketClient(daemon->port()).ask("POST", "/append", body).value().status;
  };
  EXPECT_EQ(append(R"({"events":[{"type":"A","tags":["t1"],"data":"1"},{"type":"B","tags":[],"data":"2"}]})"),
            200);
  EXPECT_EQ(append(R"({"events":[{"type":"A","tags":["t1"],"data":"3"}],)"
                   R"("condition":{"failIfEventsMatch":{"items":[{"types":["A"],"tags":["t1"]}]}}})"),
            200)
      << "a conflict is an answer";
  const std::string metrics = ask(*daemon, "GET", "/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("postrider_store_appended_total 2\n"));
  EXPECT_THAT(metrics, HasSubstr("postrider_store_read_seconds_count 0\n"));
  EXPECT_EQ(ask(*daemon, "GET", "/read").status, 200);
  const std::string after_a_read = ask(*daemon, "GET", "/metrics").body;
  EXPECT_THAT(after_a_read, HasSubstr("postrider_store_read_seconds_count 1\n"));
  EXPECT_THAT(after_a_read, HasSubstr("postrider_store_read_events_sum 2\n"));
  EXPECT_THAT(metrics, HasSubstr("postrider_store_conflicts_total 1\n"));
  EXPECT_THAT(metrics, HasSubstr("postrider_store_flush_appends_count 2\n"));
}

TEST_P(DaemonTest, RelaysTopicsAndAnswersForThem) {
  const auto daemon = make(config(R"(
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

TEST_P(DaemonTest, ASinkThatHangsHoldsUpNeitherTheEndNorTheLeadership) {
  const test::SilentPeer peer;  // takes connections, and never answers
  auto parsed = config::parse_daemon_config(config(R"(
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
)"),
                                            "test.toml", no_environment.data())
                    .config;
  parsed.relay.options.stop_timeout = 100ms;
  Daemon daemon(std::move(parsed), [](LogLevel, std::string_view) {});
  daemon.start();
  ASSERT_TRUE(eventually([&] { return daemon.ready(); }));
  EventStore(database_->storage()).append({AppendEvent::builder("Opened").data("{}").build()});
  {
    Transaction tx = database_->storage().begin();
    Outbox(database_->storage()).publish(tx, Event::json("Placed", "{}"));
    tx.commit();
  }
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

TEST_P(DaemonTest, HandsLeadershipOverWhenItStops) {
  const std::string text = config("[relay.topics.all]\npublishers = [\"StatisticsPublisher\"]\n");
  const auto leads = [](const Daemon& daemon) {
    return json::parse(ask(daemon, "GET", "/readyz?verbose").body).at("ledPairs").to_number<int>() == 1;
  };
  const auto first = make(text);
  first->start();
  ASSERT_TRUE(eventually([&] { return leads(*first); }));
  const auto second = make(text);
  second->start();
  ASSERT_TRUE(eventually([&] { return second->ready(); }));
  EXPECT_FALSE(leads(*second));
  const auto nodes = [&] { return json::parse(ask(*first, "GET", "/api/nodes").body); };
  ASSERT_TRUE(eventually([&] { return nodes().at("standbys").as_array().size() == 1; }));
  EXPECT_EQ(nodes().at("leases").as_array().size(), 1U);
  EXPECT_NE(nodes().at("standbys").at(0).at("node"), nodes().at("leases").at(0).at("node"));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(first->stop());
  EXPECT_TRUE(eventually([&] { return leads(*second); }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s) << "sooner than the lease of ten seconds would end";
  EXPECT_TRUE(second->stop());
}

TEST_P(DaemonTest, TokensAreAskedForAndReadAgain) {
  const std::string path = folder_.file("tokens");
  const std::string token = api::make_token();
  api::add_token(path, {.name = "ops", .role = api::Role::viewer, .sha256 = api::hash_of(token)});
  const std::string text = config("[relay.topics.all]\npublishers = [\"out\"]\n");
  const std::string with_tokens = text.substr(0, text.find("[sinks.out]")) + "token-file = \"" + path +
                                  "\"\n" + text.substr(text.find("[sinks.out]"));
  const auto daemon = make(with_tokens);
  daemon->start();
  ASSERT_TRUE(eventually([&] { return daemon->ready(); }));
  const std::string bearer = "Authorization: Bearer " + token + "\r\n";
  EXPECT_EQ(ask(*daemon, "GET", "/api/topics").status, 401);
  EXPECT_EQ(ask(*daemon, "GET", "/api/topics", bearer).status, 200);
  EXPECT_EQ(ask(*daemon, "POST", "/api/outbox/publishers/out/pause", bearer).status, 403);
  EXPECT_EQ(ask(*daemon, "GET", "/livez").status, 200) << "who only asks whether it lives needs none";
  const std::string second = api::make_token();
  api::add_token(path, {.name = "boss", .role = api::Role::admin, .sha256 = api::hash_of(second)});
  daemon->reload(config::parse_daemon_config(with_tokens, "x", no_environment.data()).config);
  EXPECT_EQ(
      ask(*daemon, "POST", "/api/outbox/publishers/out/pause", "Authorization: Bearer " + second + "\r\n")
          .status,
      200);
  (void)api::remove_token(path, "ops");
  EXPECT_EQ(ask(*daemon, "GET", "/api/topics", bearer).status, 200) << "not before it is told";
  daemon->reload(config::parse_daemon_config(with_tokens, "x", no_environment.data()).config);
  EXPECT_EQ(ask(*daemon, "GET", "/api/topics", bearer).status, 401) << "revoked";
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_THROW(daemon->reload(config::parse_daemon_config(with_tokens, "x", no_environment.data()).config),
               Error);
  EXPECT_EQ(ask(*daemon, "GET", "/api/topics", "Authorization: Bearer " + second + "\r\n").status, 200)
      << "a file that is none changes nothing";
  EXPECT_TRUE(daemon->stop());
}

TEST_P(DaemonTest, IsNotReadyWhenEventsOfClientsCannotBeStored) {
  const auto daemon = make(config("[eventlog]\nenabled = true\n"));
  daemon->start();
  ASSERT_TRUE(eventually([&] { return daemon->ready(); }));
  EXPECT_EQ(ask(*daemon, "GET", "/readyz").status, 200);
  Transaction tx = database_->storage().begin();
  tx.execute("DROP TABLE " + database_->table("event_log_entries"));
  tx.commit();
  const std::string event = R"({"applicationId":"a","processName":"P","processStatus":"PROCESS_STEP"})";
  EXPECT_EQ(SocketClient(daemon->port()).ask("POST", "/v1/events", event).value().status, 503);
  EXPECT_EQ(ask(*daemon, "GET", "/readyz").status, 503) << "the database answers, and takes nothing";
}

TEST_P(DaemonTest, WhereNothingIsSentNoSinkIsBlamedAtTheEnd) {
  std::vector<std::string> lines;
  std::mutex mutex;
  Daemon daemon(
      config::parse_daemon_config(config("[eventlog]\nenabled = true\n"), "test.toml", no_environment.data())
          .config,
      [&](LogLevel, std::string_view line) {
        const std::scoped_lock lock(mutex);
        lines.emplace_back(line);
      });
  daemon.start();
  ASSERT_TRUE(eventually([&] { return daemon.ready(); }));
  EXPECT_TRUE(daemon.stop());
  for (const std::string& line : lines) EXPECT_THAT(line, ::testing::Not(HasSubstr("has not answered")));
}

TEST_P(DaemonTest, SaysThatTheEventLogIsNotSwitchedOn) {
  const auto daemon = make(config(""));
  daemon->start();
  for (const HttpAnswer& answer :
       {ask(*daemon, "GET", "/v1/events"), ask(*daemon, "GET", "/v1/events/7"),
        ask(*daemon, "POST", "/v1/events"),
        SocketClient(daemon->port()).ask("POST", "/v1/events/batch", std::string(100, ' ')).value()}) {
    EXPECT_EQ(answer.status, 404) << answer.head;
    EXPECT_THAT(answer.body, HasSubstr("[eventlog]"));
  }
}

POSTRIDER_FOR_EACH_BACKEND(DaemonTest);

class WaitingDaemonTest : public test::BackendTest {};

TEST_P(WaitingDaemonTest, WaitsVisiblyForADatabaseThatIsAway) {
  if (backend() == "sqlite") GTEST_SKIP() << "a file is never away";
  test::PrivateServer server(backend() == "postgres" ? BackendKind::postgres : BackendKind::mariadb);
  server.kill();
  const auto daemon = make("[storage]\nurl = \"" + server.url() +
                           "\"\nconnect-timeout-ms = 500\nacquire-timeout-ms = 1000\n[server]\nlisten = "
                           "\"127.0.0.1:0\"\n[relay.topics.all]\npublishers = [\"StatisticsPublisher\"]\n");
  daemon->start();
  ASSERT_TRUE(eventually([&] { return daemon->phase_text().starts_with("waiting for the database: "); }));
  EXPECT_EQ(ask(*daemon, "GET", "/livez").status, 200);
  const HttpAnswer verbose = ask(*daemon, "GET", "/readyz?verbose");
  EXPECT_EQ(verbose.status, 503);
  EXPECT_THAT(verbose.body, HasSubstr("waiting for the database"));
  EXPECT_EQ(ask(*daemon, "GET", "/readyz").status, 503);
  EXPECT_EQ(ask(*daemon, "GET", "/api/topics").status, 503);
  EXPECT_EQ(ask(*daemon, "GET", "/metrics").status, 200);
  server.start();
  EXPECT_TRUE(eventually([&] { return ask(*daemon, "GET", "/readyz").status == 200; }));
  EXPECT_EQ(ask(*daemon, "GET", "/api/topics").status, 200);
  server.kill();
  EXPECT_TRUE(eventually([&] { return ask(*daemon, "GET", "/readyz").status == 503; }));
  server.start();
  EXPECT_TRUE(eventually([&] { return ask(*daemon, "GET", "/readyz").status == 200; }));
  EXPECT_TRUE(daemon->stop());
}

TEST_P(WaitingDaemonTest, StopsWhileItWaits) {
  if (backend() == "sqlite") GTEST_SKIP() << "a file is never away";
  test::PrivateServer server(backend() == "postgres" ? BackendKind::postgres : BackendKind::mariadb);
  server.kill();
  const auto daemon = make("[storage]\nurl = \"" + server.url() + "\"\n[server]\nlisten = \"127.0.0.1:0\"\n");
  daemon->start();
  daemon->await_first_attempt(
      60s);  // it is as patient as the pool; the pauses between attempts are what is stopped
  ASSERT_TRUE(daemon->phase_text().starts_with("waiting for the database: ")) << daemon->phase_text();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(daemon->stop());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s);
}

POSTRIDER_FOR_EACH_BACKEND(WaitingDaemonTest);

TEST(Daemon, HazardWhenItIsNotReadyItDoesNotSayThatAllIsMoving) {
  const test::TempDir folder;
  const std::string file = folder.file("x.db");
  const auto daemon = make("[storage]\nurl = \"sqlite:" + file + "\"\n[server]\nlisten = \"127.0.0.1:0\"\n");
  daemon->start();
  const auto stuck = [&] { return json::parse(ask(*daemon, "GET", "/api/overview").body).at("stuck"); };
  const auto metric = [&](const char* value) {
    return ask(*daemon, "GET", "/metrics").body.find(std::string("\npostrider_database_up ") + value) !=
           std::string::npos;
  };
  ASSERT_TRUE(eventually([&] { return stuck() == "all is moving"; }));
  EXPECT_TRUE(metric("1"));
  std::filesystem::rename(file, folder.file("aside.db"));
  EXPECT_EQ(ask(*daemon, "GET", "/readyz").status, 503);
  ASSERT_TRUE(eventually([&] { return stuck() != "all is moving"; }));
  EXPECT_THAT(std::string(stuck().as_string()), HasSubstr("removed or replaced"));
  EXPECT_TRUE(metric("0"));
  std::filesystem::rename(folder.file("aside.db"), file);
  EXPECT_TRUE(eventually([&] { return stuck() == "all is moving"; }));
  EXPECT_TRUE(metric("1"));
  EXPECT_TRUE(daemon->stop());
}

TEST(Daemon, SaysWhatNoWaitingMends) {
  const test::TempDir folder;
  {
    const auto storage = open("sqlite:" + folder.file("x.db"));
    storage->migrate();
    Transaction tx = storage->begin();
    tx.execute("insert into postrider_schema_migrations (version, name, applied_at) values (9999, 'x', 0)");
    tx.commit();
  }
  const auto daemon =
      make("[storage]\nurl = \"sqlite:" + folder.file("x.db") + "\"\n[server]\nlisten = \"127.0.0.1:0\"\n");
  daemon->start();
  ASSERT_TRUE(eventually([&] { return daemon->failure() != nullptr; }));
  EXPECT_FALSE(daemon->ready());
}

}  // namespace
}  // namespace postrider::daemon
