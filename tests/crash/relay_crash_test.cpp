// SPDX-License-Identifier: Apache-2.0
// Nodes of a relay that die and stand still: who takes over, how soon, and what the receivers see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "postrider/append_event.hpp"
#include "postrider/error.hpp"
#include "postrider/open.hpp"
#include "postrider/relay_admin.hpp"
#include "storage/stream_store.hpp"
#include "support/crash_test.hpp"
#include "support/places.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;
using Clock_ = std::chrono::steady_clock;

struct Delivery {
  std::int64_t epoch = 0;
  std::vector<std::int64_t> positions{};
};

class RelayCrash : public CrashTest {
 protected:
  RelayCrash() : CrashTest(test::crash_child("relay_child")) {}
  [[nodiscard]] std::string file() const { return database_->folder() + "/received"; }
  [[nodiscard]] std::unique_ptr<ChildProcess> start_node(std::vector<std::string> options) const {
    options.insert(options.begin(), file());
    return start(options);
  }
  static std::vector<AppendEvent> events(int count, bool odd) {
    std::vector<AppendEvent> list;
    for (int i = 0; i < count; ++i) {
      AppendEventBuilder builder = AppendEvent::builder("T");
      if (odd) builder.tag("odd", "1");
      list.push_back(builder.data("{}").build());
    }
    return list;
  }
  static Appended append(Storage& storage, int count, bool odd = false) {
    const std::vector<AppendEvent> list = events(count, odd);
    const AppendRequest request{.events = list};
    return std::get<Appended>(storage.stream_store().append({&request, 1}).at(0));
  }
  /// What each pair got, in order.
  [[nodiscard]] std::map<PairName, std::vector<Delivery>> received() const {
    std::map<PairName, std::vector<Delivery>> all;
    std::ifstream in(file());
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      PairName name;
      Delivery delivery;
      words >> name.topic >> name.publisher >> delivery.epoch;
      for (std::int64_t position = 0; words >> position;) delivery.positions.push_back(position);
      all[name].push_back(std::move(delivery));
    }
    return all;
  }
  /// Waits until every pair stands at the head; those of topic "odd" do only behind an event of theirs. False
  /// when that takes too long.
  bool await_head(std::chrono::seconds timeout, bool with_odd = true) {
    const auto deadline = Clock_::now() + timeout;
    for (;;) {
      const std::vector<PairStatus> pairs = RelayAdmin(*storage_).list();
      const bool done =
          pairs.size() == 4 && std::all_of(pairs.begin(), pairs.end(), [&](const PairStatus& pair) {
            return (pair.name.topic == "odd" && !with_odd) || pair.lag_events == 0;
          });
      if (done) return true;
      if (Clock_::now() > deadline) return false;
      std::this_thread::sleep_for(20ms);  // other processes do the work: there is nothing to be woken by
    }
  }
  /// Waits until so many nodes lead pairs, and none is left over.
  bool await_leaders(std::size_t count) {
    const auto deadline = Clock_::now() + 20s;
    while (Clock_::now() < deadline) {
      std::set<std::string> leaders;
      for (const PairStatus& pair : RelayAdmin(*storage_).list()) leaders.insert(pair.leader);
      if (leaders.size() == count && !leaders.contains("")) return true;
      std::this_thread::sleep_for(20ms);  // as above
    }
    return false;
  }
  /// Every event of the topic at least once, and, to a receiver that turns lower epochs away, in order.
  void expect_complete(const std::set<std::int64_t>& all, const std::set<std::int64_t>& odd) {
    std::size_t again = 0;
    std::size_t late = 0;
    const auto got = received();
    for (const char* publisher : {"p", "q"}) {
      for (const char* topic : {"all", "odd"}) {
        const std::set<std::int64_t>& expected = topic == std::string("all") ? all : odd;
        const auto found = got.find({topic, publisher});
        ASSERT_TRUE(found != got.end() || expected.empty()) << topic << " " << publisher;
        if (found == got.end()) continue;
        std::set<std::int64_t> seen;
        std::int64_t epoch = 0;
        std::int64_t last = 0;
        for (const Delivery& delivery : found->second) {
          if (delivery.epoch < epoch) {
            ++late;
            continue;
          }
          epoch = delivery.epoch;
          for (const std::int64_t position : delivery.positions) {
            if (!seen.insert(position).second) {
              ++again;
              continue;
            }
            EXPECT_GT(position, last) << topic << " " << publisher << ": a first delivery out of order";
            last = position;
          }
        }
        EXPECT_EQ(seen, expected) << topic << " " << publisher;
      }
    }
    std::cout << "[ balance  ] " << to_string(GetParam()) << ": " << all.size() << " events, " << again
              << " delivered again, " << late << " batches of an old epoch" << std::endl;
  }
};

double seconds_since(Clock_::time_point begin) {
  return std::chrono::duration<double>(Clock_::now() - begin).count();
}

TEST_P(RelayCrash, HazardS9AKilledLeadersPairsAreTakenOverWithinTwoSeconds) {
  for (const char* mode : {"balanced=0", "balanced=1"}) {
    const auto a = start_node({mode, "lease=60000"});
    ASSERT_TRUE(a->read_until("ready"));
    append(*storage_, 1);
    ASSERT_TRUE(a->read_until("d"));
    const auto b = start_node({mode, "lease=60000"});
    ASSERT_TRUE(b->read_until("ready"));
    const bool balanced = mode == std::string("balanced=1");
    ASSERT_TRUE(await_leaders(balanced ? 2 : 1)) << "in balanced mode b is given its share first";
    EXPECT_TRUE(a->kill().killed());
    const auto begin = Clock_::now();
    append(*storage_, 1, true);
    ASSERT_TRUE(await_head(20s)) << "nobody has taken over";
    const double took = seconds_since(begin);
    std::cout << "[ takeover ] " << to_string(GetParam()) << ", " << mode << ": " << took
              << " s after kill -9" << std::endl;
    EXPECT_LE(took, 2.0);
    b->close_stdin();
    EXPECT_TRUE(b->wait()->ok());
  }
}

/// A frozen process may hold a lock of the database, as it would anywhere; then nobody can go on, and nothing
/// is proved. So: freeze it at a moment when it holds none.
void freeze_outside_transactions(ChildProcess& node, CrashDatabase& database) {
  const auto storage =
      open(database.url(), {.schema = Identifier(database.schema()), .sqlite_busy_timeout = 200ms});
  for (int attempt = 0; attempt < 50; ++attempt) {
    node.freeze();
    try {
      Transaction tx = storage->begin();
      if (database.kind() == BackendKind::postgres) tx.execute("set local lock_timeout = '500ms'");
      if (database.kind() == BackendKind::mariadb) tx.execute("set innodb_lock_wait_timeout = 1");
      const std::string dot = database.kind() == BackendKind::postgres ? "." : "_";
      for (const char* table :
           {"outbox_topic_progress set updated_at = updated_at", "outbox_lease set since = since"}) {
        tx.execute("update " + database.schema() + dot + table);
      }
      tx.rollback();
      return;
    } catch (const Error&) {
      node.signal(SIGCONT);
    }
  }
  FAIL() << "cannot be frozen outside a transaction";
}

TEST_P(RelayCrash, HazardS10AFrozenLeaderLosesItsPairsWithItsLeaseAndItsWriteIsRefused) {
  // In the middle of a batch; then between a batch and the write about it, which is tried for certain.
  for (const char* where : {"hold=1", "hold=2"}) {
    SCOPED_TRACE(where);
    const auto frozen = start_node({"lease=2000", where});
    ASSERT_TRUE(frozen->read_until("ready"));
    append(*storage_, 5);
    ASSERT_TRUE(frozen->read_until("holding"));
    freeze_outside_transactions(*frozen, *database_);
    const auto begin = Clock_::now();
    const auto other = start_node({"lease=2000"});
    ASSERT_TRUE(other->read_until("d"));
    const double took = seconds_since(begin);
    std::cout << "[ takeover ] " << to_string(GetParam()) << ": " << took << " s after a freeze, lease 2 s"
              << std::endl;
    EXPECT_LE(took, 2.0 + 2.0);
    const auto head = static_cast<std::int64_t>(append(*storage_, 5).last);
    ASSERT_TRUE(await_head(20s, false));
    const std::vector<PairStatus> before = RelayAdmin(*storage_).list();
    frozen->signal(SIGCONT);
    ASSERT_TRUE(frozen->write_line("go"));
    if (where == std::string("hold=1")) {
      ASSERT_TRUE(frozen->read_until("d")) << "what it had begun";
    }
    frozen->close_stdin();
    const auto refused = frozen->read_until("refused");
    ASSERT_TRUE(refused.has_value());
    // With the batch only begun there may be none, when it saw in time that it leads no more.
    if (where == std::string("hold=2")) {
      EXPECT_NE(*refused, "refused 0");
    }
    EXPECT_TRUE(frozen->wait()->ok());
    const std::vector<PairStatus> after = RelayAdmin(*storage_).list();
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_GE(after[i].position, before[i].position);
      EXPECT_EQ(after[i].leader, before[i].leader);
      EXPECT_EQ(after[i].epoch, before[i].epoch);
    }
    other->close_stdin();
    EXPECT_TRUE(other->wait()->ok());
    std::set<std::int64_t> all;
    for (std::int64_t i = 1; i <= head; ++i) all.insert(i);
    expect_complete(all, {});
  }
}

/// What is appended while nodes come and go, and what of it was committed.
class Appenders {
 public:
  explicit Appenders(CrashDatabase& database) {
    for (unsigned kind = 0; kind < 3; ++kind) {
      threads_.emplace_back([this, kind, storage = std::shared_ptr<Storage>(database.open())] {
        std::mt19937 random(kind);
        for (std::int64_t i = 0; !stop_; ++i) {
          try {
            one(*storage, kind, random);
          } catch (const Error& error) {
            // A process that stands still with a lock of the database: the append did not happen.
            EXPECT_TRUE(error.retryable() && !error.in_doubt()) << error.what();
          }
        }
      });
    }
  }
  ~Appenders() { stop(); }
  void stop() {
    stop_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  [[nodiscard]] const std::set<std::int64_t>& all() const { return all_; }
  [[nodiscard]] const std::set<std::int64_t>& odd() const { return odd_; }

 private:
  void one(Storage& storage, unsigned kind, std::mt19937& random) {
    std::vector<AppendEvent> list;
    const bool odd = random() % 4 == 0;
    for (unsigned i = 0; i <= random() % 5; ++i) {
      AppendEventBuilder builder = AppendEvent::builder("T");
      if (odd) builder.tag("odd", "1");
      list.push_back(builder.data("{}").build());
    }
    const AppendRequest request{.events = list};
    Appended appended;
    if (kind == 0) {
      appended = std::get<Appended>(storage.stream_store().append({&request, 1}).at(0));
      std::this_thread::sleep_for(2ms);
    } else {
      // A user's transaction: slow, and every third one is rolled back.
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 10));
      Transaction tx = storage.begin();
      appended = std::get<Appended>(storage.stream_store().append(tx, request));
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 5));
      if (kind == 2 && random() % 3 == 0) {
        tx.rollback();
        return;
      }
      tx.commit();
    }
    const std::lock_guard lock(mutex_);
    for (auto i = static_cast<std::int64_t>(appended.first); i <= static_cast<std::int64_t>(appended.last);
         ++i) {
      all_.insert(i);
      if (odd) odd_.insert(i);
    }
  }

  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::set<std::int64_t> all_;
  std::set<std::int64_t> odd_;
  std::vector<std::thread> threads_;
};

TEST_P(RelayCrash, SkipStorm) {
  const unsigned seed = chosen_seed();
  const int seconds = chosen_count("POSTRIDER_RELAY_STORM_SECONDS", 5);
  SCOPED_TRACE("POSTRIDER_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const std::vector<std::string> options{seed % 2 == 0 ? "balanced=1" : "balanced=0", "lease=900",
                                         "heartbeat=100"};
  Appenders appenders(*database_);

  std::atomic<bool> stop{false};
  std::atomic<int> backwards{0};
  std::thread watch([&, storage = database_->open()] {
    std::map<PairName, std::pair<Position, Epoch>> last;
    while (!stop) {
      try {
        for (const PairStatus& pair : RelayAdmin(*storage).list()) {
          auto& [position, epoch] = last[pair.name];
          if (pair.position < position || pair.epoch < epoch) ++backwards;
          position = pair.position;
          epoch = pair.epoch;
        }
      } catch (const Error&) {
        continue;
      }
      std::this_thread::sleep_for(5ms);
    }
  });

  std::vector<std::unique_ptr<ChildProcess>> nodes;
  for (int i = 0; i < 3; ++i) nodes.push_back(start_node(options));
  int kills = 0;
  int freezes = 0;
  const auto deadline = Clock_::now() + std::chrono::seconds(seconds);
  while (Clock_::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100 + random() % 400));
    auto& node = nodes[random() % nodes.size()];
    if (random() % 2 == 0) {
      node->kill();
      node = start_node(options);
      ++kills;
    } else {
      node->freeze();
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 2 == 0 ? 200 : 1400));
      node->signal(SIGCONT);
      ++freezes;
    }
  }
  appenders.stop();
  const auto last = static_cast<std::int64_t>(append(*storage_, 1, true).last);
  EXPECT_TRUE(await_head(60s));
  int refused = 0;  // of those that live to tell it
  for (const auto& node : nodes) {
    node->close_stdin();
    const auto told = node->read_until("refused");
    if (told) refused += std::stoi(told->substr(told->find(' ')));
    const auto end = node->wait();
    EXPECT_TRUE(end && end->ok());
  }
  stop = true;
  watch.join();
  EXPECT_EQ(backwards, 0) << "progress or an epoch moved back";
  EXPECT_GT(appenders.all().size(), 50U);
  std::cout << "[ storm    ] " << kills << " kills, " << freezes << " freezes, " << refused
            << " writes refused, seed " << seed << ", " << options[0] << std::endl;
  std::set<std::int64_t> all = appenders.all();
  std::set<std::int64_t> odd = appenders.odd();
  all.insert(last);
  odd.insert(last);
  expect_complete(all, odd);
}

POSTRIDER_FOR_EACH_CRASH_BACKEND(RelayCrash);

}  // namespace
}  // namespace postrider::test
