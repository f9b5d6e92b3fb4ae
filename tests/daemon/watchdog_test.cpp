// SPDX-License-Identifier: Apache-2.0
// What systemd hears of `postrider serve`: readiness, status, and a watchdog that is tied to progress.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "daemon/serve_process.hpp"
#include "support/backend.hpp"
#include "support/foreign_connection.hpp"
#include "support/places.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// As WatchdogSec. Half of it may pass before something counts as hanging, which a busy machine must not
/// need.
constexpr std::chrono::milliseconds watchdog = 4s;

/// Everything that can hang, on this database.
std::string all_engines(const std::string& url, const std::string& schema = "postrider") {
  return "[storage]\nurl = \"" + url + "\"\nschema = \"" + schema +
         "\"\nacquire-timeout-ms = 300\nconnect-timeout-ms = 300\n[outbox]\nenabled = "
         "true\npoller-interval-ms = 50\n[[outbox.routes]]\nsink = \"out\"\n"
         "[relay]\nheartbeat-ms = 100\nlease-ms = 1000\n"
         "[relay.topics.all]\npublishers = [\"StatisticsPublisher\"]\npolling-interval-ms = 50\n"
         "[sinks.out]\ntype = \"file\"\npath = \"/dev/null\"\n";
}

class Watchdog : public ::testing::Test {
 protected:
  /// Waits until it is fed no more, and says what the last status is. Empty when it goes on being fed.
  std::string silence() {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (std::chrono::steady_clock::now() < deadline) {
      // As long as systemd would wait for the next sign.
      if (serve_.notify().await("WATCHDOG=1", watchdog)) continue;
      std::string last;
      for (const std::string& message : serve_.notify().all()) {
        if (message.starts_with("STATUS=")) last = message;
      }
      return last;
    }
    return {};
  }

  test::ServeProcess serve_;
};

TEST_F(Watchdog, HearsOfReadinessWorkAndTheEnd) {
  serve_.write_config(all_engines(serve_.sqlite()));
  serve_.start(watchdog);
  ASSERT_TRUE(serve_.notify().await("READY=1"));
  EXPECT_EQ(serve_.get("/readyz").value().status, 200) << "ready means ready";
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(serve_.notify().await("WATCHDOG=1", watchdog)) << i;
  EXPECT_THAT(serve_.notify().all(), Contains("STATUS=running"));
  EXPECT_EQ(serve_.notify().count("READY=1"), 1U);
  serve_.child().signal(SIGTERM);
  ASSERT_TRUE(serve_.notify().await("STOPPING=1"));
  EXPECT_TRUE(serve_.child().wait().value().ok());
}

TEST_F(Watchdog, WithoutOneNothingIsSaidAboutIt) {
  serve_.write_config("[storage]\nurl = \"" + serve_.sqlite() + "\"\n");
  serve_.start(0s);
  ASSERT_TRUE(serve_.notify().await("READY=1"));
  serve_.child().signal(SIGTERM);
  ASSERT_TRUE(serve_.notify().await("STOPPING=1"));
  EXPECT_THAT(serve_.notify().all(), Not(Contains("WATCHDOG=1")));
}

TEST_F(Watchdog, SighupReadsTheTokensAgainAndSaysSo) {
  const std::string tokens = serve_.file("tokens");
  const auto make_token = [&](const std::string& name) {
    test::ChildProcess make(
        {test::program_path(), "token", "create", "--file", tokens, "--name", name, "--role", "viewer"});
    const std::string token = make.read_line().value_or("");
    EXPECT_TRUE(make.wait().value().ok());
    return token;
  };
  (void)make_token("first");
  serve_.write_config("token-file = \"" + tokens + "\"\n" + all_engines(serve_.sqlite()));
  serve_.start(watchdog);
  ASSERT_TRUE(serve_.notify().await("READY=1"));
  const std::string head = "Authorization: Bearer " + make_token("second") + "\r\n";
  EXPECT_EQ(serve_.get("/api/outbox/publishers", head).value().status, 401);
  serve_.child().signal(SIGHUP);
  const std::optional<std::string> reloading = serve_.notify().await("RELOADING=1");
  ASSERT_TRUE(reloading);
  EXPECT_THAT(*reloading, HasSubstr("\nMONOTONIC_USEC="));
  ASSERT_TRUE(serve_.notify().await("READY=1"));
  EXPECT_EQ(serve_.get("/api/outbox/publishers", head).value().status, 200);

  // A file that cannot be taken changes nothing.
  serve_.write_config("[storage]\nurl = \"\"\nnonsense = 1\n");
  serve_.child().signal(SIGHUP);
  ASSERT_TRUE(serve_.notify().await("READY=1"));
  EXPECT_EQ(serve_.get("/api/outbox/publishers", head).value().status, 200);
  ASSERT_TRUE(serve_.notify().await("WATCHDOG=1"));
}

#if defined(POSTRIDER_FAILPOINTS)
TEST_F(Watchdog, HungSchedulerIsNotFed) {
  serve_.write_config(all_engines(serve_.sqlite()));
  serve_.start(watchdog, {{"POSTRIDER_FAILPOINT", "relay.schedule=hang@20"}});
  ASSERT_TRUE(serve_.notify().await("READY=1"));
  EXPECT_EQ(silence(), "STATUS=the relay hangs");
  EXPECT_EQ(serve_.get("/livez").value().status, 200) << "the rest of it lives";
}

TEST_F(Watchdog, HungPollerIsNotFed) {
  serve_.write_config(all_engines(serve_.sqlite()));
  serve_.start(watchdog, {{"POSTRIDER_FAILPOINT", "outbox.claim.after=hang@5"}});
  ASSERT_TRUE(serve_.notify().await("READY=1"));
  EXPECT_EQ(silence(), "STATUS=the outbox hangs");
}
#endif

#if defined(POSTRIDER_WITH_POSTGRES)
TEST_F(Watchdog, ADatabaseThatIsAwayAtTheStartIsNoReasonToBeRestarted) {
  serve_.write_config(all_engines("postgresql://postrider@127.0.0.1:1/none"));
  serve_.start(watchdog);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(serve_.notify().await("WATCHDOG=1", watchdog)) << i;
  EXPECT_EQ(serve_.notify().count("READY=1"), 0U);
  EXPECT_THAT(serve_.notify().all(), Contains(StartsWith("STATUS=waiting for the database: ")));
  EXPECT_EQ(serve_.get("/livez").value().status, 200);
  EXPECT_EQ(serve_.get("/readyz").value().status, 503);
  serve_.child().signal(SIGTERM);
  EXPECT_TRUE(serve_.child().wait().value().ok());
}

/// Its name ends like those that need the server.
class WatchdogOn : public test::BackendTest {};

TEST_P(WatchdogOn, ADatabaseThatDoesNotAnswerIsNoReasonEither) {
  test::TestDatabase database(backend());
  test::ServeProcess serve;
  serve.write_config(all_engines(database.url(), database.options().schema.str()));
  serve.start(watchdog);
  ASSERT_TRUE(serve.notify().await("READY=1"));
  const auto connection = test::ForeignConnection::open(database.storage().kind(), database.url());
  if (backend() == "postgres") {
    connection->begin();
    for (const char* table : {"outbox_event", "events", "outbox_lease", "outbox_topic_progress"}) {
      connection->run("LOCK TABLE " + database.table(table) + " IN ACCESS EXCLUSIVE MODE");
    }
  } else {
    connection->run(backend() == "sqlite" ? "BEGIN EXCLUSIVE"
                                          : "LOCK TABLES " + database.table("outbox_event") + " WRITE, " +
                                                database.table("events") + " WRITE, " +
                                                database.table("outbox_lease") + " WRITE");
  }
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(serve.notify().await("WATCHDOG=1", watchdog)) << i;
  EXPECT_THAT(serve.notify().all(), Not(Contains(HasSubstr("hangs"))));
  connection->run(backend() == "mariadb" ? "UNLOCK TABLES" : "ROLLBACK");
  serve.child().signal(SIGTERM);
  EXPECT_TRUE(serve.child().wait().value().ok());
}

POSTRIDER_FOR_EACH_BACKEND(WatchdogOn);
#endif

}  // namespace
}  // namespace postrider
