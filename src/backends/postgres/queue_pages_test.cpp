// SPDX-License-Identifier: Apache-2.0
// What the queue does to its pages: claims stay on them, and entries of deleted rows are not walked over.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/postgres/queue_store.hpp"
#include "support/postgres.hpp"

namespace postrider::postgres {
namespace {

using namespace std::chrono_literals;
using test::NativeConnection;
using test::PostgresTest;

/// One connection, so that its own counters tell what the store has done.
class QueuePagesTest : public PostgresTest {
 protected:
  [[nodiscard]] test::TestDatabase::Options options() const override { return {.pool_size = 1}; }

  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    query("ALTER TABLE " + queue() + " SET (autovacuum_enabled = off)");
  }
  [[nodiscard]] std::string queue() const { return database_->table("event_queue"); }
  [[nodiscard]] QueueStore& queue_store() { return storage().queue_store(); }

  void publish(int count) {
    const std::string payload = R"({"text": ")" + std::string(100, 'x') + R"("})";
    std::vector<Event> events;
    std::vector<NewQueueRow> rows;
    for (int i = 0; i < count; ++i) events.push_back(Event::json("Happened", payload));
    for (const Event& event : events) rows.push_back({.event = &event});
    Transaction tx = storage().begin();
    queue_store().insert(tx, rows);
    tx.commit();
  }
  std::vector<Settlement> claim(std::size_t limit) {
    std::vector<Settlement> settlements;
    for (const QueuedEvent& one :
         queue_store().claim({.owner = "node-17.example.org:4711", .lease = 1h, .limit = limit}).events) {
      settlements.push_back({.claim = one.claim});
    }
    return settlements;
  }

  struct Counters {
    std::int64_t updates = 0;
    std::int64_t hot = 0;
    std::int64_t buffers = 0;  ///< pages of the table and of its indexes that were looked at
  };
  Counters counters() {
    query("SELECT pg_stat_force_next_flush()");
    const Rows rows = query(
        "SELECT t.n_tup_upd, t.n_tup_hot_upd, io.heap_blks_hit + io.heap_blks_read + io.idx_blks_hit + "
        "io.idx_blks_read FROM pg_stat_user_tables t JOIN pg_statio_user_tables io USING (relid) "
        "WHERE t.relid = '" +
        queue() + "'::regclass");
    return {rows.integer(0, 0), rows.integer(0, 1), rows.integer(0, 2)};
  }
  /// Pages that `times` claims of one row each look at, together.
  std::int64_t buffers_of_claims(int times) {
    const std::int64_t before = counters().buffers;
    for (int i = 0; i < times; ++i) EXPECT_EQ(claim(1).size(), 1U);
    return counters().buffers - before;
  }
};

TEST_F(QueuePagesTest, ClaimsRenewalsAndReleasesAreHotUpdates) {
  constexpr std::int64_t count = 5000;
  publish(static_cast<int>(count));
  std::vector<Settlement> claimed = claim(static_cast<std::size_t>(count));
  ASSERT_EQ(claimed.size(), static_cast<std::size_t>(count));
  const Counters after_claim = counters();
  EXPECT_EQ(after_claim.updates, count);
  EXPECT_GE(after_claim.hot, count * 99 / 100);

  std::vector<Claim> held;
  for (const Settlement& one : claimed) held.push_back(one.claim);
  EXPECT_EQ(queue_store().renew(held, 1h).size(), held.size());
  const Counters after_renewal = counters();
  EXPECT_EQ(after_renewal.updates, 2 * count);
  EXPECT_GE(after_renewal.hot - after_claim.hot, count * 9 / 10);

  for (Settlement& one : claimed) one.kind = Settlement::Kind::release;
  for (const Settled answer : queue_store().settle(claimed)) ASSERT_EQ(answer, Settled::applied);
  const Counters after_release = counters();
  EXPECT_EQ(after_release.updates, 3 * count);
  EXPECT_GE(after_release.hot - after_renewal.hot, count * 9 / 10);
}

TEST_F(QueuePagesTest, HazardQ8_DeletedRowsThatAnOldSnapshotKeepsAreNotWalkedByEveryClaim) {
  constexpr int claims = 60;
  publish(claims);
  claim(1);  // plans
  (void)buffers_of_claims(1);
  const std::int64_t undisturbed = buffers_of_claims(claims - 2);

  const NativeConnection old = connect();
  run(old, "BEGIN ISOLATION LEVEL REPEATABLE READ");
  run(old, "SELECT 1 FROM " + queue() + " LIMIT 1");
  constexpr int dead = 50'000;
  publish(dead);
  for (int done = 0; done < dead;) {
    const std::vector<Settlement> claimed = claim(1000);
    ASSERT_FALSE(claimed.empty());
    for (const Settled answer : queue_store().settle(claimed)) ASSERT_EQ(answer, Settled::applied);
    done += static_cast<int>(claimed.size());
  }
  publish(2 * claims);
  // The walk is as long as that: if this one were short, the test would prove nothing.
  std::int64_t walk = 0;
  {
    auto fresh = database_->open_another();
    const std::int64_t before = counters().buffers;
    Transaction tx = fresh->begin();
    for (const char* other : {"seqscan", "bitmapscan", "sort"}) {
      tx.execute("SET LOCAL enable_" + std::string(other) + " = off");
    }
    tx.execute("SELECT count(*) FROM (SELECT 1 FROM " + queue() +
               " WHERE ordering_key IS NULL AND quarantined_at IS NULL AND priority = 0 AND status = 0 "
               "ORDER BY available_at, id LIMIT 1) AS x");
    tx.execute("SELECT pg_stat_force_next_flush()");
    tx.commit();
    fresh.reset();
    walk = counters().buffers - before;
  }
  ASSERT_GT(walk, 100 * undisturbed / (claims - 2));

  // A full scan now and then remains: 20 times its cost must pass between two of them.
  const std::int64_t disturbed = buffers_of_claims(claims - 2);
  EXPECT_LT(disturbed, undisturbed + (claims - 2) / 4 * walk)
      << "one claim without them: " << undisturbed / (claims - 2) << ", one walk: " << walk;
  run(old, "COMMIT");
}

TEST_F(QueuePagesTest, WhatWasGivenBackBehindTheCursorIsFoundAgain) {
  const NativeConnection old = connect();
  run(old, "BEGIN ISOLATION LEVEL REPEATABLE READ");
  run(old, "SELECT 1 FROM " + queue() + " LIMIT 1");
  publish(20'000);
  Settlement first;
  for (int done = 0; done < 20'000;) {
    std::vector<Settlement> claimed = claim(1000);
    ASSERT_FALSE(claimed.empty());
    done += static_cast<int>(claimed.size());
    if (first.claim.id == QueueId{}) {
      first = claimed.front();
      claimed.erase(claimed.begin());
    }
    queue_store().settle(claimed);
  }
  first.kind = Settlement::Kind::release;
  ASSERT_EQ(queue_store().settle({&first, 1}), std::vector{Settled::applied});
  // Not necessarily at once, but without any help.
  const SteadyPoint deadline = std::chrono::steady_clock::now() + 60s;
  std::vector<Settlement> found;
  while (found.empty() && std::chrono::steady_clock::now() < deadline) found = claim(10);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().claim.id, first.claim.id);
  run(old, "COMMIT");
}

}  // namespace
}  // namespace postrider::postgres
