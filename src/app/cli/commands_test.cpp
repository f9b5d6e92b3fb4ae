// SPDX-License-Identifier: Apache-2.0
// What the commands do, on every database.
#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>

#include "app/cli/cli_fixture.hpp"
#include "postrider/event_queue.hpp"
#include "postrider/event_store.hpp"
#include "postrider/outbox.hpp"
#include "storage/lease_store.hpp"
#include "storage/outbox_search_store.hpp"
#include "storage/outbox_store.hpp"
#include "storage/progress_store.hpp"
#include "support/places.hpp"

namespace postrider::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

class CommandsTest : public CliTest {
 protected:
  /// Publishes, and lets it die.
  std::string dead(const std::string& type, const std::string& error) {
    const std::string id = publish(type);
    const std::vector<ClaimedEvent> claimed =
        storage().outbox_store().claim({.owner = "test", .lease = 60s, .limit = 100});
    std::vector<Completion> results;
    for (const ClaimedEvent& one : claimed) {
      results.push_back(
          {.lease = one.lease, .kind = Completion::Kind::dead, .failed = Attempt{3}, .error = error});
    }
    EXPECT_EQ(storage().outbox_store().complete(results), results.size());
    return id;
  }
  std::string publish(const std::string& type) {
    const Said said = run({"publish", type, "--data", R"({"n":1})"});
    EXPECT_EQ(said.code, 0) << said.err;
    return said.out.substr(0, said.out.find('\n'));
  }
  std::int64_t count(const char* name) { return json({"outbox", "counts"}).at(name).as_int64(); }
};
POSTRIDER_FOR_EACH_BACKEND(CommandsTest);

TEST_P(CommandsTest, PublishesIntoTheOutboxWithAllThatAnEventHas) {
  const Said said =
      run({"publish", "--header", "h=a=b", "--header", "i=", "OrderPlaced", "--data", "-", "--aggregate",
           "Order/4/2", "--tenant", "t", "--key", "k", "--id", "abc", "--delay", "1h"},
          "{\"id\": 1}\n");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.out, "abc\n");
  const boost::json::value shown = json({"outbox", "show", "abc"});
  EXPECT_EQ(shown.at("type"), "OrderPlaced");
  EXPECT_EQ(shown.at("payload"), "{\"id\": 1}");
  EXPECT_EQ(shown.at("aggregateType"), "Order");
  EXPECT_EQ(shown.at("aggregateId"), "4/2");
  EXPECT_EQ(shown.at("tenantId"), "t");
  EXPECT_EQ(shown.at("orderingKey"), "k");
  EXPECT_EQ(shown.at("headers").at("h"), "a=b");
  EXPECT_EQ(shown.at("headers").at("i"), "");
  EXPECT_EQ(shown.at("status"), "NEW");
  EXPECT_GT(shown.at("availableAt").as_string(), shown.at("createdAt").as_string());
}

TEST_P(CommandsTest, ARepeatedIdIsPublishedOnce) {
  EXPECT_EQ(json({"publish", "T", "--id", "x"}).at("status"), "created");
  EXPECT_EQ(json({"publish", "T", "--id", "x"}).at("status"), "duplicate");
  EXPECT_EQ(count("pending"), 1);
}

TEST_P(CommandsTest, PublishesNothingIntoTablesOfALaterVersion) {
  sql("INSERT INTO " + table("schema_migrations") +
      " (version, name, applied_at) SELECT 999, name, applied_at FROM " + table("schema_migrations") +
      " WHERE version = 1");
  const Said said = run({"publish", "T", "--data", "{}"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, HasSubstr("999"));
  EXPECT_EQ(count("pending"), 0);
}

TEST_P(CommandsTest, RefusesWhatIsNoEventAndStoresNothing) {
  const Said bad = run({"publish", "T", "--data", "{bad"});
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.err, HasSubstr("--data is refused: it is not valid JSON, at byte 1"));
  const Said appended = run({"store", "append", "T", "--data", "{bad"});
  EXPECT_EQ(appended.code, 1);
  EXPECT_THAT(appended.err, AllOf(HasSubstr("Hint: quote it for the shell, as in --data '"),
                                  Not(HasSubstr("EventBuilder"))));
  EXPECT_EQ(json({"store", "head"}).at("head"), 0);
  for (const auto& [time, why] : std::vector<std::pair<std::string, std::string>>{
           {"10000-01-01T00:00:00Z", "in the years 1000 to 9999"},
           {"9999-12-31T23:59:59Z",
            "deliver_at: it is not from 1000-01-01T00:00:00Z to 9999-12-31T00:00:00Z"}}) {
    const Said late = run({"publish", "T", "--deliver-at", time});
    EXPECT_EQ(late.code, 1);
    EXPECT_THAT(late.err, HasSubstr(why));
  }
  EXPECT_EQ(run({"publish", "T", "--data", "@/no/such/file"}).code, 1);
  EXPECT_EQ(run({"publish", "T", "--aggregate", "Order"}).code, 1);
  EXPECT_EQ(run({"publish"}).code, 2);
  EXPECT_EQ(run({"publish", "T", "--delay", "1h", "--deliver-at", "2026-06-01T10:15:30Z"}).code, 2);
  EXPECT_EQ(count("pending"), 0);
}

TEST_P(CommandsTest, HostileNamesReachTheTerminalAsText) {
  // A colour, a title, CSI as one character, an override of the direction.
  const std::string evil = "Evil\x1b[31m\x1b]0;owned\x07\xC2\x9B\x31m\xE2\x80\xAE";
  const std::string id = dead(evil, evil);
  EXPECT_EQ(run({"store", "append", evil, "--tag", "k=" + evil}).code, 0);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"outbox", "list"},
                                             {"outbox", "show", id},
                                             {"dead", "list"},
                                             {"dead", "groups"},
                                             {"tail"},
                                             {"tail", "--from", "outbox"},
                                             {"store", "read"},
                                             {"dead", "show", id}}) {
    const Said said = run(command);
    EXPECT_EQ(said.code, 0) << said.err;
    EXPECT_THAT(said.out, HasSubstr("Evil\\x1b[31m")) << command.back();
    EXPECT_THAT(said.out, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\x07")), Not(HasSubstr("\xC2\x9B")),
                                Not(HasSubstr("\xE2\x80\xAE"))))
        << command.back();
  }
}

TEST_P(CommandsTest, TailOfAnEmptyStoreSaysWhereTheOutboxIs) {
  publish("New");
  const Said empty = run({"tail"});
  EXPECT_EQ(empty.code, 0);
  EXPECT_EQ(empty.out, "");
  EXPECT_THAT(empty.err, HasSubstr("--from outbox"));
  EXPECT_EQ(run({"tail", "--from", "outbox"}).err, "");
  EXPECT_EQ(run({"store", "append", "Stored"}).code, 0);
  EXPECT_EQ(run({"tail"}).err, "");
}

TEST_P(CommandsTest, WhoReadsATableByProgramGetsAllOfIt) {
  const std::string error(200, 'e');
  dead("T", error);
  const Said said = run({"dead", "list"});
  EXPECT_THAT(said.out,
              AllOf(HasSubstr(error), Not(HasSubstr("…")), HasSubstr("AGGREGATE  AGGREGATE ID  ERROR")));
}

TEST_P(CommandsTest, ListsWhatIsInTheOutboxByStatus) {
  const std::string died = dead("Old", "no route");
  const std::string fresh = publish("New");
  EXPECT_EQ(json({"outbox", "list"}).as_array().size(), 2U);
  EXPECT_THAT(run({"outbox", "list"}).out, AllOf(HasSubstr("FAILURES"), Not(HasSubstr("ATTEMPTS"))))
      << "one that was delivered at once has none";
  EXPECT_EQ(json({"outbox", "list", "--status", "PENDING"}).as_array().size(), 1U);
  const boost::json::array news = json({"outbox", "list", "--status", "new"}).as_array();
  ASSERT_EQ(news.size(), 1U);
  EXPECT_EQ(std::string(news[0].at("id").as_string()), fresh);
  const boost::json::array deads = json({"outbox", "list", "--status", "DEAD", "--type", "Old"}).as_array();
  ASSERT_EQ(deads.size(), 1U);
  EXPECT_EQ(std::string(deads[0].at("id").as_string()), died);
  EXPECT_EQ(deads[0].at("lastError"), "no route");
  EXPECT_TRUE(json({"outbox", "list", "--status", "done"}).as_array().empty());
  EXPECT_EQ(run({"outbox", "list", "--status", "lost"}).code, 2);
}

TEST_P(CommandsTest, ShowsTheAttemptsThatFailed) {
  const std::string id = dead("A", "no \x1b[31mroute");
  const boost::json::array history = json({"outbox", "show", id}).at("history").as_array();
  ASSERT_EQ(history.size(), 1U);
  EXPECT_EQ(history[0].at("outcome"), "DEAD");
  EXPECT_EQ(history[0].at("node"), "test");
  for (const char* group : {"outbox", "dead"}) {
    const std::string said = run({group, "show", id}).out;
    EXPECT_THAT(said, AllOf(HasSubstr("\nATTEMPT"), HasSubstr("DEAD     no \\x1b[31mroute"),
                            Not(HasSubstr("\x1b[31m"))));
    EXPECT_THAT(said, Not(HasSubstr("history")));
  }
  EXPECT_THAT(run({"outbox", "show", publish("B")}).out, Not(HasSubstr("ATTEMPT")));
}

TEST_P(CommandsTest, DeadLettersAreGroupedEditedAndReplayed) {
  const std::string one = dead("A", "HTTP 500 of request 1");
  dead("A", "HTTP 500 of request 2");
  dead("B", "refused");
  const boost::json::array groups = json({"dead", "groups"}).as_array();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].at("events"), 2);
  EXPECT_EQ(groups[0].at("error"), "HTTP 500 of request #");

  EXPECT_EQ(run({"dead", "replay"}).code, 1) << "it must be said which";
  EXPECT_EQ(json({"dead", "replay", "--type", "A", "--dry-run"}).at("events"), 2);
  EXPECT_EQ(count("dead"), 3);
  EXPECT_EQ(json({"dead", "edit", one, "--data", R"({"n":2})"}).at("payload"), R"({"n":2})");
  EXPECT_EQ(json({"dead", "replay", "--type", "A"}).at("events"), 2);
  EXPECT_EQ(count("dead"), 1);
  EXPECT_EQ(count("pending"), 2);
  EXPECT_EQ(json({"outbox", "show", one}).at("payload"), R"({"n":2})");
  EXPECT_EQ(run({"dead", "show", one}).code, 1) << "it is not dead any more";
  EXPECT_EQ(json({"dead", "replay", "--error", "refused", "--before", "1h"}).at("events"), 0)
      << "it died just now";
  EXPECT_EQ(json({"dead", "purge", "--older-than", "1d"}).at("events"), 0);
}

TEST_P(CommandsTest, ReplayWithARateTakesEachOnceAndSpreadsThem) {
  for (int i = 0; i < 3; ++i) dead("A", "down");
  const boost::json::value answer = json({"dead", "replay", "--all", "--rate", "4"});
  EXPECT_EQ(answer.at("events"), 3);
  EXPECT_EQ(answer.at("left"), 0);
  EXPECT_EQ(answer.at("seconds").to_number<double>(), 0.75);
  EXPECT_EQ(count("dead"), 0);
  const OutboxPage pending = storage().outbox_search_store().search({.list = OutboxList::pending});
  ASSERT_EQ(pending.records.size(), 3U);
  EXPECT_GE(pending.records[2].available_at - pending.records[0].available_at, 500ms);
}

TEST_P(CommandsTest, TheOutboxIsSearchedForWhatIsStuckRequeuedAndCancelled) {
  const std::string one = publish("A");
  const std::string two = publish("B");
  ASSERT_EQ(storage().outbox_store().claim({.owner = "hangs", .lease = 1h, .limit = 1}).size(), 1U);
  EXPECT_TRUE(json({"outbox", "stuck"}).as_array().empty());
  EXPECT_THAT(run({"outbox", "stuck", "--for", "1h"}).out, HasSubstr("There are none"));
  sql("update " + table("outbox_event") + " set available_at = created_at - " +
      (storage().kind() == BackendKind::sqlite ? "7200000000" : "interval '2' hour"));
  const boost::json::array stuck = json({"outbox", "stuck", "--limit", "5"}).as_array();
  ASSERT_EQ(stuck.size(), 2U);
  EXPECT_EQ(std::string(stuck[0].at("id").as_string()), two) << "nobody takes it";
  EXPECT_EQ(stuck[1].at("owner"), "hangs");

  EXPECT_EQ(run({"outbox", "requeue"}).code, 1) << "it must be said which";
  EXPECT_EQ(json({"outbox", "requeue", "--stuck-for", "5m", "--dry-run"}).at("events"), 1);
  EXPECT_EQ(json({"outbox", "requeue", "--node", "else"}).at("events"), 0);
  EXPECT_THAT(run({"outbox", "requeue", "--node", "hangs"}).out,
              HasSubstr("postrider: 1 event put back into the outbox"));
  EXPECT_TRUE(json({"outbox", "show", one}).at("owner").is_null());
  EXPECT_EQ(json({"outbox", "requeue", "--all"}).at("events"), 0);

  EXPECT_EQ(json({"outbox", "cancel", "--all", "--dry-run"}).at("events"), 2);
  EXPECT_EQ(json({"outbox", "cancel", "--id", one, "--reason", "sold out"}).at("events"), 1);
  EXPECT_EQ(json({"outbox", "show", one}).at("lastError"), "cancelled: sold out");
  EXPECT_EQ(json({"outbox", "cancel", "--type", "B", "--status", "NEW"}).at("events"), 1);
  EXPECT_EQ(json({"dead", "show", two}).at("lastError"), "cancelled: from the command line");
  EXPECT_EQ(count("dead"), 2);
  EXPECT_EQ(json({"dead", "replay", "--error", "sold out"}).at("events"), 1);
  EXPECT_EQ(run({"outbox", "cancel", "--status", "DEAD"}).code, 1);
  EXPECT_EQ(run({"outbox", "stuck", "--for", "soon"}).code, 1);
}

TEST_P(CommandsTest, TheQueueIsListedRequeuedCancelledAndReplayed) {
  EventQueue queue(storage());
  const QueueId first = queue.publish(Event::json("Job", R"({"n":1})")).id();
  queue.publish(Event::json("Job", R"({"n":2})"));
  ASSERT_TRUE(queue.poll().has_value());
  EXPECT_EQ(json({"queue", "counts"}).at("processing"), 1);
  EXPECT_EQ(json({"queue", "list"}).as_array().size(), 2U);
  EXPECT_EQ(json({"queue", "list", "--status", "PROCESSING"}).as_array().size(), 1U);
  EXPECT_TRUE(json({"queue", "stuck"}).as_array().empty());
  const std::string id = std::to_string(static_cast<std::int64_t>(first));
  EXPECT_EQ(json({"queue", "show", id}).at("payload"), R"({"n":1})");
  EXPECT_EQ(run({"queue", "requeue"}).code, 1) << "it must be said which";
  EXPECT_EQ(json({"queue", "requeue", "--id", id}).at("events"), 1);
  EXPECT_EQ(json({"queue", "counts"}).at("processing"), 0);
  EXPECT_EQ(json({"queue", "cancel", "--all", "--reason", "test", "--dry-run"}).at("events"), 2);
  EXPECT_EQ(json({"queue", "cancel", "--all", "--reason", "test"}).at("events"), 2);
  EXPECT_THAT(run({"queue", "counts"}).out + run({"queue", "log"}).out + run({"queue", "show", id}).out,
              ::testing::Not(::testing::AnyOf(HasSubstr("[{"), HasSubstr("{}"), HasSubstr("[]"))))
      << "JSON is for -o json";
  const boost::json::array log = json({"queue", "log"}).as_array();
  ASSERT_EQ(log.size(), 2U);
  EXPECT_EQ(log[0].at("status"), "FAILED");
  EXPECT_THAT(run({"tail", "--from", "log"}).out, HasSubstr("FAILED  Job"));
  EXPECT_EQ(json({"queue", "replay", "--type", "Job"}).at("events"), 2);
  EXPECT_EQ(json({"queue", "counts"}).at("pending"), 2);
  EXPECT_EQ(json({"queue", "purge", "--older-than", "1d"}).at("events"), 0);
  EXPECT_EQ(json({"queue", "release", "--all"}).at("events"), 0);
  EXPECT_EQ(run({"queue", "show", "999999"}).code, 1);
  EXPECT_EQ(run({"queue", "list", "--status", "NONE"}).code, 1);
}

TEST_P(CommandsTest, ShowsTheAttemptsOfAQueuedEventThatFailed) {
  EventQueue queue(storage());
  const QueueId id = queue.publish(Event::json("Job", "{}")).id();
  const std::string number = std::to_string(static_cast<std::int64_t>(id));
  ASSERT_EQ(queue.fail(queue.poll().value().claim, "no luck"), Settled::applied);
  EXPECT_EQ(json({"queue", "show", number}).at("history").at(0).at("outcome"), "FAILED");
  EXPECT_THAT(run({"queue", "show", number}).out, AllOf(HasSubstr("\nATTEMPT"), HasSubstr("no luck")));
}

TEST_P(CommandsTest, TheStoreIsReadAndAppendedToOnACondition) {
  EXPECT_EQ(json({"store", "append", "Opened", "--tag", "account=1"}).at("lastPosition"), 1);
  const Said refused =
      run({"store", "append", "Opened", "--tag", "account=1", "--fail-if-tag", "account=1", "-o", "json"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_EQ(refused.json().at("appendConditionFailed"), true);
  EXPECT_EQ(
      json({"store", "append", "Closed", "--tag", "account=2", "--fail-if-tag", "account=1", "--after", "1"})
          .at("lastPosition"),
      2);
  EXPECT_EQ(json({"store", "head"}).at("head"), 2);
  EXPECT_EQ(json({"store", "read"}).as_array().size(), 2U);
  EXPECT_EQ(json({"store", "read", "--tag", "account=2"}).as_array().at(0).at("type"), "Closed");
  EXPECT_EQ(json({"store", "read", "--type", "Opened", "--type", "Closed", "--after", "1"}).as_array().size(),
            1U);
  EXPECT_EQ(json({"store", "read", "--backwards", "--limit", "1"}).as_array().at(0).at("position"), 2);
  EXPECT_EQ(run({"store", "read", "--follow", "--limit", "2", "-o", "json"}).code, 0) << "enough is an end";
  EXPECT_EQ(run({"store", "append", "Untagged", "--data", "{}"}).code, 0);
  EXPECT_EQ(run({"store", "append", "Tagged", "--tag", "a=1", "--tag", "b=2", "--data", "{}"}).code, 0);
  const std::string lines = run({"store", "read", "--after", "2"}).out;
  EXPECT_THAT(lines, AllOf(HasSubstr("  Untagged  -  "), HasSubstr("  Tagged  a=1,b=2  ")))
      << "the fields do not shift";
}

TEST_P(CommandsTest, DeadLettersOfTheRelayAreListedAndDiscarded) {
  (void)run({"store", "append", "Refused", "--tag", "wallet=1", "--data", R"({"n":1})"});
  storage().progress_store().add(std::vector<NewPair>{{{"wallets", "kafka"}, Position{0}}});
  for (const char* const row : {"'wallets', 'kafka', 1, 'bad\x1b[31m'", "'wallets', 'kafka', 2, 'gone'",
                                "'other', 'kafka', 1, 'bad'"}) {
    sql("insert into " + table("outbox_dead_letter") +
        " (topic, publisher, position, error, failed_at) select " + row + ", created_at from " +
        table("outbox_topic_progress"));
  }
  const boost::json::array all = json({"topics", "dead"}).as_array();
  ASSERT_EQ(all.size(), 3U);
  const boost::json::array some = json({"topics", "dead", "--topic", "wallets", "--limit", "1"}).as_array();
  ASSERT_EQ(some.size(), 1U);
  EXPECT_EQ(some[0].at("position"), 1);
  EXPECT_EQ(some[0].at("event").at("type"), "Refused");
  EXPECT_EQ(some[0].at("event").at("payload"), R"({"n":1})");
  EXPECT_EQ(json({"topics", "dead", "--topic", "wallets", "--after", "1"}).as_array().at(0).at("event"),
            nullptr);
  const Said table = run({"topics", "dead"});
  EXPECT_THAT(table.out, AllOf(HasSubstr("Refused"), HasSubstr("(removed)"), HasSubstr("bad\\x1b[31m"),
                               Not(HasSubstr("\x1b"))));

  EXPECT_EQ(run({"topics", "rewind", "--all", "--position", "0"}).code, 0) << "as the REST API calls it";
  EXPECT_EQ(run({"topics", "discard"}).code, 1) << "it must be said which";
  EXPECT_EQ(json({"topics", "discard", "--all", "--dry-run"}).at("events"), 3);
  EXPECT_EQ(json({"topics", "discard", "--topic", "wallets", "--until", "1"}).at("events"), 1);
  EXPECT_THAT(run({"topics", "discard", "--publisher", "kafka"}).out, HasSubstr("2 dead letters discarded"));
  EXPECT_EQ(run({"topics", "forget"}).code, 1) << "it must be said which";
  EXPECT_EQ(json({"topics", "forget", "--topic", "wallets"}).at("forgotten"), 1);
  EXPECT_EQ(run({"topics", "forget", "--topic", "wallets"}).code, 1) << "there is none any more";
  EXPECT_TRUE(json({"topics", "dead"}).as_array().empty());
  EXPECT_EQ(json({"store", "head"}).at("head"), 1) << "the event stays";
}

TEST_P(CommandsTest, StatusSaysHowEverythingStands) {
  dead("A", "x");
  publish("B");
  (void)run({"store", "append", "C"});
  const boost::json::value status = json({"status"});
  EXPECT_EQ(status.at("outbox").at("dead"), 1);
  EXPECT_EQ(status.at("outbox").at("pending"), 1);
  EXPECT_EQ(status.at("store").at("head"), 1);
  EXPECT_EQ(status.at("schemaVersion"), status.at("schemaNeeded"));
  EXPECT_THAT(run({"status"}).out,
              AllOf(HasSubstr("1 pending (0 tried and not taken), 0 done, 1 dead"), HasSubstr("leaders")));
}

TEST_P(CommandsTest, EveryLivingNodeIsSeenWithWhatItLeads) {
  ASSERT_TRUE(storage().lease_store().acquire("leader", "n1", 60s, false, {}));
  storage().lease_store().announce("standby/n2", 60s);
  const boost::json::value nodes = json({"leaders"});
  ASSERT_EQ(nodes.as_array().size(), 2U);
  EXPECT_EQ(nodes.at(0).at("node"), "n1");
  EXPECT_EQ(nodes.at(0).at("lease"), "leader");
  EXPECT_EQ(nodes.at(1).at("node"), "n2");
  EXPECT_EQ(nodes.at(1).at("lease"), nullptr) << "it leads nothing";
  EXPECT_EQ(nodes.at(1).at("alive"), true);
  EXPECT_EQ(nodes.at(1).at("pairs"), 0);
  const boost::json::value status = json({"status"});
  EXPECT_EQ(status.at("leaders").as_array().size(), 1U);
  EXPECT_EQ(status.at("standbys").at(0).at("node"), "n2");
  EXPECT_THAT(run({"status"}).out, HasSubstr("n1 (0 pairs, epoch 1); standing by: n2"));
  storage().lease_store().withdraw("standby/n2");
  EXPECT_EQ(json({"leaders"}).as_array().size(), 1U);
}

TEST_P(CommandsTest, MigrateGoesUpAndDownAndSaysSo) {
  const boost::json::value nothing = json({"migrate"});
  EXPECT_EQ(nothing.at("from"), nothing.at("to"));
  EXPECT_EQ(run({"migrate", "--to", "0"}).code, 1) << "tables are not dropped without a word";
  const Said plan = run({"migrate", "--to", "0", "--dry-run"});
  EXPECT_EQ(plan.code, 0);
  EXPECT_THAT(plan.out, HasSubstr("DROP TABLE"));
  EXPECT_EQ(json({"outbox", "counts"}).at("pending"), 0) << "nothing has happened";
  EXPECT_EQ(json({"migrate", "--to", "0", "--yes"}).at("to"), 0);
  EXPECT_EQ(run({"outbox", "counts"}).code, 1);
  const boost::json::value status = json({"status"});
  EXPECT_EQ(status.at("schemaVersion"), 0);
  EXPECT_THAT(run({"status"}).out, HasSubstr("postrider migrate"));
  EXPECT_THAT(run({"migrate"}).out, HasSubstr("version 0 → "));
  const Said unknown = run({"migrate", "--to", "9"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("there is no such version. Hint: there are 0, 1, 2, 10, 11, "));
  EXPECT_EQ(json({"outbox", "counts"}).at("pending"), 0);
}

class FollowTest : public CommandsTest {
 protected:
  std::unique_ptr<test::ChildProcess> follow(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), test::program_path());
    return std::make_unique<test::ChildProcess>(arguments, line_.environment);
  }
};
POSTRIDER_FOR_EACH_BACKEND(FollowTest);

TEST_P(FollowTest, TailFollowsEachSourceAndEndsWithASignal) {
  struct Source {
    const char* name;
    std::function<void(const std::string&)> add;
  };
  EventQueue queue(storage());
  const std::vector<Source> sources{{"store",
                                     [&](const std::string& type) {
                                       EXPECT_EQ(run({"store", "append", type}).code, 0);
                                     }},
                                    {"outbox", [&](const std::string& type) { publish(type); }},
                                    {"log", [&](const std::string& type) {
                                       queue.publish(Event::json(type, "{}"));
                                       queue.finalize(queue.poll().value().claim);
                                     }}};
  for (const Source& source : sources) {
    source.add("Before");
    const auto child = follow({"tail", "-f", "--from", source.name, "-n", "1"});
    EXPECT_THAT(child->read_line().value_or(""), HasSubstr("Before")) << source.name;
    source.add("After");
    EXPECT_THAT(child->read_line().value_or(""), HasSubstr("After")) << source.name;
    child->signal(SIGINT);
    EXPECT_TRUE(child->wait().value().ok()) << source.name;
  }
}

TEST_P(FollowTest, AReaderWhoLeavesIsAGoodEnd) {
  publish("A");
  for (const char* const command : {"tail -f --from outbox", "status --watch -o json", "store read -f"}) {
    (void)run({"store", "append", "B"});
    // What the program ends with, by the shell's own account; the reader leaves after one line.
    test::ChildProcess child(
        {"/bin/bash", "-c",
         test::program_path() + " " + command + " | head -n 1 >/dev/null; echo ended ${PIPESTATUS[0]}"},
        line_.environment);
    EXPECT_EQ(child.read_line().value_or(""), "ended 0") << command;
  }
}

TEST_P(FollowTest, StatusWatchesUntilASignal) {
  const auto child = follow({"status", "--watch", "-o", "json"});
  EXPECT_THAT(child->read_line().value_or(""), StartsWith("{\"at\""));
  EXPECT_THAT(child->read_line().value_or(""), StartsWith("{\"at\""));
  child->signal(SIGTERM);
  EXPECT_TRUE(child->wait().value().ok());
}

}  // namespace
}  // namespace postrider::cli
