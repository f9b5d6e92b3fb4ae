// SPDX-License-Identifier: Apache-2.0
// Three nodes of the program on one PostgreSQL, a real Kafka behind them, and a leader that is killed again
// and again under load. What arrived is judged by kcat, which knows nothing of us.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <boost/json.hpp>
#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "postrider/event_store.hpp"
#include "postrider/relay_admin.hpp"
#include "sinks/kafka/kafka_broker.hpp"
#include "support/backend.hpp"
#include "support/child_process.hpp"
#include "support/eventually.hpp"
#include "support/places.hpp"
#include "support/temp_dir.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;
namespace json = boost::json;

constexpr int nodes = 3;
constexpr int kills = 20;
constexpr int keys = 20;
constexpr int per_second = 2'000;

class KafkaFailover : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend());
    topic_ = broker_.create_topic(4);
    for (int i = 0; i < nodes; ++i) start(i);
  }
  void start(int node) {
    const std::string path = folder_.file("node" + std::to_string(node) + ".toml");
    std::ofstream(path)
        << "[storage]\nurl = \"" << database_->url() << "\"\nschema = \"" << database_->options().schema.str()
        << "\"\n[node]\nname = \"node" << node
        << "\"\nlog-level = \"error\"\n[server]\nlisten = \"127.0.0.1:0\"\n[relay]\nlease-ms = 3000\n"
        << "heartbeat-ms = 200\n[sinks.kafka]\ntype = \"kafka\"\nbrokers = \"" << broker_.address()
        << "\"\ntopic = \"" << topic_ << "\"\nkey-tag = \"key\"\ntimeout-ms = 5000\n"
        << "[relay.topics.all]\npublishers = [\"kafka\"]\npolling-interval-ms = 50\nbatch-size = 500\n";
    processes_[node].emplace(std::vector<std::string>{test::program_path(), "serve", "-c", path});
    ASSERT_TRUE(processes_[node]->read_until("postrider: ready"));
  }
  /// The number of the node that leads; none when nobody does at the moment.
  std::optional<int> leader() {
    for (const LeaderStatus& one : RelayAdmin(database_->storage()).leaders()) {
      if (one.alive && one.pairs > 0 && one.node.starts_with("node")) return one.node[4] - '0';
    }
    return std::nullopt;
  }
  Position published() {
    const auto pair = RelayAdmin(database_->storage()).find("all", "kafka");
    return pair ? pair->position : Position{0};
  }

  KafkaBroker broker_;
  TempDir folder_;
  std::string topic_;
  std::optional<TestDatabase> database_;
  std::optional<ChildProcess> processes_[nodes];
};

TEST_P(KafkaFailover, TheLeaderIsKilledTwentyTimesAndNothingIsLostOrOutOfOrder) {
  EventStore store(database_->storage());
  std::atomic<int> appended = 0;
  const auto begin = std::chrono::steady_clock::now();
  std::jthread feeder([&](const std::stop_token& stop) {
    constexpr int batch = 100;
    auto next = begin;
    while (!stop.stop_requested()) {
      std::vector<AppendEvent> events;
      for (int i = 0; i < batch; ++i) {
        const int number = appended + i;
        events.push_back(AppendEvent::builder("Counted")
                             .tag("key", "k" + std::to_string(number % keys))
                             .data(std::to_string(number / keys))
                             .build());
      }
      store.append(events);
      appended += batch;
      // The rate is what the test is about; nothing waits for this pause.
      next += std::chrono::milliseconds(1000 * batch / per_second);
      std::this_thread::sleep_until(next);
    }
  });
  std::int64_t in_flight = 0;  // at most, at all kills together
  for (int kill = 0; kill < kills; ++kill) {
    const Position before = published();
    std::optional<int> victim;
    // It has led for a while, and published.
    ASSERT_TRUE(eventually([&] { return (victim = leader()).has_value() && published() > before; }, 30s))
        << kill;
    const Position written = published();
    processes_[*victim]->kill();
    processes_[*victim].reset();
    in_flight += static_cast<std::int64_t>(store.head()) - static_cast<std::int64_t>(written);
    start(*victim);
  }
  feeder.request_stop();
  feeder.join();
  const std::chrono::duration<double> fed = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(appended, 0.9 * per_second * fed.count()) << "the load was not what it should have been";
  const Position head = store.head();
  ASSERT_TRUE(eventually([&] { return published() == head; }, 60s)) << "all of it is out within a minute";

  ChildProcess kcat(
      {"/usr/bin/kcat", "-C", "-q", "-e", "-o", "beginning", "-b", broker_.address(), "-t", topic_, "-J"});
  std::map<std::string, int> next;
  std::set<std::string> seen;
  // Of each partition: how often it went back, and whether it is reading what came before.
  std::map<std::int64_t, std::pair<int, bool>> returns;
  int repeats = 0;
  while (const std::optional<std::string> line = kcat.read_line()) {
    const json::object message = json::parse(*line).as_object();
    const json::array& headers = message.at("headers").as_array();
    std::string id;
    for (std::size_t i = 0; i + 1 < headers.size(); i += 2) {
      if (headers[i].as_string() == "ce_id") id = headers[i + 1].as_string().c_str();
    }
    auto& [times, returned] = returns[message.at("partition").as_int64()];
    if (!seen.insert(id).second) {
      ++repeats;
      if (!returned) ++times;
      returned = true;
      continue;
    }
    returned = false;
    const std::string key = message.at("key").as_string().c_str();
    EXPECT_EQ(std::stoi(message.at("payload").as_string().c_str()), next[key]++) << key << ": out of order";
    if (HasFailure()) return;
  }
  EXPECT_EQ(static_cast<int>(seen.size()), appended) << "complete";
  EXPECT_LE(repeats, in_flight) << "only what a leader had sent and not written down comes again";
  for (const auto& [partition, went_back] : returns) {
    EXPECT_LE(went_back.first, kills) << "partition " << partition << ": events came again without a crash";
  }
  RecordProperty("in_flight", static_cast<int>(in_flight));
  RecordProperty("events", appended);
  RecordProperty("repeats", repeats);
  std::cout << appended << " events, " << repeats << " of them more than once, of at most " << in_flight
            << '\n';
}

INSTANTIATE_TEST_SUITE_P(Backends, KafkaFailover, ::testing::Values("postgres"),
                         [](const auto& chosen) { return chosen.param; });

}  // namespace
}  // namespace postrider::test
