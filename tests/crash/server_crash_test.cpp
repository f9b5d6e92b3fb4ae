// SPDX-License-Identifier: Apache-2.0
// The program lives; its database server is killed under load, again and again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <set>
#include <thread>

#include "postrider/open.hpp"
#include "postrider/postrider.hpp"
#include "postrider/testing.hpp"
#include "support/balance.hpp"
#include "support/private_server.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using testing::RecordingMetrics;

constexpr int kills = 5;
constexpr std::size_t capacity = 64;
constexpr std::size_t workers = 4;

/// What became of each attempt to place an order, as its caller saw it.
struct Answers {
  std::mutex mutex;
  std::set<EventId> committed;
  std::set<EventId> in_doubt;
  std::set<EventId> refused;
  std::vector<std::string> unexpected;
};

class Customer {
 public:
  Customer(Storage& storage, const std::string& schema, Outbox& outbox, Answers& answers, int lane)
      : storage_(storage), shop_(storage, schema), outbox_(outbox), answers_(answers), lane_(lane) {}

  void run(const std::atomic<bool>& stop) {
    for (std::int64_t number = 1; !stop; ++number) {
      Order order{new_event_id(), {}, number, number % 10 == 0 ? Fate::flaky : Fate::ok};
      if (number % 3 == 0) order.key = "lane" + std::to_string(lane_);
      place(order);
    }
  }

 private:
  void place(const Order& order) {
    try {
      auto tx = storage_.begin();
      shop_.enter_lane(tx, lane_);
      shop_.insert(tx, order);
      outbox_.publish(tx, event_of(order).build());
      tx.commit();
      const std::lock_guard lock(answers_.mutex);
      answers_.committed.insert(order.id);
    } catch (const Error& error) {
      const std::lock_guard lock(answers_.mutex);
      if (error.in_doubt()) {
        answers_.in_doubt.insert(order.id);
      } else {
        answers_.refused.insert(order.id);
        if (!error.retryable()) answers_.unexpected.emplace_back(error.what());
      }
    }
  }

  Storage& storage_;
  const Shop shop_;
  Outbox& outbox_;
  Answers& answers_;
  const int lane_;
};

class ServerCrash : public ::testing::TestWithParam<BackendKind> {
 protected:
  void SetUp() override {
    if (!CrashDatabase::available(GetParam())) GTEST_SKIP() << "no servers. Hint: scripts/with-servers";
  }
};

TEST_P(ServerCrash, KilledUnderLoadLosesNothing) {
  PrivateServer server(GetParam());
  CrashDatabase database(GetParam(), server.url());
  StorageOptions storage_options;
  storage_options.schema = Identifier(database.schema());
  storage_options.connect_timeout = 2s;
  storage_options.log = {};
  const auto storage = open(server.url(), storage_options);
  storage->migrate();

  const std::string notes_path = database.folder() + "/notes";
  RecordingMetrics metrics;
  {
    const NoteFile notes(notes_path, 1);
    Outbox outbox(*storage, {.workers = workers,
                             .hot_queue_capacity = capacity,
                             .cold_queue_capacity = capacity,
                             .poller_interval = 50ms,
                             .retry_base_delay = 5ms,
                             .retry_max_delay = 50ms,
                             .lease = 3s,
                             .metrics = &metrics,
                             .log = {}});
    outbox.on("OrderPlaced", [&](const Event& event, const Delivery& delivery) {
      const Order order = order_of(event);
      const bool fails = order.fate == Fate::flaky && delivery.failed == Attempt{0};
      notes.write(fails ? Note::What::failed : Note::What::done, order);
      if (fails) throw std::runtime_error("flaky");
    });
    outbox.start();

    Answers answers;
    std::atomic<bool> stop{false};
    std::vector<std::thread> customers;
    for (int lane = 0; lane < 3; ++lane) {
      customers.emplace_back(
          [&, lane] { Customer(*storage, database.schema(), outbox, answers, lane).run(stop); });
    }
    for (int i = 0; i < kills; ++i) {
      const auto before = metrics.get(RecordingMetrics::Counter::flushed_events);
      EXPECT_TRUE(metrics.await(RecordingMetrics::Counter::flushed_events, before + 150)) << "no progress";
      server.kill();
      server.start();
    }
    const auto before = metrics.get(RecordingMetrics::Counter::flushed_events);
    EXPECT_TRUE(metrics.await(RecordingMetrics::Counter::flushed_events, before + 150)) << "no progress";
    stop = true;
    for (std::thread& customer : customers) customer.join();
    EXPECT_TRUE(await_nothing_pending(*storage));
    outbox.stop();

    Facts facts;
    facts.orders = Shop(*storage, database.schema()).orders();
    facts.notes = read_notes(notes_path);
    facts.duplicates_only_after_kills = false;
    look_up(*storage, facts);
    const Balance balance = add_up(facts);
    EXPECT_THAT(balance.violations, IsEmpty()) << balance.text();
    // Everything the process could hold at each kill, and no more.
    EXPECT_LE(balance.duplicates, kills * 3 * (2 * capacity + workers));

    std::set<EventId> there;
    for (const Order& order : facts.orders) there.insert(order.id);
    std::size_t doubts_committed = 0;
    for (const EventId& id : answers.committed) EXPECT_TRUE(there.contains(id)) << "lost: " << id.view();
    for (const EventId& id : answers.refused)
      EXPECT_FALSE(there.contains(id)) << "refused, yet there: " << id.view();
    for (const EventId& id : answers.in_doubt) {
      doubts_committed += there.contains(id) ? 1 : 0;
      EXPECT_EQ(there.contains(id), outbox.admin().find(id).has_value())
          << "half a transaction: " << id.view();
    }
    EXPECT_THAT(answers.unexpected, IsEmpty()) << "neither retryable nor in doubt";
    EXPECT_EQ(there.size(), answers.committed.size() + doubts_committed);
    std::cout << "[ balance  ] " << to_string(GetParam()) << ", server killed " << kills
              << " times: committed " << answers.committed.size() << ", refused " << answers.refused.size()
              << ", in doubt " << answers.in_doubt.size() << " (of them committed " << doubts_committed
              << "); " << balance.text() << std::endl;
  }
}

std::vector<BackendKind> servers() {
  std::vector<BackendKind> kinds = crash_backends();
  std::erase(kinds, BackendKind::sqlite);
  return kinds;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ServerCrash);
INSTANTIATE_TEST_SUITE_P(Backends, ServerCrash, ::testing::ValuesIn(servers()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace postrider::test
