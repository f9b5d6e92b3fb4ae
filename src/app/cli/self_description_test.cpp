// SPDX-License-Identifier: Apache-2.0
// The command line, its manual, its completions and its documents say the same.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "app/api/access.hpp"
#include "app/cli/cli_fixture.hpp"
#include "app/cli/command_tree.hpp"
#include "app/cli/exit_codes.hpp"
#include "app/cli/explanations.hpp"
#include "app/cli/program.hpp"
#include "app/daemon/diagnosis.hpp"
#include "postrider/async_logger.hpp"
#include "postrider/error.hpp"
#include "postrider/event_queue.hpp"
#include "postrider/open.hpp"
#include "storage/outbox_store.hpp"
#include "support/places.hpp"
#include "support/temp_dir.hpp"

namespace postrider::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

CommandText program() {
  CLI::App app{"Postrider", "postrider"};
  Chosen chosen;
  add_all_commands(app, chosen, {.version = "test"});
  return describe(app);
}

/// What a shell says about a script, and whether it is here at all.
struct Shell {
  explicit Shell(const std::string& name)
      : here(std::system(("command -v " + name + " >/dev/null").c_str()) == 0) {}
  bool here;
};

class JsonTest : public ::testing::Test {
 protected:
  test::TempDir dir_;
  const std::string url_ = "sqlite:" + dir_.file("x.db");
};

TEST_F(JsonTest, EveryCommandThatHasAnOutputFormatSpeaksJson) {
  {
    const std::unique_ptr<Storage> storage = open(url_);
    storage->migrate();
    const Event event = Event::builder("T").id(EventId("dead1")).json("{}").build();
    const NewOutboxRow row{.event = &event};
    Transaction tx = storage->begin();
    storage->outbox_store().insert(tx, {}, {&row, 1});
    tx.execute(
        "insert into postrider_event_projection (name, version, live, created_at, updated_at) values ('p', "
        "1, 1, 1, 1)");
    tx.execute(
        "insert into postrider_outbox_topic_progress (topic, publisher, created_at, updated_at) values ('t', "
        "'p', 1, 1), ('old', 'p', 1, 1)");
    tx.commit();
    const auto claimed = storage->outbox_store().claim({.owner = "x", .lease = 60s, .limit = 1});
    ASSERT_EQ(claimed.size(), 1U);
    const Completion dead{.lease = claimed[0].lease, .kind = Completion::Kind::dead, .error = "x"};
    ASSERT_EQ(storage->outbox_store().complete({&dead, 1}), 1U);
    EventQueue(*storage).publish(Event::json("Job", "{}"));
  }
  std::ofstream(dir_.file("p.toml")) << "[storage]\nurl = \"sqlite:x.db\"\n";
  const std::map<std::string, std::vector<std::string>> arguments{
      {"postrider publish", {"T"}},
      {"postrider eventlog purge", {"--older-than", "1d"}},
      {"postrider bench", {"--events", "5"}},
      {"postrider outbox show", {"dead1"}},
      {"postrider outbox requeue", {"--all"}},
      {"postrider outbox cancel", {"--all", "--dry-run"}},
      {"postrider outbox purge", {"--older-than", "1d"}},
      {"postrider dead show", {"dead1"}},
      {"postrider dead replay", {"--all", "--dry-run"}},
      {"postrider dead edit", {"dead1", "--data", "{}"}},
      {"postrider dead purge", {"--older-than", "1d"}},
      {"postrider queue show", {"1"}},
      {"postrider queue requeue", {"--all"}},
      {"postrider queue cancel", {"--all", "--dry-run"}},
      {"postrider queue release", {"--all"}},
      {"postrider queue replay", {"--all"}},
      {"postrider queue purge", {"--older-than", "1d"}},
      {"postrider topics pause", {"--all"}},
      {"postrider topics resume", {"--all"}},
      {"postrider topics reset", {"--all"}},
      {"postrider topics rewind", {"--to", "0", "--all"}},
      {"postrider topics discard", {"--all"}},
      {"postrider topics forget", {"--topic", "old"}},
      {"postrider token create", {"--file", dir_.file("tokens"), "--name", "me"}},
      {"postrider token list", {"--file", dir_.file("tokens")}},
      {"postrider token revoke", {"--file", dir_.file("tokens"), "--name", "me"}},
      {"postrider projections pause", {"p"}},
      {"postrider projections resume", {"p"}},
      {"postrider store append", {"T"}},
      {"postrider spill show", {dir_.path().string()}},
      {"postrider config check", {"-c", dir_.file("p.toml")}},
      {"postrider config print", {"-c", dir_.file("p.toml")}},
  };
  CommandLine line;
  line.environment = {{"POSTRIDER_STORAGE_URL", url_}};
  std::size_t tried = 0;
  each_command(program(), [&](const CommandText& command) {
    const bool speaks =
        std::any_of(command.options.begin(), command.options.end(), [](const OptionText& option) {
          return std::find(option.names.begin(), option.names.end(), "--output") != option.names.end();
        });
    if (!speaks || command.name() == "postrider demo")
      return;  // tests/daemon/demo_test.cpp looks at that one
    ++tried;
    std::vector<std::string> argv(command.path.begin() + 1, command.path.end());
    if (const auto more = arguments.find(command.name()); more != arguments.end()) {
      argv.insert(argv.end(), more->second.begin(), more->second.end());
    }
    argv.insert(argv.end(), {"-o", "json"});
    const CommandLine::Said said = line.run(argv);
    const bool judges = command.name() == "postrider check";
    EXPECT_TRUE(said.code == 0 || judges) << command.name() << ": " << said.err;
    if (command.name() == "postrider tail") {  // a line for each event
      std::istringstream lines(said.out);
      for (std::string one; std::getline(lines, one);) EXPECT_NO_THROW((void)boost::json::parse(one)) << one;
    } else {
      EXPECT_NO_THROW((void)boost::json::parse(said.out)) << command.name() << ": " << said.out << said.err;
    }
  });
  EXPECT_GE(tried, 40U);
}

TEST(SelfDescription, TheReferenceInTheDocumentsIsTheOneOfTheProgram) {
  const std::string document = content(test::source_file("docs/cli.md"));
  const std::string begin = "<!-- made by: postrider reference -->\n";
  const std::size_t at = document.find(begin);
  ASSERT_NE(at, std::string::npos) << "docs/cli.md has no place for it";
  EXPECT_EQ(document.substr(at + begin.size()), reference(program()))
      << "put it right with: postrider reference, behind the line " << begin;
}

/// The command lines in a text, word by word: "postrider token create --name NAME". What follows in small
/// letters, and is no command, is the text again.
std::vector<std::vector<std::string>> commands_in(const std::string& text, const CommandText& all) {
  std::vector<std::vector<std::string>> found;
  const std::regex start("postrider (?=[a-z])");
  for (std::sregex_iterator at(text.begin(), text.end(), start), end; at != end; ++at) {
    std::istringstream words(text.substr(static_cast<std::size_t>(at->position()) + 10));
    std::vector<std::string> command;
    const CommandText* group = &all;
    bool ended = false;
    for (std::string word; !ended && words >> word;) {
      ended = std::string_view(".,;:)").find(word.back()) != std::string_view::npos;
      if (ended) word.pop_back();
      const auto one = std::find_if(group->commands.begin(), group->commands.end(),
                                    [&](const CommandText& each) { return each.path.back() == word; });
      const bool is_value = !command.empty() && command.back().starts_with('-');
      const bool is_name = std::all_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
      if (one != group->commands.end()) {
        group = &*one;
      } else if (!word.starts_with('-') && !is_value && !is_name && !command.empty()) {
        break;
      }
      command.push_back(word);
    }
    found.push_back(std::move(command));
  }
  return found;
}

TEST(SelfDescription, CommandsThatAreAdvisedCanBeTyped) {
  std::vector<std::string> texts;
  for (const Explanation& one : explanations()) texts.emplace_back(one.advice);
  const test::TempDir folder;
  const auto hint_of = [&](const auto& run) {
    try {
      run();
    } catch (const Error& error) {
      const std::string text = error.what();
      texts.push_back(text.substr(std::min(text.find("Hint: "), text.size())));
    }
  };
  const api::TokenRecord record{.name = "me", .sha256 = std::string(64, 'a')};
  hint_of([&] { (void)api::read_tokens(folder.file("none")); });
  hint_of([&] { (void)api::remove_token(folder.file("tokens"), "me"); });
  api::add_token(folder.file("tokens"), record);
  hint_of([&] { api::add_token(folder.file("tokens"), record); });
  hint_of([&] { (void)api::remove_token(folder.file("tokens"), "somebody"); });
  api::Access access(Clock::system());
  access.use(std::vector<api::TokenRecord>{});
  texts.push_back(access.decide({}, api::Role::viewer).problem.hint);
  std::size_t tried = 0;
  for (const std::string& text : texts) {
    for (std::vector<std::string> command : commands_in(text, program())) {
      CLI::App app{"Postrider", "postrider"};
      Chosen chosen;
      add_all_commands(app, chosen, {.version = "test"});
      std::reverse(command.begin(), command.end());
      ++tried;
      EXPECT_NO_THROW(app.parse(command)) << text;
    }
  }
  EXPECT_GE(tried, 12U);
}

TEST(SelfDescription, HelpAndManualSayEveryCommandOptionAndExitCode) {
  const CommandText all = program();
  const std::string manual = man_page(all, "postrider test");
  const auto roff = [](const std::string& text) { return std::regex_replace(text, std::regex("-"), "\\-"); };
  CommandLine line;
  const std::string help = line.run({"--help"}).out;
  each_command(all, [&](const CommandText& command) {
    EXPECT_FALSE(command.help.empty()) << command.name();
    EXPECT_FALSE(command.help.ends_with('.')) << command.name();
    if (command.path.size() < 2) return;
    EXPECT_THAT(manual, HasSubstr(".SS " + roff(command.name())));
    if (command.path.size() == 2) {
      EXPECT_THAT(help, HasSubstr("\n  " + command.path.back() + " "));
    }
    const CommandLine::Said said = line.run([&] {
      std::vector<std::string> argv(command.path.begin() + 1, command.path.end());
      argv.emplace_back("--help");
      return argv;
    }());
    EXPECT_EQ(said.code, 0) << command.name();
    for (const OptionText& option : command.options) {
      EXPECT_FALSE(option.help.empty()) << command.name() << " " << option.names.back();
      for (const std::string& name : option.names) {
        EXPECT_THAT(said.out, HasSubstr(name)) << command.name();
        if (command.commands.empty()) {
          EXPECT_THAT(manual, HasSubstr(roff(name)));
        }
      }
    }
  });
  for (const ExitCode& one : exit_codes) EXPECT_THAT(help, HasSubstr(std::string(one.meaning)));
  EXPECT_EQ(std::count(help.begin(), help.end(), '\x1b'), 0);
  EXPECT_THAT(help, ::testing::Not(HasSubstr("  reference "))) << "hidden commands stay hidden";
}

TEST(SelfDescription, HelpIsTheSameAsTheOption) {
  CommandLine line;
  EXPECT_EQ(line.run({"help"}).out, line.run({"--help"}).out);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"status"}, {"outbox"}, {"outbox", "list"}, {"help"}}) {
    std::vector<std::string> by_option = command;
    by_option.emplace_back("--help");
    std::vector<std::string> by_command = command;
    by_command.insert(by_command.begin(), "help");
    const CommandLine::Said said = line.run(by_command);
    EXPECT_EQ(said.code, 0);
    EXPECT_EQ(said.out, line.run(by_option).out);
    EXPECT_THAT(said.out, HasSubstr(command.back()));
  }
  const CommandLine::Said unknown = line.run({"help", "outbox", "lst"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err, "postrider: there is no command 'outbox lst'. Hint: did you mean outbox list?\n");
  EXPECT_THAT(line.run({"help", "status", "all"}).err, HasSubstr("postrider status --help shows"));
}

TEST(SelfDescription, TheManualFormatsWithoutWarnings) {
  const test::TempDir dir;
  const std::string file = dir.file("postrider.1");
  CommandLine line;
  std::ofstream(file) << line.run({"man"}).out;
  const bool man = Shell("man").here;
  if (!man && !Shell("groff").here) GTEST_SKIP() << "neither man nor groff is installed";
  const std::string command = man ? "MANWIDTH=80 MANROFFOPT=-ww LC_ALL=C.UTF-8 man --warnings -l "
                                  : "groff -man -Tutf8 -K utf8 -ww -z ";
  test::ChildProcess child({"/bin/sh", "-c", command + file + " 2>&1 >" + dir.file("out")});
  EXPECT_EQ(child.read_line().value_or(""), "") << "a warning";
  EXPECT_TRUE(child.wait().value().ok());
  if (man) {
    EXPECT_THAT(content(dir.file("out")), HasSubstr("postrider outbox list"));
  }
}

TEST(SelfDescription, CompletionsAreRightForTheirShells) {
  const test::TempDir dir;
  CommandLine line;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const CommandLine::Said said = line.run({"completion", shell});
    ASSERT_EQ(said.code, 0);
    EXPECT_THAT(said.out, HasSubstr("groups"));
    std::ofstream(dir.file(shell)) << said.out;
    if (!Shell(shell).here) continue;
    test::ChildProcess check({"/bin/sh", "-c", shell + " -n " + dir.file(shell) + " 2>&1"});
    EXPECT_EQ(check.read_line().value_or(""), "") << shell;
    EXPECT_TRUE(check.wait().value().ok()) << shell;
  }
  const auto complete = [&](const std::string& words) {
    test::ChildProcess bash(
        {"/bin/bash", "-c",
         "source " + dir.file("bash") + "; COMP_WORDS=(" + words +
             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _postrider; echo \"${COMPREPLY[*]}\""});
    return bash.read_line().value_or("");
  };
  EXPECT_EQ(complete("postrider outb"), "outbox");
  EXPECT_EQ(complete("postrider outbox l"), "list");
  EXPECT_EQ(complete("postrider outbox list --sta"), "--status");
  EXPECT_EQ(complete("postrider dead replay --d"), "--dry-run");
  EXPECT_EQ(complete("postrider status -o j"), "json");
  EXPECT_EQ(complete("postrider completion ''"), "bash zsh fish");
  EXPECT_EQ(complete("postrider config print --output ''"), "json toml");
  EXPECT_EQ(complete("postrider check --format p"), "prometheus");
  EXPECT_EQ(complete("postrider outbox list --status RE"), "RETRY");
  EXPECT_EQ(complete("postrider outbox cancel --status ''"), "NEW RETRY");
  EXPECT_EQ(complete("postrider queue log --status F"), "FAILED");
  EXPECT_EQ(complete("postrider tail --from l"), "log");
  EXPECT_EQ(complete("postrider token create --role o"), "operator");
  EXPECT_EQ(complete("postrider explain storage_f"), "storage_full");
  EXPECT_EQ(complete("postrider help outb"), "outbox");
}

std::set<std::string> explained(std::string_view kind) {
  std::set<std::string> codes;
  for (const Explanation& one : explanations()) {
    EXPECT_FALSE(one.meaning.empty()) << one.code;
    EXPECT_FALSE(one.advice.empty()) << one.code;
    if (one.kind == kind) {
      EXPECT_TRUE(codes.insert(std::string(one.code)).second) << one.code << " stands there twice";
    }
  }
  return codes;
}

TEST(Explain, KnowsEveryCodeOfTheLibrary) {
  std::set<std::string> errors;
  for (int i = 0; to_string(static_cast<ErrorCode>(i)) != "unknown"; ++i) {
    errors.emplace(to_string(static_cast<ErrorCode>(i)));
  }
  EXPECT_EQ(explained(kind_error), errors);
  std::set<std::string> losses;
  for (int i = 0; i < static_cast<int>(LossReason::count_of_reasons); ++i) {
    losses.emplace(to_string(static_cast<LossReason>(i)));
  }
  EXPECT_EQ(explained(kind_loss), losses);
  std::set<std::string> causes;
  for (int i = 0; i <= static_cast<int>(daemon::Cause::queue_waits); ++i) {
    causes.emplace(daemon::to_string(static_cast<daemon::Cause>(i)));
  }
  EXPECT_EQ(explained(kind_cause), causes);
  std::set<std::string> exits;
  for (const ExitCode& one : exit_codes) exits.insert(std::to_string(one.code));
  EXPECT_EQ(explained(kind_exit), exits);
}

TEST(Explain, KnowsEveryCodeThatTheApiAnswersWith) {
  const std::set<std::string> known = explained(kind_problem);
  std::size_t found = 0;
  const std::regex code(R"re(\.code = "([^"]*)")re");
  for (const auto& entry : fs::recursive_directory_iterator(test::source_file("src/app"))) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file() || name.find("_test.") != std::string::npos ||
        name.find("_fixture.") != std::string::npos)
      continue;
    const std::string text = content(entry.path());
    for (std::sregex_iterator at(text.begin(), text.end(), code), end; at != end; ++at, ++found) {
      EXPECT_TRUE(known.count((*at)[1].str()) == 1)
          << entry.path() << ": " << (*at)[1].str() << " has no explanation";
    }
  }
  EXPECT_GE(found, 30U);
}

TEST(Explain, ExplainsAndNamesTheNearest) {
  CommandLine line;
  EXPECT_THAT(line.run({"explain", "E"}).err, HasSubstr("Hint: postrider explain lists them all"))
      << "0 is as near as any";
  const CommandLine::Said timeout = line.run({"explain", "timeout"});
  EXPECT_EQ(timeout.code, 0);
  EXPECT_THAT(timeout.out,
              ::testing::AllOf(HasSubstr("error of the library"), HasSubstr("answer of the API")));
  EXPECT_THAT(line.run({"explain", "storage-full"}).out, HasSubstr("storage_full"));
  EXPECT_THAT(line.run({"explain", "3"}).out, HasSubstr("exit code"));
  const CommandLine::Said wrong = line.run({"explain", "timeoot"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean timeout?"));
}

}  // namespace
}  // namespace postrider::cli
