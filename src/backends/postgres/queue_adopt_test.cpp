// SPDX-License-Identifier: Apache-2.0
// The queue inside transactions of users' own connections, binary and through text alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/postgres/tx_statement.hpp"
#include "postrider/error.hpp"
#include "postrider/event_queue.hpp"
#include "postrider/postgres.hpp"
#include "storage/queue_store.hpp"
#include "support/postgres.hpp"
#if defined(POSTRIDER_TEST_PQXX)
#include "postrider/pqxx.hpp"
#endif

namespace postrider::postgres {
namespace {

using namespace std::chrono_literals;
using test::NativeConnection;
using test::PostgresTest;

class QueueAdoptTest : public PostgresTest {
 protected:
  [[nodiscard]] QueueStore& queue() { return storage().queue_store(); }
  [[nodiscard]] QueueClaimResult claim() {
    return queue().claim({.owner = "n", .lease = 1h, .limit = 100, .run_limit = 9});
  }

  /// Inserts, and does everything else that a user's transaction can, in three transactions that `in_tx`
  /// makes.
  template <class InTx>
  void expect_all_verbs_work(const InTx& in_tx) {
    const TimePoint past{std::chrono::sys_days{std::chrono::year{1999} / 12 / 31} + 23h + 59min + 7us};
    const std::string strange = R"(a "b" \c {d,NULL} 'e' ünï)";
    const Event first = Event::builder("Odd.v1")
                            .aggregate("T", strange)
                            .tenant("NULL")
                            .header("k", strange)
                            .occurred_at(past)
                            .deliver_at(past)
                            .json(R"({"text": "a\\b\"c"})")
                            .build();
    const Event second = Event::builder("Raw").bytes(std::string("\0\xff\"\\", 4)).build();
    const Event third = Event::json("Twice", "1");
    const std::vector<NewQueueRow> rows{{.event = &first, .priority = 9},
                                        {.event = &second, .ordering_key = strange, .dedupe_key = strange},
                                        {.event = &third, .dedupe_key = strange}};
    std::vector<InsertedRow> inserted;
    in_tx([&](Tx& tx) { inserted = queue().insert(tx, rows); });
    ASSERT_EQ(inserted.size(), 3U);
    EXPECT_FALSE(inserted[0].duplicate);
    EXPECT_FALSE(inserted[1].duplicate);
    EXPECT_TRUE(inserted[2].duplicate);
    EXPECT_EQ(inserted[2].id, inserted[1].id);

    std::vector<QueuedEvent> events = claim().events;
    ASSERT_EQ(events.size(), 2U);
    if (events[0].claim.id != inserted[0].id) std::swap(events[0], events[1]);
    ASSERT_TRUE(events[0].event.has_value()) << events[0].decode_error;
    EXPECT_EQ(events[0].event->aggregate_id(), strange);
    EXPECT_EQ(events[0].event->tenant_id(), "NULL");
    EXPECT_EQ(events[0].event->headers_json(), first.headers_json());
    EXPECT_EQ(events[0].event->payload(), first.payload());
    EXPECT_EQ(events[0].event->occurred_at(), past);
    EXPECT_EQ(events[0].priority, 9);
    ASSERT_TRUE(events[1].event.has_value()) << events[1].decode_error;
    EXPECT_EQ(events[1].event->payload(), second.payload());
    EXPECT_EQ(events[1].ordering_key, strange);

    const HandlerResult result{.handler = strange,
                               .verdict = HandlerVerdict::transient_error,
                               .failed = Attempt{3},
                               .error = strange};
    in_tx([&](Tx& tx) {
      EXPECT_TRUE(queue().save_states(tx, events[0].claim, {&result, 1}));
      EXPECT_FALSE(queue().save_states(tx, {events[0].claim.id, Token{9}}, {&result, 1}));
    });
    const std::vector<QueueId> ids{events[0].claim.id};
    const auto states = queue().load_states(ids);
    ASSERT_EQ(states.size(), 1U);
    EXPECT_EQ(states[0].result, result);

    in_tx([&](Tx& tx) {
      EXPECT_EQ(queue().settle(tx, {.claim = events[0].claim, .results = {result}}), Settled::applied);
      EXPECT_EQ(queue().settle(tx, {.claim = events[0].claim}), Settled::repeated);
      EXPECT_EQ(queue().settle(tx, {.claim = {events[1].claim.id, Token{9}}}), Settled::stale);
      EXPECT_EQ(queue().settle(tx, {.claim = {QueueId{4711}, Token{9}}}), Settled::unknown);
    });
    queue().sequence_log();
    EXPECT_EQ(query("SELECT seq FROM " + database_->table("event_log")).integer(0, 0), 1);
  }
};

TEST_F(QueueAdoptTest, WorksOnAConnectionOfLibpq) {
  const NativeConnection connection = connect();
  expect_all_verbs_work([&](const auto& work) {
    run(connection, "BEGIN");
    AdoptedTx tx = adopt(connection.get());
    work(tx);
    run(connection, "COMMIT");
  });
}

#if defined(POSTRIDER_TEST_PQXX)
TEST_F(QueueAdoptTest, WorksThroughTextOnAConnectionOfPqxx) {
  pqxx::connection connection(url());
  connection.set_variable("DateStyle", "German");
  expect_all_verbs_work([&](const auto& work) {
    pqxx::work transaction(connection);
    AdoptedTx tx = pqxx_adopt(transaction);
    work(tx);
    transaction.commit();
  });
}
#endif

TEST_F(QueueAdoptTest, AConnectionWithoutATransactionIsRefused) {
  const NativeConnection connection = connect();
  EventQueue events(storage());
  events.publish(Event::json("E", "1"));
  const Claim held = events.poll().value().claim;
  AdoptedTx tx = adopt(connection.get());  // no BEGIN: every statement would commit by itself
  const auto code = [](const auto& action) {
    try {
      action();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::database;
  };
  EXPECT_EQ(code([&] { events.publish(tx, Event::json("E", "2")); }), ErrorCode::not_in_transaction);
  EXPECT_EQ(code([&] { (void)events.complete(tx, held); }), ErrorCode::not_in_transaction);
  EXPECT_EQ(query("SELECT count(*) FROM " + database_->table("event_queue")).integer(0, 0), 1);
}

TEST_F(QueueAdoptTest, ALockedRowDoesNotHoldUpTheHeartbeatsOfOthers) {
  const Event one = Event::json("E", "1");
  const Event two = Event::json("E", "2");
  const std::vector<NewQueueRow> rows{{.event = &one}, {.event = &two}};
  Transaction tx = storage().begin();
  queue().insert(tx, rows);
  tx.commit();
  const std::vector<QueuedEvent> events = claim().events;
  ASSERT_EQ(events.size(), 2U);
  const std::vector<Claim> held{events[0].claim, events[1].claim};

  Transaction handlers = storage().begin();
  ASSERT_TRUE(queue().save_states(handlers, held[0], {}));
  EXPECT_THAT(queue().renew(held, 2h), ::testing::ElementsAre(held[0].id, held[1].id))
      << "locked by the handler's transaction, therefore nobody else's";
  handlers.commit();
  const Rows leases = query("SELECT lease_until > clock_timestamp() + interval '90 minutes' FROM " +
                            database_->table("event_queue") + " ORDER BY id");
  EXPECT_EQ(leases.text(0, 0), "f");
  EXPECT_EQ(leases.text(1, 0), "t");
}

}  // namespace
}  // namespace postrider::postgres
