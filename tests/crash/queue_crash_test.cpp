// SPDX-License-Identifier: Apache-2.0
// Three processes with eight workers each on one queue. They are killed and stopped at random; in the end
// every event is in the log once, and what handlers did through complete(tx) happened once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <iostream>
#include <random>
#include <thread>

#include "postrider/postrider.hpp"
#include "storage/queue_store.hpp"
#include "support/crash_test.hpp"
#include "support/places.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;

class QueueCrash : public CrashTest {
 protected:
  QueueCrash() : CrashTest(test::crash_child("queue_child")) {}
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> tables() const override {
    return {{"effect", "id bigint not null"}};
  }
  [[nodiscard]] std::unique_ptr<ChildProcess> start_next(std::vector<std::string> options) {
    options.push_back("seed=" + std::to_string(++started_));
    return start(options);
  }
  /// Waits until nothing is left in the queue but what is in quarantine. False when that takes too long.
  bool await_empty(std::chrono::seconds timeout = 120s) {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (number("select count(*) from " + table("event_queue") + " where quarantined_at is null") > 0) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(20ms);  // other processes do the work: there is nothing to be woken by
    }
    return true;
  }
  static std::vector<Event> events(int count, int first) {
    std::vector<Event> list;
    for (int i = 0; i < count; ++i) {
      EventBuilder builder = Event::builder("T");
      builder.json(std::to_string(first + i));
      if (i % 3 == 0) builder.ordering_key("k" + std::to_string((first + i) % 7));
      list.push_back(builder.build());
    }
    return list;
  }
  void expect_balance(std::int64_t published) {
    storage_->queue_store().sequence_log();
    EXPECT_EQ(number("select count(*) from " + table("event_log")), published);
    EXPECT_EQ(number("select count(distinct id) from " + table("event_log")), published);
    EXPECT_EQ(number("select count(distinct event_id) from " + table("event_log")), published);
    EXPECT_EQ(number("select count(*) from " + table("event_log") + " where status <> 2"), 0);
    EXPECT_EQ(number("select max(seq) from " + table("event_log")) >= published, true);
    EXPECT_EQ(number("select count(*) from " + table("event_log") + " where seq is null"), 0);
    // Exactly once, whatever died when.
    EXPECT_EQ(number("select count(*) from " + table("effect")), published);
    EXPECT_EQ(number("select count(distinct id) from " + table("effect")), published);
  }

  int started_ = 0;
};

TEST_P(QueueCrash, RandomKillsAndStops) {
  const unsigned seed = chosen_seed();
  SCOPED_TRACE("POSTRIDER_SEED=" + std::to_string(seed));
  const int kills = chosen_count("POSTRIDER_KILLS", 200);
  std::mt19937 random(seed);
  const auto below = [&](unsigned bound) {
    return std::uniform_int_distribution<unsigned>(0, bound - 1)(random);
  };

  EventQueue queue(*storage_, {.log = [](LogLevel, std::string_view) {}});
  std::array<std::unique_ptr<ChildProcess>, 3> nodes;
  for (auto& node : nodes) {
    node = start_next({});
    ASSERT_TRUE(node->read_until("ready"));
  }
  int published = 0;
  for (int i = 0; i < kills; ++i) {
    const std::vector<Event> some = events(30, published);
    queue.publish(some);
    published += static_cast<int>(some.size());
    auto& victim = nodes[below(3)];
    // Somewhere in its work: after so many events that it has handled, at most.
    (void)victim->skip_lines(below(12), 300ms);
    if (below(8) == 0) {
      victim->freeze();
      std::this_thread::sleep_for(std::chrono::milliseconds(below(400)));  // longer than its lease at times
      victim->signal(SIGCONT);
    }
    victim->kill();
    victim = start_next({});
    ASSERT_TRUE(victim->read_until("ready"));
  }
  EXPECT_TRUE(await_empty());
  for (auto& node : nodes) {
    node->close_stdin();
    const auto end = node->wait();
    EXPECT_TRUE(end && end->ok());
  }
  expect_balance(published);
  std::cout << "[ balance  ] " << to_string(GetParam()) << ": " << published << " events, " << kills
            << " kills, most attempts " << number("select max(attempts) from " + table("event_log"))
            << ", crashes counted " << number("select sum(crashes) from " + table("event_log")) << std::endl;
}

TEST_P(QueueCrash, HazardQ7AHandlerThatAbortsEndsInQuarantine) {
  // A node that a busy disk has kept silent for longer than the lease counts as dead, too: not here.
  const std::vector<std::string> node_options{"crashes=3", "slow=0", "lease=1500"};
  EventQueue queue(*storage_, {.log = [](LogLevel, std::string_view) {}});
  queue.publish(events(100, 0));
  const QueueId killer = queue.publish(Event::json("T", R"("abort")")).id();
  queue.publish(events(100, 100));
  std::array<std::unique_ptr<ChildProcess>, 2> nodes;
  int deaths = 0;
  const auto quarantined = [&] {
    return number("select count(*) from " + table("event_queue") + " where quarantined_at is not null");
  };
  for (auto& node : nodes) node = start_next(node_options);
  const auto deadline = std::chrono::steady_clock::now() + 120s;
  while (quarantined() == 0 && std::chrono::steady_clock::now() < deadline) {
    for (auto& node : nodes) {
      if (!node->wait(20ms)) continue;
      ++deaths;
      node = start_next(node_options);
    }
  }
  EXPECT_EQ(quarantined(), 1);
  EXPECT_EQ(number("select id from " + table("event_queue") + " where quarantined_at is not null"),
            static_cast<std::int64_t>(killer));
  EXPECT_TRUE(await_empty());
  EXPECT_EQ(number("select count(*) from " + table("event_log") + " where status = 2"), 200);
  EXPECT_GE(deaths, 3);
  EXPECT_LE(deaths, 4) << "the fleet must survive";
  for (auto& node : nodes) {
    node->close_stdin();
    const auto end = node->wait();
    EXPECT_TRUE(end && end->ok());
  }
}

POSTRIDER_FOR_EACH_CRASH_BACKEND(QueueCrash);

}  // namespace
}  // namespace postrider::test
