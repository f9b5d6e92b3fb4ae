// SPDX-License-Identifier: Apache-2.0
// What an old read view costs the queue on MariaDB. InnoDB tells how many pages were looked at for the whole
// server alone, so this needs one of its own. (PostgreSQL's twin is in
// backends/postgres/queue_pages_test.cpp; SQLite deletes in place: there is nothing that an old snapshot
// could leave in an index.)
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "postrider/postrider.hpp"
#include "storage/queue_store.hpp"
#include "support/foreign_connection.hpp"
#include "support/private_server.hpp"
#include "support/shop.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;

class HeldViewMariadb : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CrashDatabase::available(BackendKind::mariadb)) {
      GTEST_SKIP() << "no servers. Hint: scripts/with-servers";
    }
    server_.emplace(BackendKind::mariadb);
    storage_ = open(server_->url(), {.pool_size = 1});
    storage_->migrate();
  }
  void publish(int count) {
    std::vector<Event> events;
    for (int i = 0; i < count; ++i) events.push_back(Event::json("T", R"({"text": "some"})"));
    std::vector<NewQueueRow> rows;
    for (const Event& event : events) rows.push_back({.event = &event});
    Transaction tx = storage_->begin();
    storage_->queue_store().insert(tx, rows);
    tx.commit();
  }
  std::vector<Settlement> claim(std::size_t limit) {
    std::vector<Settlement> settlements;
    for (const QueuedEvent& one :
         storage_->queue_store().claim({.owner = "n", .lease = 1h, .limit = limit}).events) {
      settlements.push_back({.claim = one.claim});
    }
    return settlements;
  }
  std::int64_t pages() {
    Transaction tx = storage_->begin();
    return tx
        .execute(
            "select cast(variable_value as signed) from information_schema.global_status "
            "where variable_name = 'INNODB_BUFFER_POOL_READ_REQUESTS'")
        .integer(0, 0);
  }
  /// Pages that `times` claims of one row each look at, together.
  std::int64_t pages_of_claims(int times) {
    const std::int64_t before = pages();
    for (int i = 0; i < times; ++i) EXPECT_EQ(claim(1).size(), 1U);
    return pages() - before;
  }

  /// Rows that are deleted, and that an old view keeps.
  void bury(int count) {
    for (int done = 0; done < count; done += 5000) publish(5000);
    for (int done = 0; done < count;) {
      const std::vector<Settlement> claimed = claim(1000);
      ASSERT_FALSE(claimed.empty());
      for (const Settled answer : storage_->queue_store().settle(claimed))
        ASSERT_EQ(answer, Settled::applied);
      done += static_cast<int>(claimed.size());
    }
  }
  void walk() {
    Transaction tx = storage_->begin();
    tx.execute(
        "select id from postrider_event_queue force index (event_queue_due) where due_priority = 0 and "
        "status = 0 order by available_at, id limit 1");
  }
  std::int64_t pages_of_a_walk() {
    const std::int64_t before = pages();
    walk();
    return pages() - before;
  }
  SteadyPoint::duration shortest_walk(int times) {
    auto shortest = SteadyPoint::duration::max();
    for (int i = 0; i < times; ++i) {
      const SteadyPoint begin = std::chrono::steady_clock::now();
      walk();
      shortest = std::min(shortest, std::chrono::steady_clock::now() - begin);
    }
    return shortest;
  }

  std::optional<PrivateServer> server_;
  std::unique_ptr<Storage> storage_;
};

TEST_F(HeldViewMariadb, HazardQ8_DeletedRowsThatAnOldViewKeepsAreNotWalkedByEveryClaim) {
  constexpr int claims = 60;
  publish(claims);
  (void)claim(2);  // plans
  const std::int64_t undisturbed = pages_of_claims(claims - 2);

  const auto old = ForeignConnection::open(BackendKind::mariadb, server_->url());
  old->run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  old->run("START TRANSACTION WITH CONSISTENT SNAPSHOT");
  // The walk is as long as that: if this one were short, the test would prove nothing. And one that takes no
  // more than two milliseconds is made with every claim, by intent: a quick machine needs more of them.
  constexpr int step = 100'000;
  constexpr int most = 1'000'000;
  std::int64_t walk = 0;
  for (int dead = 0; dead < most; dead += step) {
    bury(step);
    walk = pages_of_a_walk();
    if (shortest_walk(3) > 5ms) break;
  }
  ASSERT_GT(shortest_walk(3), 5ms);
  ASSERT_GT(walk, 2 * undisturbed / (claims - 2));
  publish(2 * claims);

  // A full scan now and then remains: 20 times its cost must pass between two of them.
  const std::int64_t disturbed = pages_of_claims(claims - 2);
  EXPECT_LT(disturbed, undisturbed * 3 / 2 + (claims - 2) / 4 * walk)
      << "one claim without them: " << undisturbed / (claims - 2) << ", one walk: " << walk;
  std::cout << "[ pages    ] one claim: " << undisturbed / (claims - 2) << ", one walk: " << walk
            << ", one claim behind the dead: " << disturbed / (claims - 2) << std::endl;
  old->run("ROLLBACK");
}

}  // namespace
}  // namespace postrider::test
