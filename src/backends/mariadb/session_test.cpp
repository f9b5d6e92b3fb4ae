// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/session.hpp"

#include <gmock/gmock.h>

#include <future>

#include "backends/mariadb/mariadb_fixture.hpp"

namespace postrider::mariadb {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using MariadbSessionTest = MariadbTest;

TEST_F(MariadbSessionTest, RunsStatementsWithParameters) {
  Transaction tx = storage().begin();
  const Rows rows = tx.execute("SELECT ?, ?, ?, HEX(?), CAST(? AS DOUBLE), NULL", 42, "ä'\"", nullptr,
                               Blob{std::string_view("\0\xff", 2)}, 1.5);
  EXPECT_EQ(rows.integer(0, 0), 42);
  EXPECT_EQ(rows.text(0, 1), "ä'\"");
  EXPECT_TRUE(rows.is_null(0, 2));
  EXPECT_EQ(rows.text(0, 3), "00FF");
  EXPECT_EQ(rows.text(0, 4), "1.5");
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(tx.execute("SELECT ?", large).text(0, 0), large);
  EXPECT_EQ(error_of([&] { tx.execute("SELECT ?"); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { tx.execute("SELEC 1"); }).code(), ErrorCode::database);
  EXPECT_TRUE(tx.active());
}

TEST_F(MariadbSessionTest, CountsRowsThatMatched) {
  client().query("CREATE TABLE " + prefix_ + "_mine (a INT) ENGINE=InnoDB");
  Transaction tx = storage().begin();
  EXPECT_EQ(tx.execute("INSERT INTO " + prefix_ + "_mine VALUES (1), (2)").affected, 2);
  EXPECT_EQ(tx.execute("UPDATE " + prefix_ + "_mine SET a = 1").affected, 2);
  tx.rollback();
  EXPECT_EQ(client().one("SELECT COUNT(*) FROM " + prefix_ + "_mine"), "0");
}

TEST_F(MariadbSessionTest, DdlEndsTheTransactionAndItIsSaid) {
  Transaction tx = storage().begin();
  tx.execute("CREATE TABLE " + prefix_ + "_mine (a INT) ENGINE=InnoDB");
  EXPECT_FALSE(tx.active());
  EXPECT_EQ(error_of([&] { tx.execute("INSERT INTO " + prefix_ + "_mine VALUES (1)"); }).code(),
            ErrorCode::not_in_transaction);
  EXPECT_EQ(error_of([&] { insert(tx, {event("a")}); }).code(), ErrorCode::not_in_transaction);
  EXPECT_NO_THROW(tx.commit());  // what came before the end is committed

  Transaction undone = storage().begin();
  insert(undone, {event("a")});
  // Past the check of Tx::execute.
  EXPECT_EQ(error_of([&] { undone.session().execute("ROLLBACK", {}); }).code(),
            ErrorCode::not_in_transaction);
  EXPECT_EQ(error_of([&] { undone.commit(); }).code(), ErrorCode::not_in_transaction);
}

TEST_F(MariadbSessionTest, DdlThatCommitsEarlierWorkIsAnError) {
  Transaction tx = storage().begin();
  insert(tx, {event("a")});
  const Error error =
      error_of([&] { tx.execute("CREATE TABLE " + prefix_ + "_mine (a INT) ENGINE=InnoDB"); });
  EXPECT_EQ(error.code(), ErrorCode::not_in_transaction);
  EXPECT_THAT(error.what(), HasSubstr("DDL commits by itself"));
}

TEST_F(MariadbSessionTest, WhatAStatementSetsDoesNotReachTheNextUser) {
  StorageOptions options;
  options.pool_size = 1;
  const auto one = open_storage(options);
  {
    Transaction tx = one->begin();
    tx.execute("SET SESSION time_zone = '+05:00'");
    tx.commit();
  }
  Transaction tx = one->begin();
  EXPECT_EQ(tx.execute("SELECT @@time_zone").text(0, 0), "+00:00");
  EXPECT_EQ(tx.execute("SELECT @@character_set_client").text(0, 0), "utf8mb4");
}

TEST_F(MariadbSessionTest, ADeadlockEndsTheTransaction) {
  client().query("CREATE TABLE " + prefix_ + "_mine (a INT PRIMARY KEY, b INT) ENGINE=InnoDB");
  client().query("INSERT INTO " + prefix_ + "_mine VALUES (1, 0), (2, 0), (3, 0), (4, 0)");
  const std::string update = "UPDATE " + prefix_ + "_mine SET b = 1 WHERE a = ?";
  client().query("BEGIN");
  // Has changed more rows, so it is not the one that is chosen to be rolled back.
  client().query("UPDATE " + prefix_ + "_mine SET b = 1 WHERE a >= 2");
  Transaction tx = storage().begin();
  tx.execute(update, 1);
  auto other = std::async(std::launch::async,
                          [&] { client().query("UPDATE " + prefix_ + "_mine SET b = 1 WHERE a = 1"); });
  const Error error = error_of([&] { tx.execute(update, 2); });
  other.get();
  EXPECT_EQ(error.code(), ErrorCode::contention);
  EXPECT_TRUE(error.retryable());
  EXPECT_FALSE(tx.active());
  EXPECT_EQ(error_of([&] { tx.execute(update, 3); }).code(), ErrorCode::not_in_transaction);
  bool rolled_back = false;
  tx.after_rollback([&] { rolled_back = true; });
  EXPECT_EQ(error_of([&] { tx.commit(); }).code(), ErrorCode::contention);
  EXPECT_TRUE(rolled_back);
  client().query("ROLLBACK");
  EXPECT_EQ(client().one("SELECT SUM(b) FROM " + prefix_ + "_mine"), "0");
}

TEST_F(MariadbSessionTest, AStatementThatFailsAmongItsRowsCanBeRunAgain) {
  // As a SELECT … FOR UPDATE does that loses a deadlock at its third row.
  const std::string sql = "SELECT seq, IF(seq = 3, (SELECT 1 UNION SELECT 2), 0) FROM seq_1_to_4";
  Transaction tx = storage().begin();
  for (int i = 0; i < 3; ++i) {
    const Error error = error_of([&] { tx.execute(sql); });
    ASSERT_FALSE(error.connection_lost()) << "it waited for an answer that never comes: " << error.what();
    EXPECT_THAT(error.what(), HasSubstr("more than 1 row"));
  }
  EXPECT_EQ(tx.execute("SELECT ?", 7).integer(0, 0), 7);
}

TEST_F(MariadbSessionTest, AConnectionKilledBeforeCommitIsKnownToBeRolledBack) {
  Transaction tx = storage().begin();
  insert(tx, {event("a")});
  client().query("KILL CONNECTION " + tx.execute("SELECT CONNECTION_ID()").text(0, 0));
  const Error error = error_of([&] { tx.execute("SELECT 1"); });
  EXPECT_TRUE(error.connection_lost());
  EXPECT_TRUE(error.retryable());
  EXPECT_FALSE(tx.active());
  EXPECT_FALSE(error_of([&] { tx.commit(); }).in_doubt());
  publish({event("b")});  // the pool has another connection
  EXPECT_THAT(claim(), ElementsAre("b"));
}

TEST_F(MariadbSessionTest, AConnectionThatBreaksAtCommitLeavesItInDoubt) {
  Transaction tx = storage().begin();
  insert(tx, {event("a")});
  const std::string id = tx.execute("SELECT CONNECTION_ID()").text(0, 0);
  failpoints::set("mariadb.commit.before", [&] { client().query("KILL CONNECTION " + id); });
  const Error error = error_of([&] { tx.commit(); });
  EXPECT_TRUE(error.in_doubt());
  EXPECT_TRUE(error.connection_lost());
  EXPECT_THAT(error.what(), HasSubstr("may have been committed"));
}

TEST_F(MariadbSessionTest, EveryRestingConnectionMayBeKilled) {
  {
    std::vector<Transaction> open;
    for (int i = 0; i < 3; ++i) open.push_back(storage().begin());
    // By number, never the whole processlist: other test programs use this server at the same time.
    for (Transaction& tx : open) {
      client().query("KILL CONNECTION " + tx.execute("SELECT CONNECTION_ID()").text(0, 0));
    }
  }
  EXPECT_NO_THROW(storage().ping());
  publish({event("a")});
  EXPECT_THAT(claim(), ElementsAre("a"));
}

TEST_F(MariadbSessionTest, RestingConnectionsThatDiedAreReplaced) {
  std::vector<std::string> ids;
  {
    Transaction a = storage().begin();
    Transaction b = storage().begin();
    ids = {a.execute("SELECT CONNECTION_ID()").text(0, 0), b.execute("SELECT CONNECTION_ID()").text(0, 0)};
  }
  for (const std::string& id : ids) client().query("KILL CONNECTION " + id);
  Transaction tx = storage().begin();
  EXPECT_TRUE(tx.active());
  tx.rollback();
  publish({event("a")});
  client().query("KILL CONNECTION " + storage().begin().execute("SELECT CONNECTION_ID()").text(0, 0));
  EXPECT_THAT(claim(), ElementsAre("a"));
}

TEST_F(MariadbSessionTest, ConnectErrorsSayWhatIsWrong) {
  const auto fails_with = [](ConnectSettings settings) {
    return error_of([&] { (void)Connection::open(settings); });
  };
  ConnectSettings wrong = settings_;
  wrong.password = "not the password";
  wrong.user = "nobody_of_this_name";
  EXPECT_EQ(fails_with(wrong).code(), ErrorCode::unavailable);
  EXPECT_FALSE(fails_with(wrong).retryable());
  EXPECT_THAT(fails_with(wrong).what(), ::testing::Not(HasSubstr("not the password")));
  wrong = settings_;
  wrong.database = "no_database_of_this_name";
  EXPECT_FALSE(fails_with(wrong).retryable());
  wrong = settings_;
  wrong.socket.clear();
  wrong.host = "127.0.0.1";
  wrong.port = 1;
  EXPECT_TRUE(fails_with(wrong).retryable());
  EXPECT_THAT(fails_with(wrong).what(), HasSubstr("cannot connect to"));
}

TEST_F(MariadbSessionTest, AnAdoptedTransactionCommitsAndRollsBackWithItsOwner) {
  store();
  {
    AdoptedTx tx = adopt(client().get());
    EXPECT_FALSE(tx.active());
    EXPECT_EQ(error_of([&] { insert(tx, {event("a")}); }).code(), ErrorCode::not_in_transaction);
  }
  client().query("BEGIN");
  AdoptedTx first = adopt(client().get());
  EXPECT_TRUE(first.active());
  insert(first, {event("a"), event("b")});
  client().query("ROLLBACK");
  EXPECT_FALSE(first.active());
  EXPECT_THAT(claim(), IsEmpty());
  client().query("SET autocommit = 0");
  AdoptedTx second = adopt(client().get());
  EXPECT_TRUE(second.active());
  insert(second, {event("a"), event("b")});
  client().query("COMMIT");
  EXPECT_THAT(claim(), ElementsAre("a", "b"));
  EXPECT_EQ(error_of([&] { second.session().commit(); }).code(), ErrorCode::unsupported);
}

TEST_F(MariadbSessionTest, AnAdoptedSessionMayHaveAnyTimeZoneCharacterSetAndMode) {
  store();
  client().query("SET NAMES latin1, time_zone = '+11:00', sql_mode = ''");
  const std::string payload = "{\"name\":\"Zoë 東京 🚀\"}";
  client().query("BEGIN");
  {
    AdoptedTx tx = adopt(client().get());
    insert(tx, {Event::builder("Zoë").id(EventId("a")).json(payload).header("h", "🚀").build(), event("b")},
           "キー");
  }
  client().query("COMMIT");
  EXPECT_EQ(client().one("SELECT COUNT(*) FROM " + table() +
                         " WHERE ABS(TIMESTAMPDIFF(SECOND, created_at, UTC_TIMESTAMP())) < 60"
                         " AND ABS(TIMESTAMPDIFF(SECOND, available_at, UTC_TIMESTAMP())) < 60"),
            "2");
  const auto claimed = store().claim({.owner = "me", .lease = std::chrono::seconds{30}, .limit = 10});
  ASSERT_EQ(claimed.size(), 2U);
  ASSERT_TRUE(claimed[0].event.has_value()) << claimed[0].decode_error;
  EXPECT_EQ(claimed[0].event->payload(), payload);
  EXPECT_EQ(claimed[0].event->type(), "Zoë");
  EXPECT_EQ(claimed[0].event->headers().at("h"), "🚀");
  EXPECT_EQ(claimed[0].ordering_key, "キー");
}

TEST_F(MariadbSessionTest, ARefusedBatchLeavesNothingBehind) {
  publish({event("taken")});
  for (const bool bulk : {true, false}) {
    Transaction tx = storage().begin();
    if (!bulk) static_cast<Session&>(tx.session()).link().forgo_bulk();
    const Error error = error_of([&] { insert(tx, {event("x"), event("taken"), event("y")}); });
    EXPECT_EQ(error.code(), ErrorCode::conflict);
    EXPECT_THAT(error.what(), HasSubstr("event taken:"));
    EXPECT_TRUE(tx.active());
    tx.commit();
    EXPECT_EQ(client().one("SELECT COUNT(*) FROM " + table()), "1") << bulk;
  }
}

TEST_F(MariadbSessionTest, LargeBatchesAreCutToPackets) {
  std::vector<Event> events;
  const std::string payload(EventLimits::payload_bytes, 'x');
  for (int i = 0; i < 20; ++i) {
    events.push_back(
        Event::builder("Big").id(EventId("big" + std::to_string(10 + i))).bytes(payload).build());
  }
  for (const bool bulk : {true, false}) {
    Transaction tx = storage().begin();
    if (!bulk) static_cast<Session&>(tx.session()).link().forgo_bulk();
    insert(tx, events);
    EXPECT_EQ(tx.execute("SELECT GROUP_CONCAT(SUBSTR(event_id, 4) ORDER BY seq) FROM " + table()).text(0, 0),
              "10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29");
    EXPECT_EQ(tx.execute("SELECT MIN(LENGTH(payload_bytes)) FROM " + table()).integer(0, 0), 1'048'576);
    tx.rollback();
  }
}

}  // namespace
}  // namespace postrider::mariadb
