// SPDX-License-Identifier: Apache-2.0
// What happens to a storage when connections, servers and poolers misbehave.
#include "backends/postgres/connection.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/failpoint.hpp"
#include "postrider/postgres.hpp"
#include "support/cutting_proxy.hpp"
#include "support/postgres.hpp"

namespace postrider::postgres {
namespace {

using test::error_of;
using test::PostgresTest;

using namespace std::chrono_literals;

class ConnectionTest : public PostgresTest {
 protected:
  [[nodiscard]] std::unique_ptr<Storage> open_with_log(std::vector<std::string>& lines,
                                                       std::size_t pool_size = 1) {
    StorageOptions options = database_->options();
    options.pool_size = pool_size;
    options.log = [&lines](LogLevel, std::string_view line) { lines.emplace_back(line); };
    return database_->open_another(options);
  }
  /// Ends the server process that serves this transaction; waits until it is gone.
  void terminate(Transaction& tx) {
    const std::string pid = tx.execute("SELECT pg_backend_pid()").text(0, 0);
    run(connect(), "SELECT pg_terminate_backend(" + pid + ", 30000)");
  }
  [[nodiscard]] static bool contains(const std::vector<std::string>& lines, std::string_view word) {
    return std::any_of(lines.begin(), lines.end(),
                       [&](const std::string& line) { return line.find(word) != line.npos; });
  }
};

/// The test server's address, out of its URL.
struct Address {
  std::string host;
  std::uint16_t port = 5432;
  std::string user;
  std::string database;

  explicit Address(const std::string& url) {
    PQconninfoOption* options = PQconninfoParse(url.c_str(), nullptr);
    for (const PQconninfoOption* o = options; o != nullptr && o->keyword != nullptr; ++o) {
      if (o->val == nullptr) continue;
      const std::string_view keyword = o->keyword;
      if (keyword == "host") host = o->val;
      if (keyword == "port") port = static_cast<std::uint16_t>(std::stoi(o->val));
      if (keyword == "user") user = o->val;
      if (keyword == "dbname") database = o->val;
    }
    PQconninfoFree(options);
  }
};

/// The same database, reached through a proxy that can cut.
class CutConnectionTest : public ConnectionTest {
 protected:
  void SetUp() override {
    ConnectionTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const Address address(url());
    proxy_.emplace(address.host, address.port);
    StorageOptions options = database_->options();
    options.pool_size = 1;
    through_ = driver().open("postgresql://" + address.user + "@127.0.0.1:" + std::to_string(proxy_->port()) +
                                 "/" + address.database + "?sslmode=disable&gssencmode=disable",
                             options);
  }
  void TearDown() override {
    through_.reset();
    proxy_.reset();
  }
  std::optional<test::CuttingProxy> proxy_;
  std::unique_ptr<Storage> through_;
};

TEST_F(CutConnectionTest, HazardO9CommitCutBeforeItsAnswerIsInDoubtAndTheRowIsThere) {
  Transaction tx = through_->begin();
  const Event event = Event::json("Paid", "{}");
  const NewOutboxRow row{.event = &event};
  through_->outbox_store().insert(tx, "node", {&row, 1});
  int rolled_back = 0;
  int committed = 0;
  tx.after_rollback([&] { ++rolled_back; });
  tx.after_commit([&] { ++committed; });
  proxy_->cut_after("COMMIT");
  const Error error = error_of([&] { tx.commit(); });
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_TRUE(error.in_doubt());
  EXPECT_TRUE(error.connection_lost());
  EXPECT_FALSE(error.retryable());
  EXPECT_EQ(proxy_->cuts(), 1);
  EXPECT_EQ(rolled_back, 0);
  EXPECT_EQ(committed, 0);
  EXPECT_EQ(row_count(), 1);
  through_->ping();  // a new connection takes the place of the broken one
}

TEST_F(CutConnectionTest, CutBeforeCommitIsNotInDoubt) {
  Transaction tx = through_->begin();
  const Event event = Event::json("Paid", "{}");
  const NewOutboxRow row{.event = &event};
  through_->outbox_store().insert(tx, "node", {&row, 1});
  proxy_->cut_after("SELECT 'cut'");
  EXPECT_TRUE(error_of([&] { tx.execute("SELECT 'cut'"); }).connection_lost());
  const Error error = error_of([&] { tx.commit(); });
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_FALSE(error.in_doubt());
  EXPECT_TRUE(error.connection_lost());
  EXPECT_EQ(row_count(), 0);
}

TEST_F(CutConnectionTest, CompletionCutAtCommitMayBeRepeated) {
  const Event event = Event::json("Paid", "{}");
  Transaction tx = through_->begin();
  const NewOutboxRow row{.event = &event, .lease = 30s};
  through_->outbox_store().insert(tx, "node", {&row, 1});
  tx.rollback();
  {
    Transaction other = storage().begin();
    store().insert(other, "node", {&row, 1});
    other.commit();
  }
  const Completion done{.lease = {event.id(), birth_token}};
  proxy_->cut_after("status = 1");
  const Error error = error_of([&] { (void)through_->outbox_store().complete({&done, 1}); });
  EXPECT_TRUE(error.retryable());
  EXPECT_TRUE(error.connection_lost());
  EXPECT_EQ(through_->outbox_store().complete({&done, 1}), 0U) << "the first try had reached the table";
  EXPECT_EQ(query("SELECT status FROM " + table()).integer(0, 0), 1);
}

TEST_F(ConnectionTest, PoolReconnectsAfterItsConnectionsWereTerminated) {
  std::vector<std::string> lines;
  const std::unique_ptr<Storage> storage = open_with_log(lines, 2);
  std::vector<std::string> pids;
  {
    Transaction one = storage->begin();
    Transaction two = storage->begin();
    pids = {one.execute("SELECT pg_backend_pid()").text(0, 0),
            two.execute("SELECT pg_backend_pid()").text(0, 0)};
  }
  for (const std::string& pid : pids) run(connect(), "SELECT pg_terminate_backend(" + pid + ", 30000)");
  storage->ping();
  Transaction tx = storage->begin();
  EXPECT_EQ(tx.execute("SELECT 1").integer(0, 0), 1);
}

TEST_F(ConnectionTest, TransactionWhoseServerProcessWasTerminatedSaysSo) {
  {
    Transaction tx = storage().begin();
    insert(tx, Event::json("Paid", "{}"));
    terminate(tx);
    const Error error = error_of([&] { tx.commit(); });
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
    EXPECT_TRUE(error.connection_lost());
    EXPECT_FALSE(error.in_doubt()) << "the server had gone before COMMIT was sent";
  }
  EXPECT_EQ(row_count(), 0);
}

TEST_F(ConnectionTest, NoServerIsAnErrorWithTheAddressAndWithoutThePassword) {
  StorageOptions options;
  options.acquire_timeout = 1ms;
  const std::unique_ptr<Storage> storage = driver().open("postgresql://ada:s3cret@127.0.0.1:1/shop", options);
  EXPECT_EQ(storage->name(), "postgresql://ada@127.0.0.1:1/shop");
  const Error error = error_of([&] { storage->ping(); });
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_TRUE(error.retryable());
  EXPECT_NE(std::string(error.what()).find("127.0.0.1:1/shop"), std::string::npos) << error.what();
  EXPECT_EQ(std::string(error.what()).find("s3cret"), std::string::npos) << error.what();
}

TEST_F(ConnectionTest, CommitOfAFailedTransactionIsAnError) {
  Transaction tx = storage().begin();
  insert(tx, Event::json("Paid", "{}"));
  EXPECT_EQ(error_of([&] { tx.execute("SELECT 1/0"); }).sqlstate(), "22012");
  const Error refused = error_of([&] { insert(tx, Event::json("Paid", "{}")); });
  EXPECT_EQ(refused.sqlstate(), "25P02");
  EXPECT_NE(std::string(refused.what()).find("roll it back"), std::string::npos) << refused.what();
  int rolled_back = 0;
  tx.after_rollback([&] { ++rolled_back; });
  const Error error = error_of([&] { tx.commit(); });
  EXPECT_EQ(error.code(), ErrorCode::database);
  EXPECT_FALSE(error.in_doubt());
  EXPECT_EQ(rolled_back, 1);
  EXPECT_EQ(row_count(), 0);
}

TEST_F(ConnectionTest, TransactionWithoutAStatementCommits) {
  Transaction tx = storage().begin();
  EXPECT_TRUE(tx.active());
  tx.commit();
  EXPECT_FALSE(tx.active());
}

TEST_F(ConnectionTest, StatementThatEndsTheTransactionIsNoticed) {
  Transaction tx = storage().begin();
  tx.session().execute("ROLLBACK", {});  // past the check of Tx::execute
  EXPECT_FALSE(tx.active());
  EXPECT_EQ(error_of([&] { tx.execute("SELECT 1"); }).code(), ErrorCode::not_in_transaction);
  EXPECT_EQ(error_of([&] { tx.commit(); }).code(), ErrorCode::not_in_transaction);
}

TEST_F(ConnectionTest, ReturnedRowsOfAChangeAreAffectedOnes) {
  Transaction tx = storage().begin();
  tx.execute("CREATE TEMPORARY TABLE mine (a int) ON COMMIT DROP");
  EXPECT_EQ(tx.execute("INSERT INTO mine SELECT generate_series(1, $1::int) RETURNING a", 3).affected, 3);
  EXPECT_EQ(tx.execute("WITH changed AS (SELECT a FROM mine) SELECT * FROM changed").affected, 0);
}

TEST_F(ConnectionTest, AValueWithoutATypeHintsAtACast) {
  Transaction tx = storage().begin();
  const Error error = error_of([&] { tx.execute("SELECT ? IS NULL", nullptr); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
  EXPECT_EQ(error.sqlstate(), "42P18");
  EXPECT_NE(std::string(error.what()).find("::text"), std::string::npos) << error.what();
}

TEST_F(ConnectionTest, ValuesOfEveryKindArrive) {
  Transaction tx = storage().begin();
  const std::string bytes("\0\x01\xff", 3);
  const Rows rows =
      tx.execute("SELECT ?::int + 1, ?::text, ?::bytea, ?::float8, ?::text IS NULL, ?::boolean, '?'", 41,
                 "a'b", Blob{bytes}, 0.1, nullptr, true);
  EXPECT_EQ(rows.integer(0, 0), 42);
  EXPECT_EQ(rows.text(0, 1), "a'b");
  EXPECT_EQ(rows.text(0, 2), "\\x0001ff");
  EXPECT_EQ(rows.text(0, 3), "0.1");
  EXPECT_EQ(rows.text(0, 4), "t");
  EXPECT_EQ(rows.text(0, 5), "t");
  EXPECT_EQ(rows.text(0, 6), "?");
  EXPECT_EQ(tx.execute("SELECT $1::int", 7).integer(0, 0), 7);
  EXPECT_EQ(error_of([&] { tx.execute("SELECT ?::text", std::string("a\0b", 3)); }).code(),
            ErrorCode::invalid_argument);
}

TEST_F(ConnectionTest, CopyIsRefusedAndTheConnectionReplaced) {
  {
    Transaction tx = storage().begin();
    EXPECT_EQ(error_of([&] { tx.execute("COPY (SELECT 1) TO STDOUT"); }).code(), ErrorCode::unsupported);
  }
  storage().ping();
}

TEST_F(ConnectionTest, ConflictNamesTheEvent) {
  const Event first = Event::json("Paid", "{}");
  const Event second = Event::json("Paid", "{}");
  Transaction tx = storage().begin();
  insert(tx, first);
  const NewOutboxRow rows[] = {{.event = &second}, {.event = &first}};
  const Error error = error_of([&] { store().insert(tx, "node", rows); });
  EXPECT_EQ(error.code(), ErrorCode::conflict);
  EXPECT_EQ(error.sqlstate(), "23505");
  EXPECT_NE(std::string(error.what()).find(first.id().str()), std::string::npos) << error.what();
}

TEST_F(ConnectionTest, MissingStatementTurnsToUnnamedOnesAndGoesOn) {
  for (const bool publish_first : {false, true}) {
    std::vector<std::string> lines;
    const std::unique_ptr<Storage> storage = open_with_log(lines);
    OutboxStore& outbox = storage->outbox_store();
    const auto publish = [&] {
      const Event event = Event::json("Paid", "{}");
      const NewOutboxRow row{.event = &event};
      Transaction tx = storage->begin();
      outbox.insert(tx, "node", {&row, 1});
      tx.commit();
    };
    const auto claim = [&] { return outbox.claim({.owner = "node", .lease = 30s, .limit = 10}).size(); };
    publish();
    EXPECT_EQ(claim(), 1U);
    EXPECT_TRUE(lines.empty()) << lines.front();
    {
      Transaction tx = storage->begin();
      tx.execute("DEALLOCATE ALL");  // as if a pooler had moved us to another server connection
      tx.commit();
    }
    if (publish_first) publish();
    EXPECT_EQ(claim(), publish_first ? 1U : 0U);
    publish();
    EXPECT_EQ(claim(), 1U);
    EXPECT_EQ(lines.size(), 1U) << "said once";
    EXPECT_TRUE(contains(lines, "without prepared statements"));
  }
}

TEST_F(ConnectionTest, ForeignStatementOfTheSameNameTurnsToUnnamedOnes) {
  std::vector<std::string> lines;
  const std::unique_ptr<Storage> storage = open_with_log(lines);
  {
    Transaction tx = storage->begin();
    tx.execute("PREPARE " + settings_statement.name + " AS SELECT 1");
    tx.commit();
  }
  EXPECT_TRUE(storage->outbox_store().claim({.owner = "node", .lease = 30s, .limit = 10}).empty());
  EXPECT_TRUE(contains(lines, "without prepared statements"));
  EXPECT_TRUE(storage->outbox_store().claim({.owner = "node", .lease = 30s, .limit = 10}).empty());
}

TEST_F(ConnectionTest, StatementTwiceInAPipelineIsPreparedOnce) {
  ConnectionContext context{.url = url(), .name = "test"};
  Connection connection(context);
  const Statement one("SELECT 1");
  Pipeline pipeline(connection, "test");
  pipeline.send(one);
  pipeline.send(one);
  EXPECT_EQ(pipeline.finish().size(), 2U);
  EXPECT_TRUE(connection.has_prepared(one));
  EXPECT_FALSE(context.unnamed_statements) << "it must not be taken for a pooler";
}

TEST_F(ConnectionTest, NoticesReachTheLog) {
  std::vector<std::string> lines;
  const std::unique_ptr<Storage> storage = open_with_log(lines);
  Transaction tx = storage->begin();
  tx.execute("DO $$ BEGIN RAISE NOTICE 'look here'; END $$");
  EXPECT_TRUE(contains(lines, "look here"));
}

TEST_F(ConnectionTest, PlannerSettingsStayInsideOurOwnTransactions) {
  std::vector<std::string> lines;
  const std::unique_ptr<Storage> storage = open_with_log(lines);
  (void)storage->outbox_store().claim({.owner = "node", .lease = 30s, .limit = 10});
  Transaction tx = storage->begin();
  EXPECT_EQ(tx.execute("SHOW enable_seqscan").text(0, 0), "on");
  EXPECT_EQ(tx.execute("SHOW plan_cache_mode").text(0, 0), "auto");
  EXPECT_EQ(tx.execute("SHOW synchronous_commit").text(0, 0), "on");
}

#if defined(POSTRIDER_FAILPOINTS)
TEST_F(ConnectionTest, FailureBeforeCommitLeavesNothingAndTheConnectionUsable) {
  failpoints::set("postgres.commit.before", [] { throw Error(ErrorCode::unavailable, "told to fail"); });
  Transaction tx = storage().begin();
  insert(tx, Event::json("Paid", "{}"));
  EXPECT_THROW(tx.commit(), Error);
  failpoints::clear();
  EXPECT_EQ(row_count(), 0);
}
#endif

}  // namespace
}  // namespace postrider::postgres
