// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/daemon.hpp"

#include <unistd.h>

#include <filesystem>

#include "app/daemon/daemon_fixture.hpp"
#include "core/failpoint.hpp"
#include "postrider/open.hpp"
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

class DaemonTest : public DaemonFixture {};

TEST_P(DaemonTest, ANodeWithoutANameIsCalledByItsProcess) {
  const auto daemon = make_daemon(config("[relay.topics.all]\npublishers = [\"StatisticsPublisher\"]\n"));
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
  const auto daemon = make_daemon(config(""));
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

TEST_P(DaemonTest, HandsLeadershipOverWhenItStops) {
  const std::string text = config("[relay.topics.all]\npublishers = [\"StatisticsPublisher\"]\n");
  const auto leads = [](const Daemon& daemon) {
    return json::parse(ask(daemon, "GET", "/readyz?verbose").body).at("ledPairs").to_number<int>() == 1;
  };
  const auto first = make_daemon(text);
  first->start();
  ASSERT_TRUE(eventually([&] { return leads(*first); }));
  const auto second = make_daemon(text);
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
  const auto daemon = make_daemon(with_tokens);
  daemon->start();
  ASSERT_TRUE(eventually([&] { return daemon->ready(); }));
  const std::string bearer = "Authorization: Bearer " + token + "\r\n";
  EXPECT_EQ(ask(*daemon, "GET", "/api/topics").status, 401);
  EXPECT_EQ(ask(*daemon, "GET", "/api/topics", bearer).status, 200);
  EXPECT_EQ(ask(*daemon, "POST", "/api/outbox/publishers/out/pause", bearer).status, 403);
  EXPECT_EQ(ask(*daemon, "GET", "/livez").status, 200) << "who only asks whether it lives needs none";
  const std::string second = api::make_token();
  api::add_token(path, {.name = "boss", .role = api::Role::admin, .sha256 = api::hash_of(second)});
  daemon->reload(parsed_config(with_tokens));
  EXPECT_EQ(
      ask(*daemon, "POST", "/api/outbox/publishers/out/pause", "Authorization: Bearer " + second + "\r\n")
          .status,
      200);
  (void)api::remove_token(path, "ops");
  EXPECT_EQ(ask(*daemon, "GET", "/api/topics", bearer).status, 200) << "not before it is told";
  daemon->reload(parsed_config(with_tokens));
  EXPECT_EQ(ask(*daemon, "GET", "/api/topics", bearer).status, 401) << "revoked";
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  EXPECT_THROW(daemon->reload(parsed_config(with_tokens)), Error);
  EXPECT_EQ(ask(*daemon, "GET", "/api/topics", "Authorization: Bearer " + second + "\r\n").status, 200)
      << "a file that is none changes nothing";
  EXPECT_TRUE(daemon->stop());
}

TEST_P(DaemonTest, IsNotReadyWhenEventsOfClientsCannotBeStored) {
  const auto daemon = make_daemon(config("[eventlog]\nenabled = true\n"));
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

TEST_P(DaemonTest, IsNotReadyWhenTheDatabaseAnswersAndDoesNotTakeWhatClientsPublish) {
  const auto daemon = make_daemon(config(""));
  daemon->start();
  ASSERT_TRUE(eventually([&] { return daemon->ready(); }));
  EXPECT_THAT(ask(*daemon, "GET", "/readyz?verbose").body, HasSubstr("\"takesWrites\":true"));
  failpoints::plan("outbox.insert.after=throw");
  const std::string event = R"({"type":"T","payload":{}})";
  EXPECT_EQ(SocketClient(daemon->port()).ask("POST", "/api/events", event).value().status, 503);
  failpoints::clear();
  const HttpAnswer ready = ask(*daemon, "GET", "/readyz");
  EXPECT_EQ(ready.status, 503);
  EXPECT_THAT(ready.body, HasSubstr("does not store what clients send"));
  const HttpAnswer verbose = ask(*daemon, "GET", "/readyz?verbose");
  EXPECT_EQ(verbose.status, 503);
  EXPECT_THAT(verbose.body, HasSubstr("\"database\":true,\"takesWrites\":false"));
}

TEST_P(DaemonTest, AnOutboxWithoutRoutesIsWarnedOf) {
  const auto told = [&](const std::string& more) {
    LogLines log;
    (void)make_daemon(config(more), log.callback());
    return std::pair(log.with("has no route: every event of the outbox becomes a dead letter. Hint: "),
                     log.with("has no route"));
  };
  EXPECT_EQ(told("[outbox]\nenabled = true\n"), (std::pair<std::ptrdiff_t, std::ptrdiff_t>(1, 1)));
  EXPECT_EQ(told("[outbox]\nenabled = true\nunrouted = \"done\"\n"),
            (std::pair<std::ptrdiff_t, std::ptrdiff_t>(0, 1)));
  EXPECT_EQ(told("[outbox]\nenabled = true\n[[outbox.routes]]\nsink = \"out\"\n").second, 0);
  EXPECT_EQ(told("").second, 0);
}

TEST_P(DaemonTest, ASinkOfTheRelayThatHangsHoldsTheEndUpForTheDrainTimeoutAlone) {
  const test::SilentPeer peer;
  std::string text =
      config("[sinks.hook]\ntype = \"webhook\"\nurl = \"http://127.0.0.1:" + std::to_string(peer.port()) +
             "/\"\nallow-private = true\ntimeout-ms = 60000\n[relay.topics.all]\npublishers = [\"hook\"]\n");
  const std::string_view server = "[server]\n";
  text.insert(text.find(server) + server.size(), "drain-timeout-ms = 300\n");
  const auto daemon = make_daemon(text);
  daemon->start();
  ASSERT_TRUE(eventually([&] { return daemon->ready(); }));
  ASSERT_EQ(SocketClient(daemon->port())
                .ask("POST", "/append", R"({"events":[{"type":"A","tags":[],"data":"1"}]})")
                .value()
                .status,
            200);
  ASSERT_TRUE(eventually([&] { return peer.has_visitor(); }));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(daemon->stop());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s) << "the relay's own limit is ten seconds";
}

TEST_P(DaemonTest, WhereNothingIsSentNoSinkIsBlamedAtTheEnd) {
  LogLines log;
  const auto daemon = make_daemon(config("[eventlog]\nenabled = true\n"), log.callback());
  daemon->start();
  ASSERT_TRUE(eventually([&] { return daemon->ready(); }));
  EXPECT_TRUE(daemon->stop());
  EXPECT_EQ(log.with("has not answered"), 0);
}

TEST_P(DaemonTest, SaysThatTheEventLogIsNotSwitchedOn) {
  const auto daemon = make_daemon(config(""));
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
  const auto daemon =
      make_daemon("[storage]\nurl = \"" + server.url() +
                  "\"\nconnect-timeout-ms = 500\n[server]\nlisten = "
                  "\"127.0.0.1:0\"\n[relay.topics.all]\npublishers = [\"StatisticsPublisher\"]\n");
  daemon->start();
  ASSERT_TRUE(eventually([&] { return daemon->phase_text().starts_with("waiting for the database: "); }));
  EXPECT_EQ(ask(*daemon, "GET", "/livez").status, 200);
  const HttpAnswer verbose = ask(*daemon, "GET", "/readyz?verbose");
  EXPECT_EQ(verbose.status, 503);
  EXPECT_THAT(verbose.body, HasSubstr("waiting for the database"));
  EXPECT_EQ(ask(*daemon, "GET", "/readyz").status, 503);
  EXPECT_THAT(ask(*daemon, "GET", "/api/topics").body, HasSubstr("\"starting\""));
  EXPECT_EQ(ask(*daemon, "GET", "/metrics").status, 200);
  server.start();
  EXPECT_TRUE(eventually([&] { return ask(*daemon, "GET", "/readyz").status == 200; }));
  EXPECT_EQ(ask(*daemon, "GET", "/api/topics").status, 200);
  server.kill();
  EXPECT_TRUE(eventually([&] { return ask(*daemon, "GET", "/readyz").status == 503; }));
  // Nobody waits for a connection when it is known that there is none.
  EXPECT_TRUE(eventually([&] {
    return ask(*daemon, "GET", "/readyz?verbose").body.find("\"database\":false") != std::string::npos;
  }));
  EXPECT_THAT(ask(*daemon, "GET", "/api/topics").body, HasSubstr("\"unavailable\""));
  server.start();
  EXPECT_TRUE(eventually([&] { return ask(*daemon, "GET", "/readyz").status == 200; }));
  EXPECT_TRUE(daemon->stop());
}

TEST_P(WaitingDaemonTest, StopsWhileItWaits) {
  if (backend() == "sqlite") GTEST_SKIP() << "a file is never away";
  test::PrivateServer server(backend() == "postgres" ? BackendKind::postgres : BackendKind::mariadb);
  server.kill();
  const auto daemon =
      make_daemon("[storage]\nurl = \"" + server.url() + "\"\n[server]\nlisten = \"127.0.0.1:0\"\n");
  daemon->start();
  daemon->await_first_attempt(
      60s);  // it is as patient as the pool; the pauses between attempts are what is stopped
  ASSERT_TRUE(daemon->phase_text().starts_with("waiting for the database: ")) << daemon->phase_text();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(daemon->stop());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s);
}

POSTRIDER_FOR_EACH_BACKEND(WaitingDaemonTest);

TEST(Daemon, WhenItIsNotReadyItDoesNotSayThatAllIsMoving) {
  const test::TempDir folder;
  const std::string file = folder.file("x.db");
  const auto daemon =
      make_daemon("[storage]\nurl = \"sqlite:" + file + "\"\n[server]\nlisten = \"127.0.0.1:0\"\n");
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
  const auto daemon = make_daemon("[storage]\nurl = \"sqlite:" + folder.file("x.db") +
                                  "\"\n[server]\nlisten = \"127.0.0.1:0\"\n");
  daemon->start();
  ASSERT_TRUE(eventually([&] { return daemon->failure() != nullptr; }));
  EXPECT_FALSE(daemon->ready());
}

}  // namespace
}  // namespace postrider::daemon
