// SPDX-License-Identifier: Apache-2.0
// Old events are removed by the program: once by `purge`, all the time by `--retention`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/cli/cli_fixture.hpp"
#include "storage/entry_store.hpp"
#include "support/backend.hpp"
#include "support/child_process.hpp"
#include "support/places.hpp"

namespace postrider::cli {
namespace {

using namespace std::chrono_literals;
using test::ChildProcess;
using ::testing::HasSubstr;

constexpr int old_events = 1200;
constexpr int all_events = 1300;

class OldEventsTest : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend());
    std::vector<Entry> entries;
    for (int i = 0; i < all_events; ++i) {
      Entry one;
      one.application_id = "a";
      one.process_name = "P";
      one.process_status = "S";
      one.details = "gathering dust";
      one.idempotency_key = std::to_string(i);
      one.occurred_at = Clock::system().now() - (i < old_events ? 24h * 91 : 24h * 89);
      entries.push_back(one);
    }
    database_->storage().entry_store().insert(entries);
  }
  /// `postrider eventlog …`, with what it says on either stream.
  ChildProcess& run(const std::string& command) {
    child_.emplace(std::vector<std::string>{"/bin/sh", "-c",
                                            "exec " + test::program_path() + " eventlog " + command +
                                                " --storage '" + database_->url() + "' --schema " +
                                                database_->options().schema.str() + " 2>&1"});
    return *child_;
  }
  std::string purge(const std::string& more) {
    ChildProcess& child = run("purge --older-than 90d " + more);
    std::string line = child.read_line().value_or("");
    EXPECT_TRUE(child.wait().value().ok()) << line;
    return line;
  }
  /// How many are there, and how many the index of words finds.
  [[nodiscard]] std::pair<std::size_t, std::size_t> left() {
    const auto count = [&](EntryQuery query) {
      std::size_t found = 0;
      query.limit = 1000;
      for (;;) {
        const EntryPage page = database_->storage().entry_store().find(query);
        found += page.entries.size();
        if (!page.more) return found;
        query.after = EntryPosition{page.entries.back().entry.occurred_at, page.entries.back().id};
      }
    };
    return {count({}), count({.words = {"dust"}})};
  }

  std::optional<test::TestDatabase> database_;
  std::optional<ChildProcess> child_;
};

TEST_P(OldEventsTest, PurgeRemovesThemAndADryRunOnlyCountsThem) {
  EXPECT_THAT(purge("--dry-run"), HasSubstr("there are 1200 events from before "));
  EXPECT_EQ(left(), std::pair(std::size_t{all_events}, std::size_t{all_events}));
  EXPECT_THAT(purge(""), HasSubstr("removed 1200 events from before "));
  EXPECT_EQ(left(), std::pair(std::size_t{100}, std::size_t{100}));
  EXPECT_THAT(purge(""), HasSubstr("removed 0 events"));
}

TEST_P(OldEventsTest, PurgeTakesTheDatabaseFromTheEnvironmentAndSpeaksJson) {
  CommandLine line;
  line.environment = {{"POSTRIDER_STORAGE_URL", database_->url()},
                      {"POSTRIDER_STORAGE_SCHEMA", database_->options().schema.str()}};
  const auto purged = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"eventlog", "purge", "--older-than", "90d", "-o", "json"});
    const CommandLine::Said said = line.run(more);
    EXPECT_EQ(said.code, 0) << said.err;
    return said.json();
  };
  const boost::json::value counted = purged({"--dry-run"});
  EXPECT_EQ(counted.at("dryRun"), true);
  EXPECT_EQ(counted.at("events"), 1200);
  EXPECT_TRUE(counted.at("before").is_string());
  EXPECT_EQ(left().first, std::size_t{all_events});
  EXPECT_EQ(purged({}).at("events"), 1200);
  EXPECT_EQ(left().first, 100U);
}

TEST_P(OldEventsTest, RetentionRemovesThemWhileTheProgramServes) {
  ChildProcess& child = run("--listen 127.0.0.1:0 --retention 90d");
  EXPECT_TRUE(child.read_until("postrider info: removed 1200 old events", 30s).has_value());
  EXPECT_EQ(left(), std::pair(std::size_t{100}, std::size_t{100}));
  child.signal(SIGTERM);
  EXPECT_TRUE(child.wait().value().ok());
}

POSTRIDER_FOR_EACH_BACKEND(OldEventsTest);

}  // namespace
}  // namespace postrider::cli
