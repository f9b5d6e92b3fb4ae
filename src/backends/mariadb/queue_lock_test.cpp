// SPDX-License-Identifier: Apache-2.0
// What only MariaDB can get wrong about the queue: locks of others, transactions with an old view, numbers of
// rows. The rest is in the conformance suite.
#include <gmock/gmock.h>

#include <chrono>
#include <future>
#include <thread>

#include "backends/mariadb/mariadb_fixture.hpp"
#include "postrider/queue_admin.hpp"

namespace postrider::mariadb {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class MariadbQueueTest : public MariadbTest {
 protected:
  std::vector<InsertedRow> put(const std::vector<std::string>& names, std::string_view key = {}) {
    Transaction tx = storage().begin();
    std::vector<Event> events;
    std::vector<NewQueueRow> rows;
    for (const std::string& name : names) events.push_back(event(name));
    for (const Event& one : events) rows.push_back({.event = &one, .ordering_key = key});
    std::vector<InsertedRow> inserted = queue().insert(tx, rows);
    tx.commit();
    return inserted;
  }
  std::vector<QueuedEvent> take(std::size_t limit = 100, std::size_t run = 1) {
    return queue().claim({.owner = "n1", .lease = 60s, .limit = limit, .run_limit = run}).events;
  }
  static std::vector<std::string> names(const std::vector<QueuedEvent>& events) {
    std::vector<std::string> result;
    for (const QueuedEvent& one : events) result.push_back(one.event->id().str());
    return result;
  }
  Settled finish(const Claim& claim) {
    const Settlement one{.claim = claim};
    return queue().settle({&one, 1}).at(0);
  }
  /// Until some transaction waits for a lock.
  bool somebody_waits() {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    while (std::chrono::steady_clock::now() < deadline) {
      if (client().query("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").at(0).at(1) != "0") {
        return true;
      }
      std::this_thread::yield();
    }
    return false;
  }
};

TEST_F(MariadbQueueTest, AnOperatorsVerbThatLosesADeadlockIsTriedAgain) {
  const auto id = static_cast<std::int64_t>(put({"a"}).at(0).id);
  const auto entry = [&](std::int64_t number) {
    client().query(
        "INSERT INTO " + prefix_ +
        "_event_log (id, token, event_id, event_type, payload, status, priority, attempts, crashes, "
        "created_at, occurred_at, finalized_at) VALUES (" +
        std::to_string(number) +
        ", 1, 'x', 'T', '{}', 2, 0, 1, 0, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))");
  };
  client().query("BEGIN");
  // The server gives up the transaction that has written less: that is the operator's.
  for (std::int64_t other = 1; other <= 50; ++other) entry(id + other);
  entry(id);
  QueueAdmin admin{storage()};
  auto cancelled = std::async(std::launch::async, [&] { return admin.cancel({}, "why"); });
  ASSERT_TRUE(somebody_waits()) << "it has the event, and waits for the entry in the log";
  client().query("SELECT id FROM " + queue_table() + " WHERE id = " + std::to_string(id) + " FOR UPDATE");
  EXPECT_EQ(cancelled.get(), 0) << "tried again, it passes over what is locked now";
  client().query("ROLLBACK");
  EXPECT_EQ(admin.cancel({}, "why"), 1);
}

TEST_F(MariadbQueueTest, ALockedHeadHoldsItsFollowersBackAndNobodyWaits) {
  put({"1", "2", "3"}, "k");
  put({"free"});
  client().query("BEGIN");
  client().query("SELECT * FROM " + queue_table() + " WHERE event_id = '1' AND id = 1 FOR UPDATE");
  EXPECT_THAT(names(take(100, 3)), ElementsAre("free"));
  client().query("COMMIT");
  EXPECT_THAT(names(take(100, 3)), ElementsAre("1", "2", "3"));
}

TEST_F(MariadbQueueTest, ALockedFollowerEndsTheRun) {
  const auto rows = put({"1", "2", "3"}, "k");
  client().query("BEGIN");
  client().query("SELECT * FROM " + queue_table() +
                 " WHERE id = " + std::to_string(static_cast<std::int64_t>(rows[1].id)) + " FOR UPDATE");
  EXPECT_THAT(names(take(100, 3)), ElementsAre("1"));
  client().query("COMMIT");
}

TEST_F(MariadbQueueTest, ARowThatIsLockedHoldsNobodyElseUpWhoFinalises) {
  put({"quick"});
  put({"slow"});
  const auto claimed = take();
  ASSERT_EQ(names(claimed), (std::vector<std::string>{"quick", "slow"}));
  const std::string slow_id = std::to_string(static_cast<std::int64_t>(claimed[1].claim.id));
  // A claim that passes a row somebody has locked keeps a lock on the row's entry in the index: the DELETE of
  // the row has to wait for it.
  Client claimer = new_client();
  client().query("BEGIN");
  client().query("SELECT id FROM " + queue_table() + " WHERE id = " + slow_id + " FOR UPDATE");
  claimer.query("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
  claimer.query("BEGIN");
  EXPECT_THAT(
      claimer.query("SELECT id FROM " + queue_table() +
                    " FORCE INDEX (event_queue_due) WHERE due_priority = 0 AND available_at >= '" +
                    client().one("SELECT available_at FROM " + queue_table() + " WHERE id = " + slow_id) +
                    "' FOR UPDATE SKIP LOCKED"),
      IsEmpty());
  client().query("ROLLBACK");
  auto slow = std::async(std::launch::async, [&] { return finish(claimed[1].claim); });
  EXPECT_TRUE(somebody_waits());
  auto quick = std::async(std::launch::async, [&] { return finish(claimed[0].claim); });
  EXPECT_EQ(quick.wait_for(20s), std::future_status::ready) << "held up by the numbers of the log";
  claimer.query("ROLLBACK");
  EXPECT_EQ(slow.get(), Settled::applied);
  EXPECT_EQ(quick.get(), Settled::applied);
  EXPECT_EQ(client().one("SELECT event_id FROM " + prefix_ + "_event_log WHERE seq = 1"), "quick");
}

TEST_F(MariadbQueueTest, AHandlersOpenTransactionDoesNotHoldUpTheHeartbeatOfOthers) {
  put({"a", "b"});
  const auto claimed = take();
  ASSERT_EQ(claimed.size(), 2U);
  const std::vector<Claim> held{claimed[0].claim, claimed[1].claim};
  {
    Transaction tx = storage().begin();
    const HandlerResult done{.handler = "h"};
    EXPECT_TRUE(queue().save_states(tx, held[0], {&done, 1}));
    EXPECT_THAT(queue().renew(held, 60s), UnorderedElementsAre(held[0].id, held[1].id));
    tx.rollback();
  }
  EXPECT_EQ(queue().renew(held, 60s).size(), 2U);
}

TEST_F(MariadbQueueTest, ATransactionWithAnOldViewIsToldWhatHasHappenedSince) {
  put({"a", "b", "c"});
  const auto claimed = take();
  ASSERT_EQ(claimed.size(), 3U);
  Client user = new_client();
  user.query("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  user.query("START TRANSACTION WITH CONSISTENT SNAPSHOT");
  EXPECT_EQ(finish(claimed[0].claim), Settled::applied);
  AdoptedTx tx = adopt(user.get());
  EXPECT_EQ(queue().settle(tx, {.claim = claimed[0].claim}), Settled::repeated);
  EXPECT_EQ(queue().settle(tx, {.claim = {claimed[0].claim.id, Token{9}}}), Settled::stale);
  EXPECT_EQ(queue().settle(tx, {.claim = claimed[1].claim}), Settled::applied);
  EXPECT_EQ(queue().settle(tx, {.claim = claimed[1].claim}), Settled::repeated);
  queue().sequence_log();
  EXPECT_EQ(finish(claimed[2].claim), Settled::applied) << "whoever is not done holds up nobody's numbers";
  user.query("COMMIT");
  queue().sequence_log();
  EXPECT_EQ(client().query("SELECT event_id FROM " + prefix_ + "_event_log ORDER BY seq"),
            (std::vector<std::vector<std::string>>{{"a"}, {"c"}, {"b"}}));
}

TEST_F(MariadbQueueTest, NumbersAreThoseOfTheRowsWhateverTheServersStep) {
  Transaction tx = storage().begin();
  tx.execute("SET SESSION auto_increment_increment = 7");
  std::vector<Event> events;
  std::vector<NewQueueRow> rows;
  for (int i = 0; i < 300; ++i) events.push_back(event("e" + std::to_string(i)));
  for (std::size_t i = 0; i < events.size(); ++i) {
    rows.push_back({.event = &events[i], .dedupe_key = i % 50 == 3 ? events[i].id().view() : ""});
  }
  const std::vector<InsertedRow> inserted = queue().insert(tx, rows);
  tx.commit();
  ASSERT_EQ(inserted.size(), 300U);
  const auto found = client().query("SELECT id, event_id FROM " + queue_table() + " ORDER BY id");
  ASSERT_EQ(found.size(), 300U);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i][0], std::to_string(static_cast<std::int64_t>(inserted[i].id)));
    EXPECT_EQ(found[i][1], events[i].id().view());
  }
}

TEST_F(MariadbQueueTest, AClaimLeavesTheRecordAsLongAsItWas) {
  put({"a"});
  const std::string size = "SELECT LENGTH(room) FROM " + queue_table();
  EXPECT_EQ(client().one(size), "64");
  EXPECT_EQ(take().size(), 1U);
  EXPECT_EQ(client().one(size), "NULL") << "given up for owner, lease and time";
}

TEST_F(MariadbQueueTest, ALargeBatchOfLargePayloadsReachesTheLog) {
  std::vector<Event> events;
  std::vector<NewQueueRow> rows;
  const std::string payload = "\"" + std::string(EventLimits::payload_bytes - 2, 'x') + "\"";
  for (int i = 0; i < 20; ++i) events.push_back(event("e" + std::to_string(i), payload));
  for (const Event& one : events) rows.push_back({.event = &one});
  Transaction tx = storage().begin();
  queue().insert(tx, rows);
  tx.commit();
  std::vector<Settlement> all;
  for (const QueuedEvent& one : take()) all.push_back({.claim = one.claim});
  EXPECT_THAT(queue().settle(all),
              ::testing::AllOf(::testing::SizeIs(20), ::testing::Each(Settled::applied)));
  EXPECT_EQ(client().one("SELECT COUNT(*) FROM " + prefix_ + "_event_log WHERE LENGTH(payload) = 1048576"),
            "20");
}

}  // namespace
}  // namespace postrider::mariadb
