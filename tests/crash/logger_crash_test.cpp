// SPDX-License-Identifier: Apache-2.0
// A process that logs is killed at random moments, again and again, on one folder. In the end everything that
// log() had accepted was delivered; what came twice came with its key, from the batches that were on their
// way. Then: signals, and two processes on one folder.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <thread>

#include "support/child_process.hpp"
#include "support/crash_run.hpp"
#include "support/places.hpp"
#include "support/temp_dir.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;

const std::string program = test::crash_child("logger_child");
constexpr std::size_t batch = 20;  // the child's, of senders, replay and writer

struct Delivery {
  int life = 0;  // which process, in the order of their starts
  int thread = 0;
  std::uint64_t request = 0;
};

struct Count {
  std::map<std::string, int> logged;
  std::map<std::string, std::vector<Delivery>> delivered;
  std::map<std::pair<int, int>, std::uint64_t> last_request;  // of a thread of a life
  std::map<std::string, std::uint64_t> lost;
  std::vector<std::string> wrong;
  int lives = 0;
  std::uint64_t gauge = 0;                // the last one
  std::uint64_t logged_around_gauge = 0;  // after it, and between it and the one before

  [[nodiscard]] std::size_t missing() const {
    std::size_t count = 0;
    for (const auto& [key, times] : logged) count += delivered.contains(key) ? 0 : 1;
    return count;
  }
};

Count read_notes_file(const std::string& path) {
  Count count;
  std::ifstream in(path);
  std::uint64_t after = 0;
  std::uint64_t before = 0;
  for (std::string line; std::getline(in, line);) {
    if (!line.ends_with(" .")) continue;  // cut off by a kill
    std::istringstream words(line);
    std::string what;
    std::string key;
    words >> what >> key;
    if (what == "n") ++count.lives;
    if (what == "wrong") count.wrong.push_back(key);
    if (what == "l") {
      ++count.logged[key];
      ++after;
    }
    if (what == "d") {
      Delivery delivery{count.lives};
      words >> delivery.thread >> delivery.request;
      count.delivered[key].push_back(delivery);
      std::uint64_t& last = count.last_request[{delivery.life, delivery.thread}];
      last = std::max(last, delivery.request);
    }
    if (what == "x") {
      std::uint64_t events = 0;
      words >> events;
      count.lost[key] += events;
    }
    if (what == "g") {
      before = after;
      after = 0;
      count.gauge = std::stoull(key);
    }
  }
  count.logged_around_gauge = after + before;
  return count;
}

void kill_after(ChildProcess& child, std::chrono::microseconds time) {
  // The moment of the kill is what is random here, so real time passes.
  std::this_thread::sleep_for(time);
  child.kill();
}

void drain(const TempDir& temp) {
  ChildProcess last({program, temp.path().string(), "0", "drain"});
  ASSERT_TRUE(last.read_until("drained", std::chrono::seconds{120}));
  ASSERT_TRUE(last.wait()->ok());
}

void run_lives(const TempDir& temp, const std::string& mode, int kills, std::mt19937& random) {
  for (int life = 1; life <= kills; ++life) {
    ChildProcess child({program, temp.path().string(), std::to_string(life), mode});
    ASSERT_TRUE(child.read_until("ready")) << "life " << life;
    kill_after(child, std::chrono::microseconds(random() % 8000));
  }
  drain(temp);
}

TEST(LoggerCrash, HazardL14NothingThatLogAcceptedIsLostToKill9) {
  const unsigned seed = chosen_seed();
  const int kills = chosen_count("POSTRIDER_LOGGER_KILLS", 100);
  SCOPED_TRACE("POSTRIDER_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const TempDir temp;
  ASSERT_NO_FATAL_FAILURE(run_lives(temp, "mapped", kills, random));
  const Count count = read_notes_file(temp.file("notes"));
  ASSERT_EQ(count.lives, kills + 1);
  ASSERT_GT(count.logged.size(), static_cast<std::size_t>(kills));
  EXPECT_TRUE(count.lost.empty());
  EXPECT_EQ(count.missing(), 0U) << "accepted and never delivered";
  EXPECT_THAT(count.wrong, ::testing::IsEmpty()) << "a key with another event";
  // Killed between log() and its note: one for each of the two threads.
  std::size_t unnoted = 0;
  for (const auto& [key, times] : count.delivered) unnoted += count.logged.contains(key) ? 0 : 1;
  EXPECT_LE(unnoted, static_cast<std::size_t>(kills) * 2) << "delivered without having been logged";

  // What came twice was in the last request that its thread made before a kill: the sender's or the replay's
  // one batch, delivered and not yet known to be. Or it was on its way to disk, and then in both places.
  std::size_t in_last_request = 0;
  std::size_t on_its_way = 0;
  std::map<int, std::size_t> of_life;
  for (const auto& [key, deliveries] : count.delivered) {
    for (std::size_t i = 0; i + 1 < deliveries.size(); ++i) {
      const Delivery& first = deliveries[i];
      const bool killed_in_it = first.request == count.last_request.at({first.life, first.thread}) &&
                                first.life <= kills && deliveries[i + 1].life > first.life;
      (killed_in_it ? in_last_request : on_its_way) += 1;
      of_life[first.life] += killed_in_it ? 1 : 0;
    }
  }
  for (const auto& [life, twice] : of_life) EXPECT_LE(twice, 2 * batch) << "kill " << life;
  EXPECT_LE(on_its_way, static_cast<std::size_t>(kills) * batch);
  std::cout << "seed " << seed << ": " << kills << " kills, " << count.logged.size()
            << " logged, twice: " << in_last_request << " of requests under way, " << on_its_way
            << " on their way to disk\n";
}

TEST(LoggerCrash, WithMemoryRingsOnlyWhatTheGaugesSaidIsLost) {
  const unsigned seed = chosen_seed();
  SCOPED_TRACE("POSTRIDER_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  std::size_t missing = 0;
  std::uint64_t said = 0;
  const int kills = chosen_count("POSTRIDER_LOGGER_MEMORY_KILLS", 10);
  for (int round = 1; round <= kills; ++round) {
    const TempDir temp;
    ASSERT_NO_FATAL_FAILURE(run_lives(temp, "memory", 1, random));
    const Count count = read_notes_file(temp.file("notes"));
    // The last gauge, and what was logged after it (and possibly during it).
    EXPECT_LE(count.missing(), count.gauge + count.logged_around_gauge);
    EXPECT_TRUE(count.lost.empty());
    missing += count.missing();
    said += count.gauge + count.logged_around_gauge;
  }
  std::cout << "seed " << seed << ": " << kills << " kills, " << missing << " lost, " << said
            << " in memory by the gauges\n";
}

struct Ending {
  const char* mode;
  int signal;
};

TEST(LoggerCrash, ASignalWithTheHookDeliversOrSpillsEverythingThenDoesWhatItDid) {
  for (const auto& [mode, signal] : {Ending{"hook", SIGTERM}, Ending{"hook", SIGINT},
                                     Ending{"hook-second", SIGTERM}, Ending{"hook-beside-own", SIGTERM}}) {
    SCOPED_TRACE(std::string(mode) + " " + std::to_string(signal));
    const TempDir temp;
    ChildProcess child({program, temp.path().string(), "1", mode});
    ASSERT_TRUE(child.read_until("busy"));
    child.signal(signal);
    const auto end = child.wait();
    ASSERT_TRUE(end) << "it did not end";
    if (std::string(mode) != "hook-beside-own") {
      EXPECT_EQ(end->signal, signal) << end->text() << ": whoever sent it sees that it worked";
    } else {
      EXPECT_TRUE(end->exited && end->code == 7) << end->text() << ": the program's own handler ran";
    }
    // The rings were in memory: what is not delivered must be on disk now.
    ASSERT_NO_FATAL_FAILURE(drain(temp));
    const Count count = read_notes_file(temp.file("notes"));
    EXPECT_GE(count.logged.size(), 100U);
    EXPECT_EQ(count.missing(), 0U);
    // What came after the closing was refused, and told.
    for (const auto& [reason, events] : count.lost) EXPECT_EQ(reason, "shutdown_in_progress") << events;
    for (const auto& [key, deliveries] : count.delivered) EXPECT_EQ(deliveries.size(), 1U) << key;
  }
}

/// Runs until the step, where it dies.
void die_at(const TempDir& temp, int life, const std::string& mode, const std::string& step, int signal) {
  ChildProcess child({program, temp.path().string(), std::to_string(life), mode},
                     {{"POSTRIDER_FAILPOINT", step + "=kill"}});
  if (signal != 0) {
    ASSERT_TRUE(child.read_until("busy"));
    child.signal(signal);
  }
  const auto end = child.wait();
  ASSERT_TRUE(end && end->killed()) << step;
}

TEST(LoggerCrash, DyingAtAnyStepOfTheStartOrTheEndLosesNothing) {
  struct Step {
    const char* name;
    const char* mode;
    int signal;
  };
  std::vector<Step> steps;
  for (const char* name :
       {"logger.start.checked", "logger.start.folder", "logger.start.recovered", "logger.start.rings",
        "logger.start.writer", "logger.start.senders", "logger.start.drain", "logger.start.replay"}) {
    steps.push_back({name, "mapped", 0});
  }
  for (const char* name : {"logger.stop.closed", "logger.stop.retries", "logger.stop.drain",
                           "logger.stop.senders", "logger.stop.replay", "logger.stop.writer"}) {
    steps.push_back({name, "hook-mapped", SIGTERM});
  }
  const TempDir temp;
  int life = 0;
  for (const auto& [name, mode, signal] : steps) {
    {
      ChildProcess before({program, temp.path().string(), std::to_string(++life), "mapped"});
      ASSERT_TRUE(before.read_until("busy")) << "there is something to take over";
      before.kill();
    }
    ASSERT_NO_FATAL_FAILURE(die_at(temp, ++life, mode, name, signal));
  }
  ASSERT_NO_FATAL_FAILURE(drain(temp));
  const Count count = read_notes_file(temp.file("notes"));
  EXPECT_GE(count.logged.size(), 1000U);
  EXPECT_EQ(count.missing(), 0U);
  EXPECT_THAT(count.wrong, ::testing::IsEmpty());
  for (const auto& [reason, events] : count.lost) EXPECT_EQ(reason, "shutdown_in_progress") << events;
}

TEST(LoggerCrash, HazardL13ASecondProcessOnTheSameFolderIsRefusedUntilTheFirstEnds) {
  const TempDir temp;
  ChildProcess first({program, temp.path().string(), "1", "hold"});
  ASSERT_TRUE(first.read_until("ready"));
  {
    ChildProcess second(
        {"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>&1", program, temp.path().string(), "2", "hold"});
    const auto said = second.read_until(program + ": ");
    ASSERT_TRUE(said);
    EXPECT_THAT(*said, ::testing::HasSubstr("cannot use the spill folder " + temp.file("spill") +
                                            ": another logger uses it. Hint: give each logger and each "
                                            "process a spillover_path of its own"));
    const auto end = second.wait();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->code, 1);
  }
  // The first has not noticed; when it is killed, nothing has to be cleaned up.
  first.kill();
  ChildProcess third({program, temp.path().string(), "3", "hold"});
  EXPECT_TRUE(third.read_until("ready"));
  third.close_stdin();
  EXPECT_TRUE(third.wait()->ok());
}

}  // namespace
}  // namespace postrider::test
