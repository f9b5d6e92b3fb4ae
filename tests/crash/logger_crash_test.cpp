// SPDX-License-Identifier: Apache-2.0
// A process that logs is killed at random moments, again and again, on one folder. In the end everything that
// log() had accepted was delivered; what came twice came with its key, from the batches that were on their
// way.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <thread>

#include "support/child_process.hpp"
#include "support/crash_run.hpp"
#include "support/temp_dir.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;

const std::string program = std::string(CRASH_CHILD_DIR) + "/logger_child";

struct Count {
  std::map<std::string, int> logged;
  std::map<std::string, int> delivered;
  std::map<std::string, std::uint64_t> lost;
};

Count read_notes_file(const std::string& path) {
  Count count;
  std::ifstream in(path);
  std::string what;
  std::string key;
  while (in >> what >> key) {
    if (what == "l") ++count.logged[key];
    if (what == "d") ++count.delivered[key];
    if (what == "x") {
      std::uint64_t events = 0;
      in >> events;
      count.lost[key] += events;
    }
  }
  return count;
}

void kill_after(ChildProcess& child, std::chrono::microseconds time) {
  // The moment of the kill is what is random here, so real time passes.
  std::this_thread::sleep_for(time);
  child.kill();
}

void run_lives(const TempDir& temp, const std::string& mode, int kills, std::mt19937& random) {
  for (int life = 1; life <= kills; ++life) {
    ChildProcess child({program, temp.path().string(), std::to_string(life), mode});
    ASSERT_TRUE(child.read_until("ready")) << "life " << life;
    kill_after(child, std::chrono::microseconds(random() % 8000));
  }
  ChildProcess last({program, temp.path().string(), "0", "drain"});
  ASSERT_TRUE(last.read_until("drained", std::chrono::seconds{120}));
  ASSERT_TRUE(last.wait()->ok());
}

TEST(LoggerCrash, HazardL14NothingThatLogAcceptedIsLostToKill9) {
  const unsigned seed = chosen_seed();
  const int kills = chosen_count("POSTRIDER_LOGGER_KILLS", 100);
  SCOPED_TRACE("POSTRIDER_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const TempDir temp;
  ASSERT_NO_FATAL_FAILURE(run_lives(temp, "mapped", kills, random));
  const Count count = read_notes_file(temp.file("notes"));
  ASSERT_GT(count.logged.size(), static_cast<std::size_t>(kills));
  EXPECT_TRUE(count.lost.empty());
  std::size_t missing = 0;
  for (const auto& [key, times] : count.logged) missing += count.delivered.contains(key) ? 0 : 1;
  EXPECT_EQ(missing, 0U) << "accepted and never delivered";
  std::size_t twice = 0;
  for (const auto& [key, times] : count.delivered) twice += static_cast<std::size_t>(times - 1);
  // Per kill: one batch of the sender, one of the replay and one on its way to disk.
  EXPECT_LE(twice, static_cast<std::size_t>(kills) * 60);
  std::cout << "logged " << count.logged.size() << ", delivered twice " << twice << " in " << kills
            << " kills\n";
}

TEST(LoggerCrash, WithMemoryRingsOnlyWhatTheGaugesSaidIsLost) {
  const unsigned seed = chosen_seed();
  SCOPED_TRACE("POSTRIDER_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  for (int round = 1; round <= 10; ++round) {
    const TempDir temp;
    ASSERT_NO_FATAL_FAILURE(run_lives(temp, "memory", 1, random));
    const Count count = read_notes_file(temp.file("notes"));
    std::size_t missing = 0;
    for (const auto& [key, times] : count.logged) missing += count.delivered.contains(key) ? 0 : 1;
    // The last gauge, and what was logged after it (and possibly during it).
    std::ifstream in(temp.file("notes"));
    std::uint64_t gauge = 0;
    std::uint64_t after = 0;
    std::uint64_t before = 0;
    std::string what;
    std::string value;
    while (in >> what >> value) {
      if (what == "g") {
        before = after;
        after = 0;
        gauge = std::stoull(value);
      }
      after += what == "l" ? 1 : 0;
    }
    EXPECT_LE(missing, gauge + after + before);
  }
}

}  // namespace
}  // namespace postrider::test
