// SPDX-License-Identifier: Apache-2.0
// Publishing inside transactions of other drivers.
#include <gtest/gtest.h>

#include <string>

#include "postrider/postgres.hpp"
#include "support/postgres.hpp"
#if defined(POSTRIDER_TEST_PQXX)
#include "postrider/pqxx.hpp"
#endif

namespace postrider::postgres {
namespace {

using test::error_of;
using test::NativeConnection;
using test::PostgresTest;

using namespace std::chrono_literals;

class AdoptTest : public PostgresTest {
 protected:
  /// Events of every shape, in one batch.
  [[nodiscard]] static std::vector<Event> samples() {
    std::vector<Event> events;
    events.push_back(Event::json("A", R"({"name":"Ada \"x\" ü"})"));
    events.push_back(Event::bytes("B", std::string("\0\x01\xff'\\", 5)));
    events.push_back(Event::bytes("Empty", ""));
    events.push_back(Event::builder("C")
                         .aggregate("User", "42")
                         .tenant("acme")
                         .header("trace", "a,b'\"")
                         .occurred_at(TimePoint(1'700'000'000'123'456us))
                         .deliver_at(TimePoint(1'700'000'001'000'001us))
                         .json("[1]")
                         .build());
    return events;
  }
  void publish(Tx& tx, const std::vector<Event>& events) {
    std::vector<NewOutboxRow> rows;
    rows.reserve(events.size());
    for (const Event& event : events) rows.push_back({.event = &event, .lease = Duration::zero()});
    store().insert(tx, "node", rows);
  }
  void expect_samples_claimed(const std::vector<Event>& events) {
    const std::vector<ClaimedEvent> claimed = store().claim({.owner = "node", .lease = 30s, .limit = 10});
    ASSERT_EQ(claimed.size(), events.size());
    for (const Event& sent : events) {
      const auto it = std::find_if(claimed.begin(), claimed.end(),
                                   [&](const ClaimedEvent& c) { return c.lease.id == sent.id(); });
      ASSERT_NE(it, claimed.end());
      ASSERT_TRUE(it->event.has_value()) << it->decode_error;
      EXPECT_EQ(it->event->payload(), sent.payload());
      EXPECT_EQ(it->event->payload_kind(), sent.payload_kind());
      EXPECT_EQ(it->event->type(), sent.type());
      EXPECT_EQ(it->event->aggregate_type(), sent.aggregate_type());
      EXPECT_EQ(it->event->aggregate_id(), sent.aggregate_id());
      EXPECT_EQ(it->event->tenant_id(), sent.tenant_id());
      EXPECT_EQ(it->event->headers(), sent.headers());
      EXPECT_EQ(it->event->occurred_at(), sent.occurred_at());
    }
  }
};

TEST_F(AdoptTest, PublishesWithCommitAndRollbackOfAPlainConnection) {
  const NativeConnection connection = connect();
  const std::vector<Event> events = samples();
  run(connection, "BEGIN");
  {
    AdoptedTx tx = adopt(connection.get());
    EXPECT_TRUE(tx.active());
    publish(tx, events);
    EXPECT_EQ(tx.execute("SELECT ?::int", 5).integer(0, 0), 5);
  }
  run(connection, "ROLLBACK");
  EXPECT_EQ(row_count(), 0);
  run(connection, "BEGIN");
  {
    AdoptedTx tx = adopt(connection.get());
    publish(tx, events);
  }
  run(connection, "COMMIT");
  expect_samples_claimed(events);
}

TEST_F(AdoptTest, RefusesAConnectionWhoseTextIsNotUtf8) {
  const NativeConnection connection = connect();
  ASSERT_EQ(PQsetClientEncoding(connection.get(), "LATIN1"), 0);
  run(connection, "BEGIN");
  AdoptedTx tx = adopt(connection.get());
  const Error error = error_of([&] { publish(tx, samples()); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_NE(std::string(error.what()).find("client_encoding of the connection is LATIN1"), std::string::npos);
  ASSERT_EQ(PQsetClientEncoding(connection.get(), "UTF8"), 0);
  publish(tx, samples());
}

TEST_F(AdoptTest, LeavesNoPreparedStatementBehind) {
  const NativeConnection connection = connect();
  run(connection, "BEGIN");
  AdoptedTx tx = adopt(connection.get());
  publish(tx, samples());
  EXPECT_EQ(tx.execute("SELECT count(*) FROM pg_prepared_statements").integer(0, 0), 0);
}

TEST_F(AdoptTest, IsActiveOnlyInsideAHealthyTransaction) {
  const NativeConnection connection = connect();
  AdoptedTx tx = adopt(connection.get());
  EXPECT_FALSE(tx.active());
  EXPECT_EQ(error_of([&] { tx.execute("SELECT 1"); }).code(), ErrorCode::not_in_transaction);
  run(connection, "BEGIN");
  EXPECT_TRUE(tx.active());
  EXPECT_THROW(tx.execute("SELECT 1/0"), Error);
  EXPECT_FALSE(tx.active());
  run(connection, "ROLLBACK");
  EXPECT_FALSE(tx.active());
}

TEST_F(AdoptTest, RefusesPipelineModeAndNull) {
  EXPECT_EQ(error_of([] { (void)adopt(nullptr); }).code(), ErrorCode::invalid_argument);
  const NativeConnection connection = connect();
  ASSERT_EQ(PQenterPipelineMode(connection.get()), 1);
  const Error error = error_of([&] { (void)adopt(connection.get()); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_NE(std::string(error.what()).find("pipeline"), std::string::npos) << error.what();
}

#if defined(POSTRIDER_TEST_PQXX)

TEST_F(AdoptTest, PublishesWithCommitAndRollbackOfPqxx) {
  pqxx::connection connection(url());
  const std::vector<Event> events = samples();
  {
    pqxx::work work(connection);
    AdoptedTx tx = pqxx_adopt(work);
    EXPECT_TRUE(tx.active());
    publish(tx, events);
    const Rows rows = tx.execute("SELECT ?::int, ?::text, ?::bytea, ?::text", 5, "a'b",
                                 Blob{std::string_view("\0\xff", 2)}, nullptr);
    EXPECT_EQ(rows.integer(0, 0), 5);
    EXPECT_EQ(rows.text(0, 1), "a'b");
    EXPECT_EQ(rows.text(0, 2), "\\x00ff");
    EXPECT_TRUE(rows.is_null(0, 3));
    work.abort();
  }
  EXPECT_EQ(row_count(), 0);
  {
    pqxx::work work(connection);
    AdoptedTx tx = pqxx_adopt(work);
    publish(tx, events);
    work.commit();
  }
  expect_samples_claimed(events);
}

TEST_F(AdoptTest, PqxxKeepsOrderAndLeases) {
  pqxx::connection connection(url());
  std::vector<Event> events;
  events.reserve(1200);
  for (int i = 0; i < 1200; ++i) events.push_back(Event::json("E", "{}"));
  std::vector<NewOutboxRow> rows;
  rows.reserve(events.size());
  for (const Event& event : events) rows.push_back({.event = &event, .ordering_key = "k", .lease = 60s});
  pqxx::work work(connection);
  AdoptedTx tx = pqxx_adopt(work);
  store().insert(tx, "node-7", rows);
  work.commit();
  const Rows stored =
      query("SELECT event_id, owner, lease_until > clock_timestamp() + interval '30 s' FROM " + table() +
            " ORDER BY seq");
  ASSERT_EQ(stored.size(), events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    ASSERT_EQ(stored.text(i, 0), events[i].id().view());
    ASSERT_EQ(stored.text(i, 1), "node-7");
    ASSERT_EQ(stored.text(i, 2), "t");
  }
}

TEST_F(AdoptTest, PqxxErrorsAreOurs) {
  pqxx::connection connection(url());
  const Event event = Event::json("E", "{}");
  const NewOutboxRow rows[] = {{.event = &event}, {.event = &event}};
  pqxx::work work(connection);
  AdoptedTx tx = pqxx_adopt(work);
  const Error error = error_of([&] { store().insert(tx, "node", rows); });
  EXPECT_EQ(error.code(), ErrorCode::conflict);
  EXPECT_NE(std::string(error.what()).find(event.id().str()), std::string::npos) << error.what();
}

TEST_F(AdoptTest, PqxxTransactionThatHasEndedIsNoticed) {
  pqxx::connection connection(url());
  pqxx::work work(connection);
  AdoptedTx tx = pqxx_adopt(work);
  work.commit();
  const Error error = error_of([&] { tx.execute("SELECT 1"); });
  EXPECT_EQ(error.code(), ErrorCode::not_in_transaction);
  EXPECT_STREQ(
      error.what(),
      "postrider: cannot run 'SELECT 1': the pqxx transaction has been committed or aborted already. "
      "Hint: publish before commit(), or begin a new pqxx::work");
  EXPECT_FALSE(tx.active());
}

TEST_F(AdoptTest, PqxxTransactionWithAnOpenPipelineIsNotTakenForEnded) {
  pqxx::connection connection(url());
  pqxx::work work(connection);
  AdoptedTx tx = pqxx_adopt(work);
  {
    pqxx::pipeline pipeline(work);
    const Error error = error_of([&] { tx.execute("SELECT 1"); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    EXPECT_NE(std::string(error.what()).find("pipeline"), std::string::npos) << error.what();
    EXPECT_TRUE(tx.active());
  }
  EXPECT_EQ(tx.execute("SELECT 1").integer(0, 0), 1);
}

TEST_F(AdoptTest, PqxxContentionIsWorthAnotherTry) {
  pqxx::connection connection(url());
  for (const std::string state : {"40001", "40P01"}) {
    pqxx::work work(connection);
    AdoptedTx tx = pqxx_adopt(work);
    const Error error = error_of(
        [&] { tx.execute("DO $$ BEGIN RAISE EXCEPTION 'no luck' USING ERRCODE = '" + state + "'; END $$"); });
    EXPECT_EQ(error.code(), ErrorCode::contention) << error.what();
    EXPECT_EQ(error.sqlstate(), state);
    EXPECT_TRUE(error.retryable());
  }
}

TEST_F(AdoptTest, PqxxStatementsCountTheirValuesAndTheRowsTheyChange) {
  pqxx::connection connection(url());
  pqxx::work work(connection);
  AdoptedTx tx = pqxx_adopt(work);
  const Error error = error_of([&] { tx.execute("SELECT ?, ?", 1); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
  EXPECT_FALSE(error.connection_lost());
  EXPECT_NE(std::string(error.what()).find("it has 2 placeholders and was given 1 value"), std::string::npos)
      << error.what();
  tx.execute("CREATE TEMPORARY TABLE mine (a int) ON COMMIT DROP");
  EXPECT_EQ(tx.execute("INSERT INTO mine SELECT generate_series(1, ?::int)", 3).affected, 3);
  EXPECT_EQ(tx.execute("SELECT a FROM mine").affected, 0);
  EXPECT_EQ(tx.execute("-- all\nUPDATE mine SET a = a + 1 RETURNING a").affected, 3);
}

TEST_F(AdoptTest, PqxxNontransactionIsRefused) {
  pqxx::connection connection(url());
  pqxx::nontransaction work(connection);
  EXPECT_EQ(error_of([&] { (void)pqxx_adopt(work); }).code(), ErrorCode::not_in_transaction);
}

#endif

}  // namespace
}  // namespace postrider::postgres
