// SPDX-License-Identifier: Apache-2.0
// doctor, verify and check: they find what is wrong, and nothing else.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>

#include "app/cli/cli_fixture.hpp"
#include "postrider/event_queue.hpp"
#include "postrider/event_store.hpp"
#include "storage/outbox_store.hpp"
#include "support/tls_identity.hpp"

namespace postrider::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

/// The finding of this name; empty text when there is none.
std::string status_of(const boost::json::value& findings, std::string_view name) {
  for (const boost::json::value& one : findings.as_array()) {
    if (std::string_view(one.at("name").as_string()).starts_with(name))
      return std::string(one.at("status").as_string());
  }
  return {};
}

class VerifyTest : public CliTest {
 protected:
  void fill() {
    for (const char* type : {"A", "B", "C"}) {
      EXPECT_EQ(run({"publish", type, "--key", "k"}).code, 0);
      EXPECT_EQ(run({"store", "append", type, "--tag", "n=1"}).code, 0);
    }
    EventQueue queue(storage());
    for (int i = 0; i < 3; ++i) queue.publish(Event::json("Job", "{}"));
    const auto claimed = queue.poll(2);
    ASSERT_EQ(claimed.size(), 2U);
    queue.finalize(claimed[0].claim);
    auto held = storage().outbox_store().claim({.owner = "n", .lease = 60s, .limit = 3});
    ASSERT_EQ(held.size(), 3U);
    const std::vector<Completion> results{
        {.lease = held[0].lease}, {.lease = held[1].lease, .kind = Completion::Kind::dead, .error = "x"}};
    ASSERT_EQ(storage().outbox_store().complete(results), 2U);
  }
  void expect_violated(const std::string& name) {
    const Said said = run({"verify", "-o", "json"});
    EXPECT_EQ(said.code, 1) << said.out << said.err;
    EXPECT_EQ(status_of(said.json(), name), "violated") << said.out;
  }
};
POSTRIDER_FOR_EACH_BACKEND(VerifyTest);

TEST_P(VerifyTest, ADatabaseInUseIsFine) {
  fill();
  const Said said = run({"verify"});
  EXPECT_EQ(said.code, 0) << said.out << said.err;
  EXPECT_THAT(said.out, AllOf(HasSubstr("none is violated"), Not(HasSubstr("skipped"))));
  EXPECT_EQ(said.err, "");
}

TEST_P(VerifyTest, FindsARowThatIsLeasedAndDone) {
  fill();
  sql("update " + table("outbox_event") + " set owner = 'ghost' where status = 1");
  expect_violated("outbox.leased-and-done");
}

TEST_P(VerifyTest, FindsFinishedRowsThatDoNotSayWhen) {
  fill();
  sql("update " + table("outbox_event") + " set done_at = null where status = 3");
  expect_violated("outbox.finished");
}

TEST_P(VerifyTest, FindsAnEventThatIsInTheQueueAndInTheLog) {
  fill();
  sql("update " + table("event_queue") + " set id = (select min(id) from " + table("event_log") +
      ") where status = 0");
  expect_violated("queue.once");
}

TEST_P(VerifyTest, FindsProgressBeyondTheEnd) {
  fill();
  const std::string now = backend() == "sqlite" ? "1" : "current_timestamp";
  sql("insert into " + table("outbox_topic_progress") +
      " (topic, publisher, last_position, created_at, updated_at) values ('t', 'p', 99, " + now + ", " + now +
      ")");
  expect_violated("relay.position");
}

TEST_P(VerifyTest, FindsAProjectionBeyondTheEnd) {
  fill();
  const std::string now = backend() == "sqlite" ? "1" : "current_timestamp";
  sql("insert into " + table("event_projection") +
      " (name, version, position, created_at, updated_at) values ('p', 1, 9999, " + now + ", " + now + ")");
  expect_violated("projections.position");
}

TEST_P(VerifyTest, FindsAnEventThatNoConditionWouldSee) {
  fill();
  sql("delete from " + table("event_tags") +
      " where position = 2 and hash = (select h from (select min(hash) as h from " + table("event_tags") +
      " where position = 2) as x)");
  expect_violated("store.index");
}

TEST_P(VerifyTest, FindsNumbersThatWouldBeGivenAgain) {
  fill();
  if (backend() == "postgres") {
    sql("select setval('" + table("event_log_numbers") + "', 1, false)");
    sql("update " + table("event_log") + " set seq = 5");
  } else if (backend() == "sqlite") {
    sql("update sqlite_sequence set seq = 0 where name = '" + table("event_log") + "'");
  } else {
    sql("update " + table("event_log_head") + " set last = 0");
  }
  expect_violated("log.next-number");
}

TEST_P(VerifyTest, FindsPayloadsThatNobodyCanRead) {
  if (backend() == "postgres") GTEST_SKIP() << "PostgreSQL takes nothing but JSON there";
  fill();
  sql("update " + table("event_queue") + " set payload = '{bad' where status = 0");
  expect_violated("queue.readable");
}

TEST_P(VerifyTest, MissingPositionsAreANote) {
  fill();
  sql("delete from " + table("events") + " where position = 2");
  const Said said = run({"verify", "-o", "json"});
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_EQ(status_of(said.json(), "store.gaps"), "note");
}

class DoctorTest : public CliTest {};
POSTRIDER_FOR_EACH_BACKEND(DoctorTest);

TEST_P(DoctorTest, LooksAtTheServerTheTablesAndTheClock) {
  const Said said = run({"doctor", "-o", "json"});
  const boost::json::value findings = said.json();
  EXPECT_EQ(status_of(findings, "database"), "ok");
  EXPECT_EQ(status_of(findings, "schema"), "ok");
  EXPECT_EQ(status_of(findings, "tables"), "ok");
  if (backend() == "sqlite") {
    EXPECT_EQ(status_of(findings, "journal_mode"), "ok");
    EXPECT_EQ(said.code, 0) << said.out;
  } else {
    EXPECT_EQ(status_of(findings, "clock"), "ok");
    EXPECT_EQ(status_of(findings, backend() == "postgres" ? "synchronous_commit" : "sql_mode"), "ok")
        << said.out;
    EXPECT_NE(status_of(findings, backend() == "postgres" ? "fsync" : "innodb_flush_log_at_trx_commit"), "");
  }
  // Exit code and words agree; test servers are not durable, and said to be so.
  EXPECT_EQ(said.code == 0, said.out.find("\"finding\"") == std::string::npos) << said.out;
}

TEST_P(DoctorTest, MissingAndOldTablesAreFindingsWithACommand) {
  sql("drop table " + table("outbox_dead_letter"));
  Said said = run({"doctor"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.out, AllOf(HasSubstr("finding   tables: "), HasSubstr("outbox_dead_letter")));
  sql(backend() == "sqlite" ? "create table " + table("outbox_dead_letter") + " (x integer) strict"
                            : "create table " + table("outbox_dead_letter") + " (x integer)");
  EXPECT_EQ(run({"migrate", "--to", "2", "--yes"}).code, 0);
  said = run({"doctor"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("finding   schema: it has version 2"), HasSubstr("→ postrider migrate")));
}

TEST_P(DoctorTest, NamesATransactionThatIsOpenForLong) {
  if (backend() == "sqlite") GTEST_SKIP() << "a file has no sessions to list";
  // Five minutes are not waited for: what is asked is whether the question can be put, and has an answer.
  const boost::json::value findings = run({"doctor", "-o", "json"}).json();
  EXPECT_EQ(status_of(findings, "transactions"), "ok");
}

TEST(Doctor, ADatabaseThatIsAwayOrNotThereIsAFinding) {
  const test::TempDir dir;
  CommandLine line;
  const auto missing = line.run({"doctor", "--storage", "sqlite:" + dir.file("no.db")});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.out, HasSubstr("→ postrider migrate --storage sqlite:"));
  EXPECT_FALSE(std::filesystem::exists(dir.file("no.db")));
  EXPECT_EQ(line.run({"doctor"}).code, 1) << "no database is named";
}

TEST(Doctor, AdvisesNoSecondDatabaseBesideThatOfAConfiguration) {
  const test::TempDir dir;
  CommandLine line;
  std::ofstream(dir.file("whole.toml")) << "[storage]\nurl = \"sqlite:" << dir.file("x.db") << "\"\n";
  CommandLine::Said said = line.run({"doctor", "-c", dir.file("whole.toml")});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(
      said.out,
      AllOf(HasSubstr("there is no file " + dir.file("x.db")), HasSubstr("the user that serve runs as"),
            HasSubstr("postrider migrate -c " + dir.file("whole.toml")), Not(HasSubstr("--storage"))));
  // Which file a relative path means depends on the folder: both are named.
  line.folder = dir.path().string();
  std::ofstream(dir.file("relative.toml")) << "[storage]\nurl = \"sqlite:x.db\"\n";
  said = line.run({"doctor", "-c", dir.file("relative.toml")});
  EXPECT_THAT(said.out, AllOf(HasSubstr("there is no file " + dir.file("x.db")),
                              HasSubstr("go to that of serve"), Not(HasSubstr("--storage"))));
  EXPECT_THAT(
      line.run({"status", "-c", dir.file("relative.toml")}).err,
      AllOf(HasSubstr("there is no such file in " + dir.path().string()), HasSubstr("write the whole path")));
  EXPECT_FALSE(std::filesystem::exists(dir.file("x.db")));
}

TEST(Check, DoesNotNameItselfTwice) {
  const test::TempDir dir;
  const CommandLine::Said said = CommandLine().run({"check", "--storage", "sqlite:" + dir.file("none.db")});
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.out, StartsWith("POSTRIDER UNKNOWN - cannot open sqlite:"));
}

TEST(Doctor, AdvisesToEndATokenThatHasExpired) {
  const test::TempDir dir;
  std::ofstream(dir.file("p.toml")) << "[storage]\nurl = \"sqlite:" << dir.file("x.db")
                                    << "\"\n[server]\ntoken-file = \"" << dir.file("tokens") << "\"\n";
  std::ofstream(dir.file("tokens")) << "old viewer " << std::string(64, 'a') << " 2020-01-01T00:00:00Z\n";
  EXPECT_THAT(CommandLine().run({"doctor", "-c", dir.file("p.toml")}).out,
              HasSubstr("→ end each: postrider token revoke --file " + dir.file("tokens") + " --name NAME"));
}

TEST(Doctor, LooksAtTheFilesOfAConfiguration) {
  const test::TempDir dir;
  const test::TlsIdentity authority = test::TlsIdentity::authority("test");
  const auto use = [&](int days) {
    const test::TlsIdentity identity = test::TlsIdentity::server(authority, "DNS:localhost", days);
    identity.save_certificate(dir.file("cert.pem"));
    identity.save_key(dir.file("key.pem"));
  };
  use(100);
  CommandLine line;
  EXPECT_EQ(line.run({"token", "create", "--file", dir.file("tokens"), "--name", "me"}).code, 0);
  const std::string config = dir.file("p.toml");
  std::ofstream(config) << "[storage]\nurl = \"sqlite:" + dir.file("x.db") +
                               "\"\n[server]\ntls-certificate = \"" + dir.file("cert.pem") +
                               "\"\ntls-key = \"" + dir.file("key.pem") + "\"\ntoken-file = \"" +
                               dir.file("tokens") + "\"\n";
  ASSERT_EQ(line.run({"migrate", "-c", config}).code, 0);
  ::chmod(config.c_str(), 0666);
  ::chmod(dir.file("key.pem").c_str(), 0644);
  boost::json::value findings = line.run({"doctor", "-c", config, "-o", "json"}).json();
  EXPECT_EQ(status_of(findings, "configuration"), "finding") << "others may write it";
  EXPECT_EQ(status_of(findings, "key"), "finding") << "others may read it";
  EXPECT_EQ(status_of(findings, "token file"), "ok");
  EXPECT_EQ(status_of(findings, "certificate"), "ok");
  ::chmod(config.c_str(), 0600);
  ::chmod(dir.file("key.pem").c_str(), 0600);
  findings = line.run({"doctor", "-c", config, "-o", "json"}).json();
  EXPECT_EQ(status_of(findings, "configuration"), "ok");
  EXPECT_EQ(status_of(findings, "key"), "ok");
  for (const int days : {10, 0}) {  // soon, and yesterday
    use(days);
    findings = line.run({"doctor", "-c", config, "-o", "json"}).json();
    EXPECT_EQ(status_of(findings, "certificate"), "finding") << days;
  }
  std::ofstream(dir.file("cert.pem")) << "nonsense";
  findings = line.run({"doctor", "-c", config, "-o", "json"}).json();
  EXPECT_EQ(status_of(findings, "certificate"), "finding");
}

class CheckTest : public CliTest {};
POSTRIDER_FOR_EACH_BACKEND(CheckTest);

TEST_P(CheckTest, SaysOkWarningCriticalAndUnknown) {
  const Said fine = run({"check"});
  EXPECT_EQ(fine.code, 0) << fine.out;
  EXPECT_THAT(fine.out, AllOf(StartsWith("POSTRIDER OK - nothing is stuck | outbox_pending=0;;;0"),
                              HasSubstr(" relay_lag_events=0;10000;100000;0")));
  EXPECT_EQ(run({"publish", "T"}).code, 0);
  const auto claimed = storage().outbox_store().claim({.owner = "n", .lease = 60s, .limit = 1});
  ASSERT_EQ(claimed.size(), 1U);
  const Completion dead{.lease = claimed[0].lease, .kind = Completion::Kind::dead, .error = "x"};
  ASSERT_EQ(storage().outbox_store().complete({&dead, 1}), 1U);
  const Said warning = run({"check"});
  EXPECT_EQ(warning.code, 1);
  EXPECT_THAT(warning.out, StartsWith("POSTRIDER WARNING - outbox: dead letters 1 |"));
  EXPECT_EQ(run({"check", "--crit-dead", "1"}).code, 2);
  EXPECT_EQ(run({"check", "--warn-dead", "2"}).code, 0);
  EXPECT_EQ(json({"check", "--warn-dead", "2"}).at("status"), "OK");
  const Said metrics = run({"check", "--format", "prometheus"});
  EXPECT_THAT(metrics.out, AllOf(HasSubstr("\npostrider_check_state 1\n"),
                                 HasSubstr("\npostrider_check_outbox_dead 1\n")));
  EXPECT_EQ(run({"check", "--warn-dead", "many"}).code, 3) << "to Nagios 2 would be an alarm";
  EXPECT_EQ(run({"check", "--warn-age", "soon"}).code, 3);
  const std::string now = backend() == "sqlite" ? "1" : "current_timestamp";
  sql("insert into " + table("outbox_topic_progress") +
      " (topic, publisher, status, created_at, updated_at) values ('t', 'p', 'FAILED', " + now + ", " + now +
      ")");
  sql("insert into " + table("outbox_dead_letter") +
      " (topic, publisher, position, failed_at) values ('t', 'p', 1, " + now + ")");
  const Said failed = run({"check"});
  EXPECT_EQ(failed.code, 2);
  EXPECT_THAT(failed.out,
              AllOf(HasSubstr("relay: dead letters 1"), HasSubstr(" relay_dead_letters=1;1;1000;0")));
  EXPECT_THAT(failed.out, HasSubstr("1 pair FAILED: t/p"));
}

TEST_P(CheckTest, WhatIsRetriedIsToldAndCountsByHowLongItWaits) {
  EXPECT_EQ(run({"publish", "T"}).code, 0);
  const auto claimed = storage().outbox_store().claim({.owner = "n", .lease = 60s, .limit = 1});
  ASSERT_EQ(claimed.size(), 1U);
  const Completion away{.lease = claimed[0].lease,
                        .kind = Completion::Kind::later,
                        .delay = 1h,
                        .error = "kafka:9092: connection | refused"};
  ASSERT_EQ(storage().outbox_store().complete({&away, 1}), 1U);
  EXPECT_THAT(run({"status"}).out, HasSubstr("not yet: see what was tried and not taken"));
  const Said young = run({"check"});
  EXPECT_EQ(young.code, 0) << young.out;
  EXPECT_THAT(young.out,
              StartsWith("POSTRIDER OK - outbox: 1 tried and not taken, the last error: "
                         "kafka:9092: connection / refused | outbox_pending=1;;;0 outbox_retrying=1;;;0 "));
  EXPECT_THAT(
      run({"status"}).out,
      HasSubstr("1 pending (1 tried and not taken: kafka:9092: connection | refused), 0 done, 0 dead"));
  EXPECT_THAT(run({"outbox", "list"}).out, HasSubstr("connection | refused"));

  sql("update " + table("outbox_event") + " set created_at = created_at - " +
      (backend() == "sqlite" ? "600000000" : "interval '10' minute"));
  const Said old = run({"check"});
  EXPECT_EQ(old.code, 1) << old.out;
  EXPECT_THAT(old.out, AllOf(StartsWith("POSTRIDER WARNING - outbox: oldest event waits 10m"),
                             HasSubstr("1 tried and not taken, the last error: ")));
  EXPECT_THAT(run({"status"}).out,
              AllOf(::testing::ContainsRegex("oldest waits (10m|60)"),
                    HasSubstr("1 event waits in the outbox, the oldest for 10 min; 1 was "
                              "tried and not taken, the last error: kafka:9092"),
                    HasSubstr("tried again as long as a node with [outbox] enabled = true runs")))
      << "no daemon is known to run";
  EXPECT_THAT(std::string(json({"status"}).at("outbox").at("lastError").as_string()), HasSubstr("refused"));
}

TEST(Check, ADatabaseThatIsAwayIsUnknown) {
  CommandLine line;
  const auto said = line.run({"check", "--storage", "sqlite:/no/such/file.db"});
  EXPECT_EQ(said.code, 3);
  EXPECT_THAT(said.out, StartsWith("POSTRIDER UNKNOWN - "));
}

}  // namespace
}  // namespace postrider::cli
