// SPDX-License-Identifier: Apache-2.0
// Two nodes on one database. One of them stands still for longer than its leases last, and wakes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <iostream>
#include <map>
#include <set>

#include "postrider/error.hpp"
#include "postrider/outbox.hpp"
#include "support/crash_run.hpp"
#include "support/places.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

const std::string program = test::crash_child("outbox_child");

class TwoNodes : public ::testing::TestWithParam<BackendKind> {
 protected:
  void SetUp() override {
    if (!CrashDatabase::available(GetParam())) GTEST_SKIP() << "no server. Hint: scripts/with-servers";
  }
};

TEST_P(TwoNodes, DeliverEverythingOnceWhileBothLive) {
  CrashRun run(GetParam(), program);
  const auto storage = run.database().open();
  storage->migrate();
  // Each publishes, and each finds the other's retries, delayed and overflowing events in the database. The
  // lease is long enough for the slowest machine: a node that stalls for longer than its lease is the other
  // test.
  const CrashRun::Options options{"transactions=400", "lease=10000", "poll=20", "migrate=0"};
  const auto with_lane = [&](const char* lane) {
    CrashRun::Options all = options;
    all.emplace_back(lane);
    return all;
  };
  const auto a = run.start(with_lane("lane=0"));
  const auto b = run.start(with_lane("lane=4"));
  ASSERT_TRUE(a->read_until("published", 240s));
  ASSERT_TRUE(b->read_until("published", 240s));
  EXPECT_TRUE(await_nothing_pending(*storage));
  for (const auto& node : {a.get(), b.get()}) {
    node->close_stdin();
    const auto end = node->wait();
    EXPECT_TRUE(end && end->ok());
  }
  const Balance balance = run.balance(0);
  EXPECT_THAT(balance.violations, IsEmpty());
  EXPECT_GE(balance.published, 2000U);
  EXPECT_EQ(balance.duplicates, 0U);
  std::cout << "[ balance  ] " << to_string(GetParam()) << ", two living nodes: " << balance.text()
            << std::endl;
  if (HasFailure()) run.database().keep();
}

/// A frozen process may hold a lock of the database, as it would anywhere; then nobody can go on, and nothing
/// is proved. So: freeze it at a moment when it holds none.
void freeze_outside_transactions(ChildProcess& node, CrashDatabase& database) {
  const auto storage = database.open();
  const Shop shop(*storage, database.schema());
  for (int attempt = 0; attempt < 5; ++attempt) {
    node.freeze();
    try {
      auto tx = storage->begin();
      shop.enter_lane(tx, Shop::lanes - 1);
      tx.rollback();
      return;
    } catch (const Error&) {
      node.signal(SIGCONT);
    }
  }
  FAIL() << "cannot be frozen outside a transaction";
}

std::map<EventId, OutboxRecord> records_of(Storage& storage, const std::vector<Order>& orders) {
  OutboxAdmin admin(storage);
  std::map<EventId, OutboxRecord> records;
  for (const Order& order : orders) {
    if (auto record = admin.find(order.id)) records.emplace(order.id, std::move(*record));
  }
  return records;
}

TEST_P(TwoNodes, OneThatWakesAfterItsLeaseChangesNothing) {
  CrashRun run(GetParam(), program);
  const auto storage = run.database().open();
  storage->migrate();
  const Shop shop(*storage, run.database().schema());

  // An outbox that is not started: its rows are born free, for any node.
  Outbox outbox(*storage, {});
  std::vector<Order> orders;
  std::vector<Event> events;
  std::set<std::string> waiting;
  for (int i = 0; i < 40; ++i) {
    Order order{new_event_id(), {}, i, i < 2 ? Fate::waits : Fate::ok};
    if (i >= 30) order.key = "key" + std::to_string(i % 2);
    if (i < 2) waiting.insert(order.id.str());
    events.push_back(event_of(order).build());
    orders.push_back(order);
  }
  for (const int first : {0, 2}) {  // the waiting ones come first
    const std::size_t count = first == 0 ? 2 : 38;
    auto tx = storage->begin();
    for (std::size_t i = 0; i < count; ++i) shop.insert(tx, orders[static_cast<std::size_t>(first) + i]);
    outbox.publish(tx, std::span<const Event>(events).subspan(static_cast<std::size_t>(first), count));
    tx.commit();
  }

  // The first node takes all of them; its two listeners stand in the middle of the first two. When they go
  // on, one succeeds and one fails: neither may count any more.
  const auto sleeper = run.start({"workers=2", "lease=700", "poll=5000", "capacity=64", "batch=64", "wait=1",
                                  "fail_after_wait=1", "migrate=0"});
  ASSERT_TRUE(sleeper->read_until("waiting"));
  ASSERT_TRUE(sleeper->read_until("waiting"));
  for (const auto& [id, record] : records_of(*storage, orders))
    ASSERT_FALSE(record.owner.empty()) << id.view();
  freeze_outside_transactions(*sleeper, run.database());

  const auto other = run.start({"workers=2", "lease=700", "poll=50", "capacity=64", "batch=64", "migrate=0"});
  ASSERT_TRUE(await_nothing_pending(*storage, 30s)) << "the other node does not take over";
  const auto before = records_of(*storage, orders);

  sleeper->signal(SIGCONT);
  ASSERT_TRUE(sleeper->write_line("go"));
  ASSERT_TRUE(sleeper->read_until("d"));
  ASSERT_TRUE(sleeper->read_until("d"));
  sleeper->close_stdin();
  const auto report = sleeper->read_until("report");
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(sleeper->wait()->ok());
  other->close_stdin();
  EXPECT_TRUE(other->wait()->ok());

  std::map<std::string, int> by_other;
  for (const Note& note : run.notes()) {
    if (note.generation == 1) {
      EXPECT_TRUE(waiting.contains(note.id)) << "delivered after waking: " << to_line(note);
    } else {
      EXPECT_EQ(note.what, Note::What::done);
      ++by_other[note.id];
    }
  }
  EXPECT_EQ(by_other.size(), orders.size());
  for (const auto& [id, count] : by_other) EXPECT_EQ(count, 1) << id;

  const auto after = records_of(*storage, orders);
  ASSERT_EQ(after.size(), orders.size());
  for (const auto& [id, record] : after) {
    EXPECT_EQ(record.status, EventStatus::done) << id.view();
    EXPECT_EQ(record.done_at, before.at(id).done_at) << id.view();
    EXPECT_EQ(record.attempts, before.at(id).attempts) << id.view();
    EXPECT_EQ(record.last_error, "") << id.view();
  }
  const OutboxCounts counts = outbox.admin().counts();
  EXPECT_EQ(counts.pending, 0);
  EXPECT_EQ(counts.done, 40);
  std::cout << "[ balance  ] " << to_string(GetParam()) << ", the sleeper's " << *report << std::endl;
  if (HasFailure()) run.database().keep();
}

INSTANTIATE_TEST_SUITE_P(Backends, TwoNodes, ::testing::ValuesIn(crash_backends()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace postrider::test
