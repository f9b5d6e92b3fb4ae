// SPDX-License-Identifier: Apache-2.0
// Every command that changes something leaves its row in the audit, on every database.
#include "app/cli/audit.hpp"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "app/cli/admin_options.hpp"
#include "app/cli/cli_fixture.hpp"
#include "app/cli/command_tree.hpp"
#include "app/cli/program.hpp"
#include "postrider/error.hpp"
#include "postrider/event_queue.hpp"
#include "storage/audit_store.hpp"
#include "storage/outbox_store.hpp"
#include "storage/progress_store.hpp"

namespace postrider::cli {
namespace {

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
      {"eventlog purge", {"--older-than", "90d"}},
      {"migrate", {}},
      {"outbox purge", {"--older-than", "7d"}},
      {"dead replay", {"--error", "no route"}},
      {"dead edit", {"dead1", "--data", R"({"secret":1})", "--header", "a=b"}},
      {"dead purge", {"--older-than", "7d"}},
      {"queue requeue", {"--id", "1", "--id", "2"}},
      {"queue cancel", {"--all", "--reason", "it's over"}},
      {"queue release", {"--all"}},
      {"queue replay", {"--all"}},
      {"queue purge", {"--older-than", "30d"}},
      {"topics pause", {"--topic", "t"}},
      {"topics resume", {"--topic", "t"}},
      {"topics reset", {"--publisher", "p"}},
      {"topics rewind", {"--to", "0"}},
      {"topics discard", {"--all"}},
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
                                         "publish",
                                         "status",
                                         "tail",
                                         "outbox counts",
                                         "outbox list",
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
  add_all_commands(app, chosen, "postrider test");
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
    ASSERT_EQ(run({"publish", "T", "--id", "dead1"}).code, 0);
    const auto claimed = storage().outbox_store().claim({.owner = "x", .lease = 60s, .limit = 1});
    ASSERT_EQ(claimed.size(), 1U);
    const Completion dead{.lease = claimed[0].lease, .kind = Completion::Kind::dead, .error = "no route"};
    ASSERT_EQ(storage().outbox_store().complete({&dead, 1}), 1U);
    EventQueue(storage()).publish(Event::json("Job", "{}"));
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
    if (name == "token create") argv.insert(argv.end(), {"--file", dir_.file("tokens")});
    if (name == "eventlog purge") {  // it does not look into the environment
      argv.insert(argv.end(), {"--storage", database_->url(), "--schema", database_->options().schema.str()});
    }
    return argv;
  }
  test::TempDir dir_;
};
POSTRIDER_FOR_EACH_BACKEND(AuditTest);

TEST_P(AuditTest, EveryChangeLeavesOneRow) {
  std::size_t rows = 0;
  for (const auto& [name, arguments] : changing()) {
    const Said said = run(argv_of(name, arguments));
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
  EXPECT_THAT(texts(),
              ::testing::IsSupersetOf(
                  {"dead replay --error 'no route'", "dead edit dead1 --data … --header …",
                   "queue requeue --id 1 --id 2", "queue cancel --all --reason 'it'\\''s over'",
                   "topics pause --topic t", "projections resume view --version 1", "topics rewind --to 0"}));
}

TEST_P(AuditTest, WhatChangesNothingLeavesNone) {
  for (const auto& [name, arguments] : changing()) {
    std::vector<std::string> argv = argv_of(name, arguments);
    argv.emplace_back("--dry-run");
    const Said said = run(argv);
    EXPECT_TRUE(said.code == 0 || said.code == 2)
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

TEST(Audit, ATokenWithoutADatabaseIsMadeAndItIsSaidThatNoAuditKnowsOfIt) {
  const test::TempDir dir;
  const CommandLine::Said said =
      CommandLine().run({"token", "create", "--file", dir.file("tokens"), "--name", "anna"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, StartsWith("prt_"));
  EXPECT_THAT(said.err, HasSubstr("the audit table does not have"));
  EXPECT_THAT(said.err, Not(HasSubstr(said.out.substr(0, said.out.size() - 1)))) << "the token is shown once";
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
