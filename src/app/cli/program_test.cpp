// SPDX-License-Identifier: Apache-2.0
// The program as one runs it: a real process, ended by signals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <boost/json.hpp>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>

#include "app/cli/cli_fixture.hpp"
#include "app/http/listen_address.hpp"
#include "app/http/socket_client_fixture.hpp"
#include "app/sinks/sink_kinds.hpp"
#include "postrider/error.hpp"
#include "postrider/open.hpp"
#include "storage/entry_store.hpp"
#include "support/child_process.hpp"
#include "support/places.hpp"
#include "support/temp_dir.hpp"

namespace postrider::cli {
namespace {

using namespace std::chrono_literals;
using test::ChildProcess;
using test::SocketClient;
using ::testing::HasSubstr;

std::string event(const std::string& key) {
  return R"({"applicationId":"a","correlationId":"c","processName":"P","processStatus":"PROCESS_STEP",)"
         R"("idempotencyKey":")" +
         key + "\"}";
}

class ProgramTest : public ::testing::Test {
 protected:
  /// Starts the event log on a port of the system's choice.
  void serve(const ChildProcess::Environment& environment = {}) {
    const std::string port = port_ == 0 ? "0" : std::to_string(port_);
    child_.emplace(std::vector<std::string>{test::program_path(), "eventlog", "--listen", "127.0.0.1:" + port,
                                            "--storage", url_, "--drain-timeout", "20"},
                   environment);
    const std::string line = child_->read_line().value_or("");
    ASSERT_THAT(line, HasSubstr("event log API on http://127.0.0.1:"));
    const std::size_t at = line.rfind("127.0.0.1:") + 10;
    std::from_chars(line.data() + at, line.data() + line.size(), port_);
  }
  /// How many of these keys are in the file.
  std::size_t stored(const std::set<std::string>& keys) {
    const std::unique_ptr<Storage> storage = open(url_);
    std::size_t count = 0;
    EntryQuery query{.limit = 1000};
    for (;;) {
      const EntryPage page = storage->entry_store().find(query);
      for (const StoredEntry& one : page.entries) count += keys.count(one.entry.idempotency_key);
      if (!page.more) return count;
      query.after = EntryPosition{page.entries.back().entry.occurred_at, page.entries.back().id};
    }
  }

  test::TempDir dir_;
  const std::string url_ = "sqlite:" + dir_.file("events.db");
  std::uint16_t port_ = 0;
  std::optional<ChildProcess> child_;
};

TEST(Program, SaysWhenItsOutputCannotBeWritten) {
  ChildProcess child({"/bin/sh", "-c", "exec \"$0\" version > /dev/full", test::program_path()});
  const auto end = child.wait();
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->exited);
  EXPECT_EQ(end->code, 1);
}

TEST(Program, SaysWhichWordsThereAreAndWhichNumbers) {
  const auto refusal = [](const std::string& arguments) {
    ChildProcess child({"/bin/sh", "-c", "\"$0\" " + arguments + " 2>&1", test::program_path()});
    std::string said;
    while (const auto line = child.read_line()) said += *line + "\n";
    const auto end = child.wait();
    EXPECT_TRUE(end.has_value() && end->exited && end->code == 2) << said;
    return said;
  };
  EXPECT_THAT(refusal("explain -o xml"), HasSubstr("'xml' is refused: there are json, table"));
  EXPECT_THAT(refusal("store read --after -1"),
              HasSubstr("'-1' is refused: it must be a number from 0 to 9223372036854775807"));
  // One more than there can be is not taken for the largest that there can be.
  EXPECT_THAT(refusal("topics rewind --all --to 9223372036854775808"),
              HasSubstr("'9223372036854775808' is refused: it must be a number from 0 to"));
  EXPECT_THAT(refusal("queue show 99999999999999999999"), HasSubstr("it must be a number from 0 to"));
}

/// Whatever is wrong with a command line is told in one line that looks like our other errors.
TEST(Program, WrongCommandLinesAreToldLikeOtherErrors) {
  struct Case {
    std::vector<std::string> arguments;
    std::string said;
  };
  const std::string list_help = "postrider outbox list --help shows what it takes";
  for (const Case& one : std::vector<Case>{
           {{"outbox", "list", "--statu", "NEW"},
            "cannot run postrider outbox list: there is no option '--statu'. Hint: did you mean --status?"},
           {{"outbox", "list", "--statu=NEW"},
            "cannot run postrider outbox list: there is no option '--statu'. Hint: did you mean --status?"},
           {{"outbox", "list", "--frobnicate"},
            "cannot run postrider outbox list: there is no option '--frobnicate'. Hint: " + list_help},
           {{"outbox", "list", "-x"},
            "cannot run postrider outbox list: there is no option '-x'. Hint: " + list_help},
           {{"outbox", "list", "what"},
            "cannot run postrider outbox list: it does not take 'what'. Hint: " + list_help},
           {{"eventlog", "--storage", "sqlite:x.db", "prge"},
            "cannot run postrider eventlog: it does not take 'prge'. Hint: did you mean eventlog purge?"},
           {{"token", "create"},
            "cannot run postrider token create: --name is missing. Hint: give --name TEXT"},
           {{"token", "create", "--nam", "anna"},
            "cannot run postrider token create: there is no option '--nam'. Hint: did you mean --name?"},
           {{"publish"}, "cannot run postrider publish: TYPE is missing. Hint: give TYPE"},
           {{"eventlog", "purge"},
            "cannot run postrider eventlog purge: --older-than is missing. Hint: give --older-than AGE"},
           {{"eventlog"}, "cannot run postrider eventlog: --storage is missing. Hint: give --storage URL"},
           {{"serve"},
            "cannot run postrider serve: --config is missing. Hint: give --config FILE (or set "
            "POSTRIDER_CONFIG)"},
           {{"outbox", "list", "--limit"},
            "cannot read --limit: its value is missing. Hint: give --limit NUMBER"},
           {{"outbox", "list", "--limit", "many"},
            "cannot read --limit: 'many' is refused: it must be a number from 1 to 100000. Hint: " +
                list_help},
           {{"outbox", "list", "--limit", "0"},
            "cannot read --limit: '0' is refused: it must be a number from 1 to 100000. Hint: " + list_help},
           {{"topics", "rewind", "--to", "many"},
            "cannot read --to: 'many' is refused: it must be a number from 0 to 9223372036854775807. Hint: "
            "postrider topics rewind --help shows what it takes"},
           {{"outbox", "list", "--type", "a", "--type", "b"},
            "cannot read --type: it is there 2 times. Hint: give it once"},
           {{"outbox", "list", "-o", "jsn"},
            "cannot read --output: 'jsn' is refused: there are json, table. Hint: did you mean json?"},
           {{"publish", "T", "--delay", "1s", "--deliver-at", "2030-01-01T00:00:00Z"},
            "cannot take --deliver-at: --delay is there, too. Hint: give one of the two"}}) {
    const CommandLine::Said said = CommandLine().run(one.arguments);
    EXPECT_EQ(said.code, 2) << one.said;
    EXPECT_EQ(said.err, "postrider: " + one.said + "\n");
    EXPECT_EQ(said.out, "");
  }
  EXPECT_EQ(CommandLine().run({"check", "--warn-daed", "1"}).code, 3)
      << "to monitoring systems 2 is an alarm";
}

TEST_F(ProgramTest, ServesUntilSigtermAndEndsCleanly) {
  serve();
  SocketClient client(port_);
  EXPECT_EQ(client.ask("GET", "/readyz").value().status, 200);
  EXPECT_EQ(client.ask("POST", "/v1/events", event("k1")).value().status, 201);
  child_->signal(SIGTERM);
  EXPECT_TRUE(client.at_end()) << "a connection that rests is closed";
  const auto end = child_->wait();
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->ok()) << end->text();
  EXPECT_EQ(stored({"k1"}), 1U);
  EXPECT_FALSE(SocketClient(port_).connected());
}

TEST_F(ProgramTest, AFileThatMayNotGrowRefusesEventsAndEndsNothing) {
  serve();
  SocketClient client(port_);
  ASSERT_EQ(client.ask("POST", "/v1/events", event("before")).value().status, 201);
  struct rlimit usual {};
  const struct rlimit small { 4096, RLIM_INFINITY };
  ASSERT_EQ(::prlimit(child_->pid(), RLIMIT_FSIZE, &small, &usual), 0);
  const auto full = client.ask("POST", "/v1/events", event("full"));
  ASSERT_EQ(::prlimit(child_->pid(), RLIMIT_FSIZE, &usual, nullptr), 0);
  ASSERT_TRUE(full.has_value()) << "SIGXFSZ has ended it";
  EXPECT_EQ(full->status, 503) << full->body;
  EXPECT_EQ(client.ask("POST", "/v1/events", event("after")).value().status, 201);
  child_->signal(SIGTERM);
  EXPECT_TRUE(child_->wait()->ok());
  EXPECT_EQ(stored({"before", "full", "after"}), 2U);
}

TEST_F(ProgramTest, SigtermUnderLoadAnswersWhatItHasTaken) {
  serve();
  std::set<std::string> acknowledged;
  std::mutex mutex;
  std::atomic<int> count{0};
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([&, i] {
        SocketClient client(port_);
        for (int n = 0;; ++n) {
          const std::string key = std::to_string(i) + "-" + std::to_string(n);
          const auto answer = client.ask("POST", "/v1/events", event(key));
          if (!answer.has_value()) return;
          ASSERT_EQ(answer->status, 201);
          {
            const std::lock_guard lock(mutex);
            acknowledged.insert(key);
          }
          ++count;
          if (answer->header("Connection") == "close") return;
        }
      });
    }
    while (count < 50) std::this_thread::yield();
    child_->signal(SIGTERM);
  }
  const auto end = child_->wait();
  ASSERT_TRUE(end.has_value());
  EXPECT_TRUE(end->ok()) << end->text();
  EXPECT_EQ(stored(acknowledged), acknowledged.size());
}

TEST_F(ProgramTest, HazardL14WhatWasAnsweredSurvivesKill9) {
  // Each round kills the process while four clients post, singly and in batches, and starts it again.
  std::set<std::string> acknowledged;
  std::mutex mutex;
  for (int round = 0; round < 5; ++round) {
    serve();
    if (HasFatalFailure()) return;
    std::atomic<int> count{0};
    std::vector<std::jthread> clients;
    for (int i = 0; i < 4; ++i) {
      clients.emplace_back([&, i] {
        SocketClient client(port_);
        for (int n = 0;; ++n) {
          const std::string name = std::to_string(round) + "-" + std::to_string(i) + "-" + std::to_string(n);
          std::vector<std::string> keys{name};
          std::string body = event(name);
          if (i % 2 == 1) {
            for (int k = 0; k < 20; ++k) {
              keys.push_back(name + "+" + std::to_string(k));
              body += "," + event(keys.back());
            }
            body = "[" + body + "]";
          }
          const auto answer = client.ask("POST", i % 2 == 1 ? "/v1/events/batch" : "/v1/events", body);
          if (!answer.has_value()) return;
          const std::lock_guard lock(mutex);
          acknowledged.insert(keys.begin(), keys.end());
          ++count;
        }
      });
    }
    while (count < 20 + 7 * round) std::this_thread::yield();
    EXPECT_TRUE(child_->kill().killed());
    clients.clear();
    EXPECT_EQ(stored(acknowledged), acknowledged.size()) << "after round " << round;
  }
  serve();
  const std::string again = *acknowledged.begin();
  const auto answer = SocketClient(port_).ask("POST", "/v1/events", event(again)).value();
  EXPECT_EQ(answer.status, 200) << "a repeat after all that is still known as one";
  EXPECT_THAT(answer.body, HasSubstr("duplicate"));
}

#if defined(POSTRIDER_FAILPOINTS)
TEST_F(ProgramTest, KilledAroundACommitItStoresAllOrNothingAndARepeatIsRight) {
  for (const bool after : {false, true}) {
    const std::string name = after ? "after" : "before";
    serve({{"POSTRIDER_FAILPOINT", "sqlite.entries." + name + "_commit=kill@3"}});
    if (HasFatalFailure()) return;
    SocketClient client(port_);
    const auto key = [&](int n) { return name + std::to_string(n); };
    EXPECT_EQ(client.ask("POST", "/v1/events", event(key(1))).value().status, 201);
    EXPECT_EQ(client.ask("POST", "/v1/events", event(key(2))).value().status, 201);
    const std::string batch = "[" + event(key(3)) + "," + event(key(4)) + "]";
    EXPECT_FALSE(client.ask("POST", "/v1/events/batch", batch).has_value());
    EXPECT_TRUE(child_->wait().value().killed());
    EXPECT_EQ(stored({key(1), key(2)}), 2U);
    EXPECT_EQ(stored({key(3), key(4)}), after ? 2U : 0U);
    serve();
    const auto repeat = SocketClient(port_).ask("POST", "/v1/events/batch", batch).value();
    EXPECT_THAT(repeat.body,
                HasSubstr(after ? R"("created":0,"duplicates":2)" : R"("created":2,"duplicates":0)"));
    child_.reset();
    EXPECT_EQ(stored({key(1), key(2), key(3), key(4)}), 4U);
  }
}
#endif

TEST_F(ProgramTest, PurgeNeedsToKnowWhereAndWhat) {
  ChildProcess wrong({test::program_path(), "eventlog", "purge", "--storage", url_, "--older-than", "soon"});
  EXPECT_EQ(wrong.wait().value().code, 1);
  ChildProcess missing({test::program_path(), "eventlog", "purge", "--storage", url_});
  EXPECT_EQ(missing.wait().value().code, 2);
  ChildProcess nowhere({test::program_path(), "eventlog"});
  EXPECT_EQ(nowhere.wait().value().code, 2) << "--storage is needed";
}

TEST_F(ProgramTest, PurgeMakesNoFileAndSpeaksToSomebodyAtACommandLine) {
  const auto purge = [&] {
    // The shell joins what goes to standard error.
    ChildProcess child(
        {"/bin/sh", "-c",
         test::program_path() + " eventlog purge --older-than 1d --storage " + url_ + " 2>&1"});
    std::string line = child.read_line().value_or("");
    EXPECT_EQ(child.wait().value().code, 1);
    return line;
  };
  EXPECT_THAT(purge(), ::testing::AllOf(HasSubstr("there is no such file"), HasSubstr("--storage")));
  EXPECT_FALSE(std::filesystem::exists(dir_.file("events.db")));
  (void)open(url_);  // an empty one
  EXPECT_THAT(purge(), ::testing::AllOf(HasSubstr("cannot purge"), HasSubstr("--schema"),
                                        ::testing::Not(HasSubstr("storage->migrate"))));
}

TEST_F(ProgramTest, AnUnknownCommandIsNamed) {
  ChildProcess child({"/bin/sh", "-c", test::program_path() + " eventlg --listen x 2>&1"});
  EXPECT_EQ(child.read_line().value_or(""),
            "postrider: there is no command 'eventlg'. Hint: did you mean eventlog?");
  EXPECT_EQ(child.wait().value().code, 2);
}

TEST_F(ProgramTest, WhereACommandIsMissingItSaysWhichThereAre) {
  const auto said = [](const std::string& arguments) {
    ChildProcess child({"/bin/sh", "-c", test::program_path() + " " + arguments + " 2>&1"});
    std::string line = child.read_line().value_or("");
    EXPECT_EQ(child.wait().value().code, 2);
    return line;
  };
  EXPECT_EQ(said("token"),
            "postrider: postrider token needs a command. Hint: there are create, list, revoke");
  EXPECT_EQ(said("projections -o json"),
            "postrider: postrider projections needs a command. Hint: there are list, pause, resume; options "
            "come behind it");
  EXPECT_EQ(said("--verson"),
            "postrider: cannot run postrider: there is no option '--verson'. Hint: did you mean --version?");
  EXPECT_EQ(said("spill"), "postrider: postrider spill needs a command. Hint: there is show");
  EXPECT_EQ(said("token creat --name x"),
            "postrider: there is no command 'token creat'. Hint: did you mean token create?");
  EXPECT_EQ(said("token zzzzzz"),
            "postrider: there is no command 'token zzzzzz'. Hint: there are create, list, revoke");
  EXPECT_THAT(said(""),
              ::testing::StartsWith("postrider: it needs a command. Hint: there are demo, dev, serve, "));
}

TEST_F(ProgramTest, CallsNumbersAsTheManualDoes) {
  const std::string help = CommandLine().run({"queue", "list", "--help"}).out;
  EXPECT_THAT(help, ::testing::AllOf(HasSubstr("--limit NUMBER=100"), ::testing::Not(HasSubstr("INT"))));
}

TEST_F(ProgramTest, SaysItsVersionAsJson) {
  const CommandLine::Said said = CommandLine().run({"version", "-o", "json"});
  EXPECT_EQ(said.json().at("databases").at(0), "sqlite");
  boost::json::array sinks;
  for (const std::string_view kind : sinks::kinds()) sinks.emplace_back(kind);
  EXPECT_EQ(said.json().at("sinks"), sinks);
  EXPECT_FALSE(said.json().at("version").as_string().empty());
}

TEST_F(ProgramTest, HelpOfACommandLeavesTheExitCodesToThatOfTheProgram) {
  const CommandLine line;
  EXPECT_THAT(line.run({"--help"}).out, HasSubstr("Exit codes"));
  EXPECT_THAT(line.run({"outbox", "list", "--help"}).out, ::testing::Not(HasSubstr("Exit codes")));
}

TEST_F(ProgramTest, ABadAddressMakesNoFile) {
  ChildProcess child({test::program_path(), "eventlog", "--listen", "here", "--storage", url_});
  EXPECT_EQ(child.wait().value().code, 1);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("events.db")));
}

TEST_F(ProgramTest, SaysItsVersionAndItsUsage) {
  ChildProcess version({test::program_path(), "version"});
  EXPECT_THAT(version.read_line().value_or(""),
              ::testing::AllOf(::testing::StartsWith("postrider "), HasSubstr("(databases: sqlite"),
                               HasSubstr("; sinks: file")));
  EXPECT_TRUE(version.wait().value().ok());
  ChildProcess help({test::program_path(), "--help"});
  EXPECT_TRUE(help.read_until("  eventlog").has_value());
  EXPECT_TRUE(help.wait().value().ok());
  ChildProcess wrong({test::program_path(), "eventlog", "--nonsense"});
  EXPECT_EQ(wrong.wait().value().code, 2);
  ChildProcess nowhere({test::program_path(), "eventlog", "--storage", "sqlite:/no/such/dir/x.db"});
  EXPECT_EQ(nowhere.wait().value().code, 1);
}

TEST(ListenUrl, NamesAnAddressThatOneCanOpen) {
  EXPECT_EQ(http::url_of({.host = "0.0.0.0"}, 80, true), "https://127.0.0.1:80");
  EXPECT_EQ(http::url_of({.host = "::"}, 80), "http://[::1]:80");
  EXPECT_EQ(http::url_of({.host = "192.168.1.5"}, 80), "http://192.168.1.5:80");
  EXPECT_EQ(http::url_of({.host = "events.example"}, 443, true), "https://events.example:443");
}

TEST(ParseListen, LoopbackOnly) {
  EXPECT_EQ(http::parse_listen("127.0.0.1:3000").host, "127.0.0.1");
  EXPECT_EQ(http::parse_listen("127.0.0.1:3000").port, 3000);
  EXPECT_EQ(http::parse_listen("[::1]:80").host, "::1");
  EXPECT_EQ(http::parse_listen("localhost:0").port, 0);
  for (const char* open_to_all : {"0.0.0.0:3000", "[::]:3000", "192.168.1.5:3000", "8.8.8.8:80"}) {
    try {
      (void)http::parse_listen(open_to_all);
      ADD_FAILURE() << open_to_all;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported) << open_to_all;
    }
  }
  for (const char* wrong :
       {"", "3000", ":3000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:70000",
        "127.0.0.1:99999", "127.0.0.1:4294970296", "127.0.0.1:x", "example.org:80", "a@127.0.0.1:80"}) {
    EXPECT_THROW((void)http::parse_listen(wrong), Error) << wrong;
  }
}

}  // namespace
}  // namespace postrider::cli
