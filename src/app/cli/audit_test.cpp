// SPDX-License-Identifier: Apache-2.0
// Every command that changes something leaves its row in the audit, on every database.
#include "app/cli/audit.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>

#include "app/cli/admin_options.hpp"
#include "app/cli/cli_fixture.hpp"
#include "app/cli/command_tree.hpp"
#include "app/cli/program.hpp"
#include "postrider/error.hpp"
#include "postrider/event_queue.hpp"
#include "postrider/queue_admin.hpp"
#include "storage/audit_store.hpp"
#include "storage/entry_store.hpp"
#include "storage/lease_store.hpp"
#include "storage/outbox_store.hpp"
#include "storage/progress_store.hpp"
#include "storage/queue_store.hpp"
#include "support/eventually.hpp"

namespace postrider::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

/// Each command that changes something, and one way to have it do so. One that is missing here fails the
/// test: whoever adds a command says whether it changes anything.
const std::map<std::string, std::vector<std::string>>& changing() {
  static const std::map<std::string, std::vector<std::string>> all{
      {"token create", {"--name", "anna", "--role", "operator"}},
      {"token revoke", {"--name", "anna"}},
      {"eventlog purge", {"--older-than", "90d"}},
      {"migrate", {}},
      {"outbox requeue", {"--id", "taken"}},
      {"outbox cancel", {"--id", "waits", "--reason", "sold out"}},
      {"outbox purge", {"--older-than", "7d"}},
      {"dead replay", {"--error", "no route"}},
      {"dead edit", {"dead1", "--data", R"({"secret":1})", "--header", "a=b"}},
      {"dead purge", {"--older-than", "7d"}},
      {"queue requeue", {"--id", "1", "--id", "2"}},
      {"queue cancel", {"--all", "--reason", "it's over"}},
      {"queue release", {"--all"}},
      {"queue replay", {"--all"}},
      {"queue purge", {"--older-than", "30d", "--even-unread"}},
      {"topics pause", {"--topic", "t"}},
      {"topics resume", {"--topic", "t"}},
      {"topics reset", {"--publisher", "p"}},
      {"topics rewind", {"--to", "0", "--all"}},
      {"topics discard", {"--all"}},
      {"topics forget", {"--topic", "old"}},
      {"projections pause", {"view"}},
      {"projections resume", {"view", "--version", "1"}},
  };
  return all;
}

/// The others: they look, serve until they are stopped, or bring events, which are in tables of their own.
const std::set<std::string>& harmless() {
  static const std::set<std::string> all{"demo",
                                         "dev",
                                         "bench",
                                         "serve",
                                         "config check",
                                         "config print",
                                         "token list",
                                         "publish",
                                         "status",
                                         "tail",
                                         "outbox counts",
                                         "outbox list",
                                         "outbox stuck",
                                         "outbox show",
                                         "dead list",
                                         "dead groups",
                                         "dead show",
                                         "queue counts",
                                         "queue list",
                                         "queue stuck",
                                         "queue show",
                                         "queue log",
                                         "topics list",
                                         "topics dead",
                                         "leaders",
                                         "store head",
                                         "store read",
                                         "store append",
                                         "spill show",
                                         "doctor",
                                         "verify",
                                         "check",
                                         "explain",
                                         "help",
                                         "completion bash",
                                         "completion zsh",
                                         "completion fish",
                                         "man",
                                         "version",
                                         "projections list"};
  return all;
}

std::vector<std::string> words_of(const std::string& name) {
  const std::size_t space = name.find(' ');
  if (space == std::string::npos) return {name};
  return {name.substr(0, space), name.substr(space + 1)};
}

TEST(Audit, EveryCommandSaysWhetherItChangesAnything) {
  CLI::App app{"Postrider", "postrider"};
  Chosen chosen;
  add_all_commands(app, chosen, {.version = "test"});
  std::set<std::string> changes;
  for (const auto& [command, open] : chosen.changes) changes.insert(given_text(*command));
  std::set<std::string> expected;
  for (const auto& [name, arguments] : changing()) expected.insert(name);
  EXPECT_EQ(changes, expected);
  const std::string head = "postrider ";
  each_command(describe(app), [&](const CommandText& command) {
    if (!command.commands.empty() || command.name().size() <= head.size()) return;
    const std::string name = command.name().substr(head.size());
    EXPECT_EQ(harmless().count(name) + expected.count(name), 1U)
        << "say here whether it changes anything: " << name;
  });
}

class AuditTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    storage().progress_store().add(std::vector<NewPair>{{{"t", "p"}, Position{0}}});
    sql("insert into " + table("event_projection") +
        " (name, version, live, created_at, updated_at) select " + "'view', 1, " +
        (backend() == "postgres" ? "true" : "1") + ", created_at, updated_at from " +
        table("outbox_topic_progress"));
    storage().progress_store().add(std::vector<NewPair>{{{"old", "p"}, Position{0}}});
    ASSERT_EQ(run({"publish", "T", "--id", "dead1"}).code, 0);
    const auto claimed = storage().outbox_store().claim({.owner = "x", .lease = 60s, .limit = 1});
    ASSERT_EQ(claimed.size(), 1U);
    const Completion dead{.lease = claimed[0].lease, .kind = Completion::Kind::dead, .error = "no route"};
    ASSERT_EQ(storage().outbox_store().complete({&dead, 1}), 1U);
    EventQueue(storage()).publish(Event::json("Job", "{}"));
    EventQueue(storage()).publish(Event::json("Job", "{}"));
  }
  static QueueFilter of_type(const std::string& type) {
    QueueFilter filter;
    filter.types = std::vector<std::string>{type};
    return filter;
  }
  /// The same tables, long ago.
  [[nodiscard]] std::unique_ptr<Storage> long_ago() {
    StorageOptions options = database_->options();
    options.clock = &clock_;
    return database_->open_another(options);
  }
  /// An event of the outbox that came to its end long ago.
  void finish_long_ago(const Completion::Kind kind) {
    const std::unique_ptr<Storage> past = long_ago();
    const Event event = Event::json("Old", "{}");
    Transaction tx = past->begin();
    const NewOutboxRow row{.event = &event};
    past->outbox_store().insert(tx, "x", {&row, 1});
    tx.commit();
    const auto claimed = past->outbox_store().claim({.owner = "x", .lease = 60s, .limit = 1});
    ASSERT_EQ(claimed.size(), 1U);
    const Completion end{.lease = claimed[0].lease, .kind = kind};
    ASSERT_EQ(past->outbox_store().complete({&end, 1}), 1U);
  }
  /// What a command that counts events needs to find one.
  void prepare(const std::string& name) {
    if (name == "dead purge") finish_long_ago(Completion::Kind::dead);
    if (name == "outbox purge") finish_long_ago(Completion::Kind::done);
    if (name == "outbox cancel") {
      EXPECT_EQ(run({"publish", "T", "--id", "waits"}).code, 0);
    }
    if (name == "outbox requeue") {
      EXPECT_EQ(run({"publish", "T", "--id", "taken"}).code, 0);
      EXPECT_FALSE(storage().outbox_store().claim({.owner = "x", .lease = 60s, .limit = 10}).empty());
    }
    if (name == "eventlog purge") {
      Entry entry;
      entry.application_id = "a";
      entry.process_name = "P";
      entry.process_status = "S";
      entry.occurred_at = Clock::system().now() - 100 * 24h;
      storage().entry_store().insert({&entry, 1});
    }
    if (name == "migrate") storage().migrate({.target = storage().migrate({.dry_run = true}).to - 1});
    if (name == "queue requeue") {
      const std::unique_ptr<Storage> past = long_ago();
      EventQueue(*past).publish(Event::json("Old", "{}"));
      EXPECT_EQ(QueueAdmin(*past).cancel(of_type("Old"), "over"), 1) << "the log's first entry, to be purged";
      EXPECT_EQ(storage().queue_store().claim({.owner = "x", .lease = 60s, .limit = 2}).events.size(), 2U);
    }
    if (name == "queue release") {
      EventQueue(storage()).publish(Event::json("Job", "{}"));
      sql("update " + table("event_queue") + " set quarantined_at = created_at");
    }
    if (name == "topics discard") {
      const auto epoch = storage().lease_store().acquire("leader", "n1", 60s, false, {});
      ASSERT_TRUE(epoch.has_value());
      const PairName pair{"t", "p"};
      const auto led = storage().progress_store().take({"leader", "n1", *epoch}, Taking::any, {&pair, 1}, {});
      ASSERT_EQ(led.size(), 1U);
      const ProgressStep step{
          .name = pair, .epoch = led[0].epoch, .from = Position{0}, .to = Position{1}, .dead = "no"};
      ASSERT_TRUE(storage().progress_store().advance({&step, 1})[0]);
    }
  }
  std::vector<AuditEntry> entries() { return storage().audit_store().list({.limit = 1000}); }
  std::vector<std::string> texts() {
    std::vector<std::string> all;
    for (const AuditEntry& entry : entries()) all.push_back(entry.what);
    return all;
  }
  std::vector<std::string> argv_of(const std::string& name, const std::vector<std::string>& arguments) {
    std::vector<std::string> argv = words_of(name);
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    if (name.starts_with("token ")) argv.insert(argv.end(), {"--file", dir_.file("tokens")});
    return argv;
  }
  test::TempDir dir_;
  ManualClock clock_{Clock::system().now() - 100 * 24h};
};
POSTRIDER_FOR_EACH_BACKEND(AuditTest);

TEST_P(AuditTest, EveryChangeLeavesOneRow) {
  std::size_t rows = 0;
  std::vector<std::string> names{"queue requeue"};  // before its events are cancelled
  for (const auto& [name, arguments] : changing()) {
    if (name != names.front()) names.push_back(name);
  }
  for (const std::string& name : names) {
    prepare(name);
    const Said said = run(argv_of(name, changing().at(name)));
    EXPECT_EQ(said.code, 0) << name << ": " << said.err;
    const std::vector<AuditEntry> all = entries();
    ASSERT_EQ(all.size(), ++rows) << name << ": " << said.err;
    EXPECT_THAT(all.front().what, StartsWith(name));
    EXPECT_EQ(all.front().who, command_line_user());
    EXPECT_GE(all.front().at + 5min, Clock::system().now());
  }
  for (const std::string& what : texts()) {
    EXPECT_THAT(what, Not(HasSubstr("secret"))) << "payloads are the event's";
    EXPECT_THAT(what, Not(HasSubstr("storage")));
    EXPECT_THAT(what, Not(HasSubstr(database_->url()))) << "it may have a password";
  }
  EXPECT_THAT(
      texts(),
      ::testing::IsSupersetOf(
          {"dead replay --error 'no route' (1 event)", "dead edit dead1 --data … --header …",
           "queue requeue --id 1 --id 2 (2 events)", "queue cancel --all --reason 'it'\\''s over' (2 events)",
           "outbox requeue --id taken (1 event)", "outbox cancel --id waits --reason 'sold out' (1 event)",
           "outbox purge --older-than 7d (1 event)", "topics discard --all (1 event)",
           "topics pause --topic t", "projections resume view --version 1", "topics rewind --to 0 --all"}));
}

TEST_P(AuditTest, WhatChangesNothingLeavesNone) {
  for (const auto& [name, arguments] : changing()) {
    std::vector<std::string> argv = argv_of(name, arguments);
    argv.emplace_back("--dry-run");
    const Said said = run(argv);
    const bool in_vain = said.err.find("not found among") != std::string::npos;
    EXPECT_TRUE(said.code == 0 || said.code == 2 || in_vain)
        << name << " has a dry run, or does not know it: " << said.err;
  }
  EXPECT_EQ(run({"dead", "replay"}).code, 1) << "it must be said which";
  EXPECT_EQ(run({"topics", "pause", "--topic", "nothing"}).code, 1);
  EXPECT_EQ(run({"migrate", "--to", "0"}).code, 1) << "nobody said --yes";
  EXPECT_EQ(run({"topics", "list"}).code, 0);
  EXPECT_EQ(run({"publish", "T"}).code, 0);
  EXPECT_EQ(run({"store", "append", "T"}).code, 0);
  EXPECT_THAT(texts(), IsEmpty());
}

TEST_P(AuditTest, WhatFindsNoEventLeavesNone) {
  const std::vector<std::vector<std::string>> in_vain{{"eventlog", "purge", "--older-than", "90d"},
                                                      {"outbox", "requeue", "--all"},
                                                      {"outbox", "cancel", "--type", "None"},
                                                      {"outbox", "purge", "--older-than", "7d"},
                                                      {"dead", "replay", "--error", "something else"},
                                                      {"dead", "purge", "--older-than", "7d"},
                                                      {"queue", "requeue", "--id", "77"},
                                                      {"queue", "cancel", "--type", "None"},
                                                      {"queue", "release", "--all"},
                                                      {"queue", "replay", "--all"},
                                                      {"queue", "purge", "--older-than", "30d"},
                                                      {"topics", "discard", "--all"}};
  EXPECT_EQ(run({"migrate"}).code, 0);
  EXPECT_THAT(texts(), IsEmpty()) << "migrate";
  for (const std::vector<std::string>& argv : in_vain) {
    const std::string name = argv[0] + " " + argv[1];
    const bool by_id = std::find(argv.begin(), argv.end(), "--id") != argv.end();
    EXPECT_EQ(run(argv).code, by_id ? 1 : 0) << name;
    EXPECT_THAT(texts(), IsEmpty()) << name;
  }
}

TEST_P(AuditTest, WhatIsEndedInTheMiddleSaysHowFarItGot) {
  constexpr int step = 200;  // of the queue's small transactions
  EventQueue queue(storage());
  for (int i = 0; i < 2 * step + 50; ++i) queue.publish(Event::json("Many", "{}"));
  const auto left = [&] { return QueueAdmin(storage()).counts(of_type("Many")).pending; };
  test::ChildProcess::Environment environment = line_.environment;
  environment.emplace_back("POSTRIDER_FAILPOINT", "queue.admin.after_commit=hang@2");
  test::ChildProcess child({test::program_path(), "queue", "cancel", "--type", "Many"}, environment);
  ASSERT_TRUE(test::eventually([&] { return left() == 50; })) << "two steps are committed";
  child.signal(SIGINT);
  const auto end = child.wait();
  ASSERT_TRUE(end.has_value());
  EXPECT_FALSE(end->exited);
  EXPECT_EQ(end->signal, SIGINT) << "as the signal would have done it: " << end->text();
  EXPECT_THAT(texts(), ElementsAre("interrupted: queue cancel --type Many (200 events or more)"));
  EXPECT_EQ(left(), 50);
}

TEST(Audit, WhatHasNotBegunIsEndedAtOnce) {
  const test::TempDir dir;
  const CommandLine line;
  const std::string url = "sqlite:" + dir.file("x.db");
  ASSERT_EQ(line.run({"migrate", "--storage", url}).code, 0);
  // It reads the payload from a standard input that stays open.
  test::ChildProcess child({test::program_path(), "dead", "edit", "x", "--data", "-", "--storage", url});
  const std::string task = "/proc/" + std::to_string(child.pid()) + "/task";
  ASSERT_TRUE(test::eventually([&] {
    std::ifstream status(task + "/../status");
    for (std::string word; std::getline(status, word);) {
      if (word.starts_with("SigBlk:")) return word.find_first_of("123456789abcdef", 7) != std::string::npos;
    }
    return false;
  })) << "signals are watched";
  child.signal(SIGTERM);
  const auto end = child.wait();
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(end->signal, SIGTERM) << end->text();
}

TEST_P(AuditTest, WhatCannotBeWrittenDownIsDoneAndSaid) {
  const bool bare = backend() == "postgres";  // where a new name has no schema
  sql("alter table " + table("audit") + " rename to " + (bare ? "audit_away" : table("audit_away")));
  const Said said = run({"topics", "pause", "--topic", "t", "-o", "json"});
  EXPECT_EQ(said.code, 0);
  EXPECT_EQ(said.json().at(0).at("status"), "PAUSED");
  EXPECT_THAT(said.err, HasSubstr("the audit table does not have what this line has: " + command_line_user() +
                                  ": topics pause --topic t"));
  sql("alter table " + table("audit_away") + " rename to " + (bare ? "audit" : table("audit")));
}

TEST_P(AuditTest, WhatFailedHalfwayIsWrittenDownAsTried) {
  CLI::App app{"Test", "postrider"};
  Chosen chosen;
  CLI::App& verb = *app.add_subcommand("verb", "Changes something");
  auto options = std::make_shared<AdminOptions>();
  options->storage = database_->url();
  options->schema = database_->options().schema.str();
  say_it_changes(verb, chosen, options);
  ErrorCode code = ErrorCode::database;
  when_chosen(verb, chosen, options, [&](const AdminOptions&) -> int { throw Error(code, "no"); });
  for (const ErrorCode one : {ErrorCode::invalid_argument, ErrorCode::conflict, ErrorCode::unavailable,
                              ErrorCode::schema, ErrorCode::database}) {
    code = one;
    app.parse("verb");
    EXPECT_THROW(run_chosen(app, chosen), Error);
  }
  EXPECT_THAT(texts(), ElementsAre("tried, and failed: verb"));
}

TEST(Audit, BeforeThereAreTablesATokenIsMadeWithoutAnError) {
  const test::TempDir dir;
  const CommandLine line;
  std::ofstream(dir.file("p.toml")) << "[storage]\nurl = \"sqlite:" << dir.file("x.db")
                                    << "\"\n[server]\ntoken-file = \"" << dir.file("tokens") << "\"\n";
  const auto created = [&](const std::string& name) {
    const CommandLine::Said said = line.run({"token", "create", "-c", dir.file("p.toml"), "--name", name});
    EXPECT_EQ(said.code, 0);
    EXPECT_THAT(said.err, Not(HasSubstr("error"))) << "nothing went wrong";
    return said.err;
  };
  EXPECT_THAT(created("anna"),
              HasSubstr("postrider: no audit has this line, as its database is not there yet: "));
  EXPECT_EQ(line.run({"migrate", "-c", dir.file("p.toml")}).code, 0);
  EXPECT_THAT(created("bert"), Not(HasSubstr("audit")));
  const CommandLine::Said gone = line.run({"migrate", "-c", dir.file("p.toml"), "--to", "0", "--yes"});
  EXPECT_THAT(gone.err, AllOf(HasSubstr("postrider: no audit has this line, as there are no tables: "),
                              Not(HasSubstr("error"))));
  EXPECT_THAT(created("carl"), HasSubstr("there are no tables"));
}

TEST(Audit, ATokenWithoutADatabaseIsMadeAndItIsSaidThatNoAuditKnowsOfIt) {
  const test::TempDir dir;
  const CommandLine::Said said =
      CommandLine().run({"token", "create", "--file", dir.file("tokens"), "--name", "anna"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, StartsWith("prt_"));
  EXPECT_THAT(said.err, HasSubstr("postrider: no audit has this line, as no database was named "
                                  "(--storage or -c): " +
                                  command_line_user() + ": token create --file"));
  EXPECT_THAT(said.err, Not(HasSubstr("error"))) << "nothing went wrong";
  EXPECT_EQ(std::count(said.err.begin(), said.err.end(), '\n'), 2) << said.err;
  EXPECT_THAT(said.err, Not(HasSubstr(said.out.substr(0, said.out.size() - 1)))) << "the token is shown once";
}

TEST(Audit, ATokenWhoseDatabaseIsAwayIsMadeAndItIsSaidThatItsAuditFailed) {
  const test::TempDir dir;
  const CommandLine::Said said = CommandLine().run({"token", "create", "--file", dir.file("tokens"), "--name",
                                                    "anna", "--storage", "sqlite:" + dir.file("none.db")});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.err, HasSubstr("postrider error: "));
  EXPECT_THAT(said.err, HasSubstr("the audit table does not have"));
  EXPECT_THAT(said.err, HasSubstr("none.db"));
}

TEST(Audit, ARevokedTokenIsGoneAndItIsSaidWhatARunningDaemonNeeds) {
  const test::TempDir dir;
  const std::string file = dir.file("tokens");
  const CommandLine line;
  for (const char* const name : {"anna", "berta"}) {
    EXPECT_EQ(line.run({"token", "create", "--file", file, "--name", name, "--role", "admin"}).code, 0);
  }
  std::ofstream(file, std::ios::app) << "old viewer " << std::string(64, 'a') << " 2020-01-01T00:00:00Z\n";
  const CommandLine::Said unknown = line.run({"token", "revoke", "--file", file, "--name", "ana"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean anna?"));
  EXPECT_THAT(unknown.err, Not(HasSubstr("audit"))) << "nothing was done";
  const CommandLine::Said revoked = line.run({"token", "revoke", "--file", file, "--name", "anna"});
  EXPECT_EQ(revoked.code, 0) << revoked.err;
  EXPECT_THAT(revoked.out, HasSubstr("'anna' (admin) is no longer in " + file));
  EXPECT_THAT(revoked.err, HasSubstr("kill -HUP"));
  EXPECT_THAT(revoked.err, HasSubstr("token revoke --file " + file + " --name anna"));
  const boost::json::value left = line.run({"token", "list", "--file", file, "-o", "json"}).json();
  ASSERT_EQ(left.as_array().size(), 2U);
  EXPECT_EQ(
      left.at(0),
      (boost::json::value{{"name", "berta"}, {"role", "admin"}, {"expiresAt", nullptr}, {"expired", false}}));
  EXPECT_EQ(left.at(1).at("expired"), true);
  const boost::json::value last =
      line.run({"token", "revoke", "--file", file, "--name", "berta", "-o", "json"}).json();
  EXPECT_EQ(last.at("name"), "berta");
  EXPECT_EQ(last.at("role"), "admin");
}

TEST(Audit, ATokensFileIsTheConfigurations) {
  const test::TempDir dir;
  const std::string config = dir.file("p.toml");
  std::ofstream(config) << "[storage]\nurl = \"sqlite:" << dir.file("x.db") << "\"\n[server]\ntoken-file = \""
                        << dir.file("tokens") << "\"\n";
  const CommandLine line;
  EXPECT_EQ(line.run({"token", "create", "--name", "anna"}).code, 1) << "neither --file nor -c";
  EXPECT_EQ(line.run({"migrate", "-c", config}).code, 0);
  const CommandLine::Said said = line.run({"token", "create", "-c", config, "--name", "anna", "-o", "json"});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.json().at("name"), "anna");
  EXPECT_EQ(said.json().at("role"), "viewer");
  EXPECT_EQ(said.json().at("expiresAt"), nullptr);
  std::ifstream tokens(dir.file("tokens"));
  EXPECT_TRUE(tokens.good());
}

}  // namespace
}  // namespace postrider::cli
