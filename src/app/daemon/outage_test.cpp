// SPDX-License-Identifier: Apache-2.0
// A daemon whose sink is away for longer, while a backlog comes together.
#include <filesystem>
#include <map>

#include "app/daemon/daemon_fixture.hpp"

namespace postrider::daemon {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using test::eventually;

class OutageTest : public DaemonFixture {
 protected:
  static std::vector<Event> events(int count) {
    std::vector<Event> all;
    for (int i = 0; i < count; ++i) all.push_back(Event::json("Placed", "{}"));
    return all;
  }
  static std::multiset<std::string> ids_of(const std::vector<Event>& events) {
    std::multiset<std::string> ids;
    for (const Event& event : events) ids.insert(event.id().str());
    return ids;
  }
  /// All events go to "broken", which is tried often.
  std::string config_with_broken() const {
    return config(file_sink("broken", "missing/broken.jsonl") +
                  "breaker-reset-ms = 500\n[outbox]\npoller-interval-ms = 20\n[[outbox.routes]]\nsink = "
                  "\"broken\"\n");
  }
  void end_outage() { ASSERT_TRUE(std::filesystem::create_directory(folder_.file("missing"))); }
  /// How many events the daemon has claimed.
  static double claimed(const Daemon& daemon) {
    const std::string name = "\npostrider_outbox_claim_events_sum ";
    const std::string text = ask(daemon, "GET", "/metrics").body;
    const std::size_t at = text.find(name);
    return at == std::string::npos ? 0 : std::stod(text.substr(at + name.size()));
  }
  [[nodiscard]] OutboxAdmin admin() { return OutboxAdmin(database_->storage()); }
};

TEST_P(OutageTest, ABacklogIsNotClaimedAgainAndAgainAndComesWithinSecondsOfTheEnd) {
  if (IsSkipped() || HasFatalFailure()) return;
  constexpr int count = 6000;
  LogLines log;
  const auto daemon = make_daemon(config_with_broken(), log.callback());
  daemon->start();
  const std::vector<Event> backlog = events(count);
  const Event planned = Event::builder("Planned").json("{}").deliver_at(Clock::system().now() + 1h).build();
  publish(backlog);
  publish({planned});
  ASSERT_TRUE(eventually([&] { return admin().counts().retrying == count; }, 60s));
  // So many come back in one second, whatever their number.
  std::map<std::int64_t, int> seconds;
  for (const OutboxRecord& record : admin().pending({.error_contains = "sink broken: "}, 10'000))
    ++seconds[std::chrono::floor<std::chrono::seconds>(record.available_at.time_since_epoch()).count()];
  EXPECT_GE(seconds.size(), 10U);
  for (const auto& [second, some] : seconds) EXPECT_LE(some, 1000) << second;
  const double before = claimed(*daemon);
  const auto since = std::chrono::steady_clock::now();
  ASSERT_TRUE(eventually([&] { return claimed(*daemon) >= before + 1500; }, 60s)) << "it is tried again";
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - since;
  EXPECT_LE(claimed(*daemon) - before, 1000 + 600 * time.count());

  end_outage();
  ASSERT_TRUE(eventually([&] { return admin().counts().done == count; }, 60s));
  EXPECT_TRUE(daemon->stop());
  EXPECT_GE(log.with("that waited for it come at once"), 1);
  EXPECT_EQ(ids_in("missing/broken.jsonl"), ids_of(backlog)) << "each once";
  const auto left = admin().pending();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left.front().id, planned.id()) << "it is not its time";
  EXPECT_EQ(left.front().available_at, *planned.deliver_at());
}

TEST_P(OutageTest, WhatAnEarlierProcessHasPutOffComesWithTheFirstSuccess) {
  if (IsSkipped() || HasFatalFailure()) return;
  std::vector<Event> backlog = events(500);
  {
    Outbox outbox(database_->storage(), {.inline_dispatch = true});
    outbox.on_all([](const Event&) { return Outcome::retry_after(1h, "sink broken: away"); });
    outbox.start();
    Transaction tx = database_->storage().begin();
    outbox.publish(tx, backlog);
    tx.commit();
  }
  end_outage();
  const auto daemon = make_daemon(config_with_broken());
  daemon->start();
  backlog.push_back(Event::json("Placed", "{}"));
  publish({backlog.back()});
  EXPECT_TRUE(eventually([&] { return admin().counts().done == 501; }));
  EXPECT_TRUE(daemon->stop());
  EXPECT_EQ(ids_in("missing/broken.jsonl"), ids_of(backlog));
}

TEST_P(OutageTest, OrderPerKeyIsKept) {
  if (IsSkipped() || HasFatalFailure()) return;
  constexpr int keys = 40;
  constexpr int each = 50;
  std::vector<Event> backlog;
  std::map<std::string, std::vector<std::string>> expected;
  for (int n = 0; n < each; ++n) {
    for (int k = 0; k < keys; ++k) {
      const std::string key = "key-" + std::to_string(k);
      backlog.push_back(
          Event::builder("Placed").ordering_key(key).aggregate("Order", key).json("{}").build());
      expected[key].push_back(backlog.back().id().str());
    }
  }
  const auto daemon = make_daemon(config_with_broken());
  daemon->start();
  publish(backlog);
  ASSERT_TRUE(eventually([&] { return admin().counts().retrying == keys; }, 60s)) << "the first of each";
  end_outage();
  ASSERT_TRUE(eventually([&] { return admin().counts().done == keys * each; }, 60s));
  EXPECT_TRUE(daemon->stop());
  std::map<std::string, std::string> key_of;
  for (const Event& event : backlog) key_of[event.id().str()] = event.ordering_key();
  std::map<std::string, std::vector<std::string>> got;
  std::ifstream in(folder_.file("missing/broken.jsonl"));
  for (std::string line; std::getline(in, line);) {
    const std::string id(json::parse(line).at("id").as_string());
    got[key_of[id]].push_back(id);
  }
  EXPECT_EQ(got, expected);
}

POSTRIDER_FOR_EACH_BACKEND(OutageTest);

}  // namespace
}  // namespace postrider::daemon
