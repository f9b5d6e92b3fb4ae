// SPDX-License-Identifier: Apache-2.0
// Kills a shop, by SIGKILL, at every failpoint and at random moments, and then does its books.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <random>
#include <thread>

#include "support/crash_run.hpp"
#include "support/places.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::string program = test::crash_child("outbox_child");

/// Delivered, and not yet in the database, as outbox_child runs without options: at the 4 workers, in the
/// completer's queue (16 hot, 16 cold and the workers), and the 32 in its hand.
constexpr std::size_t held_at_most = 4 + (16 + 16 + 4) + 32;

class OutboxCrash : public ::testing::TestWithParam<BackendKind> {
 protected:
  void SetUp() override {
    if (!CrashDatabase::available(GetParam())) GTEST_SKIP() << "no server. Hint: scripts/with-servers";
    start_ = std::chrono::steady_clock::now();
  }

  void expect_books_in_order(CrashRun& run, const std::string& what) {
    const std::string report = run.drain();
    EXPECT_THAT(report, StartsWith("report pending 0"));
    const Balance balance = run.balance(held_at_most);
    EXPECT_THAT(balance.violations, IsEmpty()) << balance.text();
    if (HasFailure()) run.database().keep();
    const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    std::cout << "[ balance  ] " << to_string(GetParam()) << ", " << what << ", " << run.kills() << " kills, "
              << seconds << " s: " << balance.text() << std::endl;
  }

  [[nodiscard]] std::vector<std::string> learn_failpoints() {
    CrashRun run(GetParam(), program);
    const auto child = run.start({"transactions=40", "drain=1"});
    std::vector<std::string> names;
    while (const auto line = child->read_until("failpoint "))
      names.push_back(line->substr(line->find(' ') + 1));
    const auto end = child->wait();
    EXPECT_TRUE(end && end->ok());
    const Balance balance = run.balance(held_at_most);
    EXPECT_THAT(balance.violations, IsEmpty()) << "without any kill: " << balance.text();
    EXPECT_EQ(balance.duplicates, 0U) << "nobody was killed: " << balance.text();
    return names;
  }

  /// Starts a process that is to die at the failpoint's n-th pass. False when it never got there.
  static bool die_at(CrashRun& run, const std::string& name, int pass) {
    const auto child = run.start({"transactions=40", "drain=1"},
                                 {{"POSTRIDER_FAILPOINT", name + "=kill@" + std::to_string(pass)}});
    const auto end = child->wait();
    EXPECT_TRUE(end.has_value()) << "hangs instead of dying at " << name;
    if (end && end->ok()) return false;
    run.was_killed(run.generations());
    EXPECT_TRUE(!end || end->killed()) << "at " << name << ": " << end->text();
    return true;
  }

  std::chrono::steady_clock::time_point start_;
};

TEST_P(OutboxCrash, DiesAtEveryFailpoint) {
  const std::vector<std::string> names = learn_failpoints();
  ASSERT_GE(names.size(), 8U) << "is POSTRIDER_FAILPOINTS on?";
  CrashRun run(GetParam(), program);
  std::map<int, std::string> died_at;
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    if (name.find("migrate") != std::string::npos) {
      // Passed once in the life of a database: each needs one that is new.
      CrashRun fresh(GetParam(), program);
      EXPECT_TRUE(die_at(fresh, name, 1));
      EXPECT_THAT(fresh.drain({"transactions=3"}), StartsWith("report pending 0"));
      const Balance balance = fresh.balance(held_at_most);
      EXPECT_THAT(balance.violations, IsEmpty()) << balance.text();
      continue;
    }
    // The next one takes over what the last one left behind, then dies elsewhere.
    for (const int pass : {1, 6}) {
      const bool died = die_at(run, name, pass);
      EXPECT_TRUE(died || pass > 1) << "was never passed";
      died_at[run.generations()] = name;
    }
  }
  expect_books_in_order(run, std::to_string(names.size()) + " failpoints");
  if (!HasFailure()) return;
  for (const auto& [generation, name] : died_at)
    std::cout << "  process " << generation << ": " << name << "\n";
}

TEST_P(OutboxCrash, DiesAtRandomMoments) {
  const unsigned seed = chosen_seed();
  const int kills = chosen_count("POSTRIDER_CRASH_KILLS", 200);
  std::cout << "[ seed     ] POSTRIDER_SEED=" << seed << std::endl;
  std::mt19937 random(seed);
  const auto upto = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };

  CrashRun run(GetParam(), program);
  for (int i = 0; i < kills; ++i) {
    // Most publish and deliver; some only deliver what those before them have left.
    const bool publishes = upto(5) > 0;
    const auto child = run.start({publishes ? "transactions=-1" : "drain=1"});
    // Its steps tell how far it is; not every moment is near a step, so a little later.
    child->skip_lines(static_cast<std::size_t>(upto(60)), 30s);
    std::this_thread::sleep_for(std::chrono::microseconds{upto(3000)});
    const ProcessEnd end = child->kill();
    if (end.killed()) run.was_killed(run.generations());
    ASSERT_TRUE(end.killed() || (end.ok() && !publishes))
        << "process " << run.generations() << ": " << end.text();
  }
  expect_books_in_order(run, "random moments");
}

/// While some die, one lives on and delivers what they leave behind. It must not deliver anything twice
/// itself.
TEST_P(OutboxCrash, DiesBesideANodeThatLives) {
  const unsigned seed = chosen_seed();
  std::cout << "[ seed     ] POSTRIDER_SEED=" << seed << std::endl;
  std::mt19937 random(seed);
  CrashRun run(GetParam(), program);
  const auto survivor = run.start({"transactions=30", "publishers=1"});
  ASSERT_TRUE(survivor->read_until("published"));
  for (int i = 0; i < 25; ++i) {
    const auto child = run.start({"transactions=-1"});
    child->skip_lines(std::uniform_int_distribution<std::size_t>(1, 60)(random), 30s);
    EXPECT_TRUE(child->kill().killed());
    run.was_killed(run.generations());
  }
  survivor->close_stdin();
  const auto end = survivor->wait();
  EXPECT_TRUE(end && end->ok()) << "the survivor: " << (end ? end->text() : "does not end");
  expect_books_in_order(run, "beside a living node");
}

INSTANTIATE_TEST_SUITE_P(Backends, OutboxCrash, ::testing::ValuesIn(crash_backends()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace postrider::test
