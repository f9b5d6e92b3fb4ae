// SPDX-License-Identifier: Apache-2.0
// What goes wrong in event stores when transactions overlap; four of these were seen to fail elsewhere (S2 to
// S5, S6: see also stream_append_test.cpp).
#include <atomic>
#include <future>
#include <thread>

#include "storage/conformance/stream_fixture.hpp"
#include "support/foreign_connection.hpp"

namespace postrider::conformance {
namespace {

class StreamHazard : public StreamConformance {
 protected:
  void SetUp() override {
    StreamConformance::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    sql("create table " + table("notes") + " (n bigint not null)");
    other_ = database().open_another();
  }
  void TearDown() override {
    unrelated_.reset();
    other_.reset();
    if (!IsSkipped()) sql("drop table " + table("notes"));
  }

  /// A transaction older than everything that follows, which has written something else. SQLite has one
  /// writer: there it is one that has read.
  void hold_an_unrelated_transaction() {
    unrelated_ = test::ForeignConnection::open(storage().kind(), database().url());
    unrelated_->begin();
    if (backend() == "sqlite") {
      unrelated_->run("select count(*) from " + table("notes"));
    } else {
      unrelated_->run("insert into " + table("notes") + " values (1)");
    }
  }
  /// Another node's.
  [[nodiscard]] StreamStore& other_store() { return other_->stream_store(); }
  std::future<std::string> append_elsewhere(std::vector<AppendEvent> events,
                                            std::optional<AppendCondition> condition = {}) {
    return std::async(std::launch::async, [this, events = std::move(events), condition] {
      return said(append_to(other_store(), events, condition));
    });
  }

  /// Returns when the append waits for the holder's transaction, as the database itself says. Fails when it
  /// is done instead.
  void await_blocked(Transaction& holder, std::future<std::string>& waiting) {
    std::string blocked;
    if (backend() == "postgres") {
      blocked = "select count(*) from pg_stat_activity where " +
                std::to_string(holder.execute("select pg_backend_pid()").integer(0, 0)) +
                " = any (pg_blocking_pids(pid))";
    } else if (backend() == "mariadb") {
      blocked =
          "select count(*) from information_schema.innodb_lock_waits as w join information_schema.innodb_trx "
          "as t on t.trx_id = w.blocking_trx_id where t.trx_mysql_thread_id = " +
          std::to_string(holder.execute("select connection_id()").integer(0, 0));
    } else {
      // SQLite tells nobody who waits. Long enough for whoever does not wait to be done; whoever waits
      // rightly makes no difference to the test.
      ASSERT_EQ(waiting.wait_for(150ms), std::future_status::timeout) << waiting.get();
      return;
    }
    // InnoDB looks anew only for those who have not asked for a tenth of a second.
    const auto pause = backend() == "mariadb" ? 120ms : 5ms;
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    while (sql(blocked).integer(0, 0) == 0) {
      ASSERT_EQ(waiting.wait_for(pause), std::future_status::timeout) << waiting.get();
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "waits for something else";
    }
  }

  std::unique_ptr<Storage> other_;
  std::unique_ptr<test::ForeignConnection> unrelated_;
};
POSTRIDER_FOR_EACH_BACKEND(StreamHazard);

TEST_P(StreamHazard, HazardS1PositionsComeInCommitOrder) {
  for (const bool with_unrelated : {false, true}) {
    if (with_unrelated) hold_an_unrelated_transaction();
    const auto start = static_cast<std::int64_t>(store().head());
    std::future<std::string> later;
    {
      Transaction tx = storage().begin();
      append_in(tx, {happened("Slow")});
      later = append_elsewhere({happened("Quick")});
      // Were it quicker it would be visible now, and a reader at its position would never see the slow one.
      await_blocked(tx, later);
      EXPECT_EQ(store().head(), Position{start});
      tx.commit();
    }
    EXPECT_EQ(later.get(), "appended " + std::to_string(start + 2) + "-" + std::to_string(start + 2));
    EXPECT_EQ(found(Query::all(), {.after = Position{start}}), (Positions{start + 1, start + 2}));
  }
}

TEST_P(StreamHazard, HazardS2ACommittedConflictIsSeenWhileAnOlderTransactionIsOpen) {
  hold_an_unrelated_transaction();
  EXPECT_EQ(append({happened("Reserved", {"seat=1"})}, AppendCondition{.query = Query::tag("seat", "1")}),
            "appended 1-1");
  EXPECT_EQ(said(append_to(other_store(), {happened("Reserved", {"seat=1"})},
                           AppendCondition{.query = Query::tag("seat", "1")})),
            "conflict 1 Reserved");
  EXPECT_EQ(everything(), (Positions{1})) << "readers see it too";
  unrelated_->rollback();
}

TEST_P(StreamHazard, HazardS3AReaderAtTheHeadMissesNothing) {
  hold_an_unrelated_transaction();
  constexpr int writers = 4;
  constexpr int rounds = 25;
  std::atomic<int> running{writers};
  std::vector<std::thread> threads;
  threads.reserve(writers);
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      try {
        Storage& here = writer % 2 == 0 ? storage() : *other_;
        for (int round = 0; round < rounds; ++round) {
          const std::vector<AppendEvent> events{happened("E", {"k=1"}), happened("F")};
          const AppendRequest request{.events = events};
          if (round % 3 == 0) {
            (void)here.stream_store().append({&request, 1});
            continue;
          }
          Transaction tx = here.begin();
          (void)here.stream_store().append(tx, request);
          if (round % 3 == 1) tx.commit();  // else it is rolled back
        }
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
      --running;
    });
  }
  Positions seen;
  Positions seen_tagged;
  Position last{0};
  Position last_tagged{0};
  const Query tagged = Query::tag("k", "1");
  const auto follow = [&] {
    ReadPage page = read(Query::all(), {.after = last});
    for (const std::int64_t one : positions_of(page.events)) seen.push_back(one);
    last = page.seen;
    page = read(tagged, {.after = last_tagged});
    for (const std::int64_t one : positions_of(page.events)) seen_tagged.push_back(one);
    last_tagged = page.seen;
  };
  while (running > 0) follow();
  for (std::thread& thread : threads) thread.join();
  follow();
  EXPECT_EQ(seen, everything());
  EXPECT_EQ(seen_tagged, found(tagged));
  EXPECT_EQ(seen.size(), 4U * 2U * (9U + 8U));
  unrelated_->rollback();
}

TEST_P(StreamHazard, HazardS6WhoeverWaitedForTheLockSeesWhatWasCommittedMeanwhile) {
  hold_an_unrelated_transaction();
  const AppendCondition once{.query = Query::tag("seat", "1")};
  std::future<std::string> waiting;
  {
    Transaction tx = storage().begin();
    EXPECT_EQ(append_in(tx, {happened("Reserved", {"seat=1"})}, once), "appended 1-1");
    waiting = append_elsewhere({happened("Reserved", {"seat=1"})}, once);
    await_blocked(tx, waiting);
    tx.commit();
  }
  EXPECT_EQ(waiting.get(), "conflict 1 Reserved");
  unrelated_->rollback();
}

TEST_P(StreamHazard, HazardS7QueriesThatOverlapExcludeEachOther) {
  // Each condition matches what the other one appends, although they have nothing in common.
  std::future<std::string> waiting;
  {
    Transaction tx = storage().begin();
    EXPECT_EQ(append_in(tx, {happened("A", {"x=1"})}, AppendCondition{.query = Query::type("B")}),
              "appended 1-1");
    waiting = append_elsewhere({happened("B", {"x=1"})}, AppendCondition{.query = Query::tag("x", "1")});
    await_blocked(tx, waiting);
    tx.commit();
  }
  EXPECT_EQ(waiting.get(), "conflict 1 A");
}

TEST_P(StreamHazard, HazardS8ARolledBackAppendLeavesNoPositionBehind) {
  std::future<std::string> waiting;
  {
    Transaction tx = storage().begin();
    EXPECT_EQ(append_in(tx, {happened("Gone"), happened("Gone")}), "appended 1-2");
    waiting = append_elsewhere({happened("Stays")});
    await_blocked(tx, waiting);
    tx.rollback();
  }
  EXPECT_EQ(waiting.get(), "appended 1-1");
  EXPECT_EQ(found(Query::type("Gone")), (Positions{}));
}

TEST_P(StreamHazard, AForgottenTransactionIsNotWaitedForForEver) {
  StorageOptions options = database().options();
  options.acquire_timeout = 100ms;
  options.sqlite_busy_timeout = 100ms;
  const std::unique_ptr<Storage> hasty = database().open_another(options);
  Transaction forgotten = storage().begin();
  EXPECT_EQ(append_in(forgotten, {happened("A")}), "appended 1-1");
  const auto begin = std::chrono::steady_clock::now();
  const Error error = error_of([&] { append_to(hasty->stream_store(), {happened("B")}); });
  // MariaDB counts in whole seconds; its own patience is 50 of them, for each attempt.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_TRUE(error.retryable()) << error.what();
  EXPECT_FALSE(error.in_doubt());
  if (backend() != "sqlite") {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
  }
  forgotten.rollback();
  EXPECT_EQ(said(append_to(hasty->stream_store(), {happened("B")})), "appended 1-1");
}

TEST_P(StreamHazard, AnAppendBelongsToTheUsersTransaction) {
  {
    Transaction tx = storage().begin();
    tx.execute("insert into " + table("notes") + " values (7)");
    EXPECT_EQ(append_in(tx, {happened("Noted", {"n=7"})}), "appended 1-1");
    EXPECT_EQ(append_in(tx, {happened("Noted", {"n=7"})}, AppendCondition{.query = Query::tag("n", "7")}),
              "conflict 1 Noted")
        << "it sees its own";
    EXPECT_EQ(append_in(tx, {happened("More")}), "appended 2-2") << "a conflict breaks nothing";
    tx.commit();
  }
  {
    Transaction tx = storage().begin();
    tx.execute("insert into " + table("notes") + " values (8)");
    EXPECT_EQ(append_in(tx, {happened("Noted")}), "appended 3-3");
  }
  EXPECT_EQ(everything(), (Positions{1, 2}));
  EXPECT_EQ(sql("select n from " + table("notes")).size(), 1U);
}

TEST_P(StreamHazard, AnAdoptedTransactionIsOneToo) {
  const auto foreign = test::ForeignConnection::open(storage().kind(), database().url());
  foreign->begin();
  {
    AdoptedTx tx = foreign->adopt();
    EXPECT_EQ(append_in(tx, {happened("A", {"x=1", "y=ä\"'"})}, AppendCondition{}), "appended 1-1");
    EXPECT_EQ(append_in(tx, {happened("A", {"x=1"})},
                        AppendCondition{.query = Query::tags({{"x", "1"}, {"y", "ä\"'"}})}),
              "conflict 1 A");
    EXPECT_EQ(store().head(), Position{0});
  }
  foreign->commit();
  EXPECT_EQ(found(Query::tag("y", "ä\"'")), (Positions{1}));
  foreign->begin();
  {
    AdoptedTx tx = foreign->adopt();
    EXPECT_EQ(append_in(tx, {happened("A")}), "appended 2-2");
  }
  foreign->rollback();
  EXPECT_EQ(everything(), (Positions{1}));
}

TEST_P(StreamHazard, HazardS6AnOldSnapshotOfTheUsersIsNeverBelieved) {
  const auto foreign = test::ForeignConnection::open(storage().kind(), database().url());
  const AppendCondition once{.query = Query::tag("seat", "1")};
  if (backend() == "postgres") {
    foreign->run("BEGIN ISOLATION LEVEL REPEATABLE READ");
  } else if (backend() == "mariadb") {
    foreign->run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    foreign->begin();
  } else {
    foreign->begin();
  }
  AdoptedTx tx = foreign->adopt();
  (void)tx.execute("select count(*) from " + table("events"));  // its snapshot is from here
  EXPECT_EQ(append({happened("Reserved", {"seat=1"})}, once), "appended 1-1");
  if (backend() == "mariadb") {
    EXPECT_EQ(append_in(tx, {happened("Reserved", {"seat=1"})}, once), "conflict 1 Reserved");
  } else {
    const Error error = error_of([&] { append_in(tx, {happened("Reserved", {"seat=1"})}, once); });
    EXPECT_EQ(error.code(), backend() == "postgres" ? ErrorCode::unsupported : ErrorCode::contention);
    if (backend() == "postgres") {
      EXPECT_NE(std::string(error.what()).find("READ COMMITTED"), std::string::npos);
    }
  }
  foreign->rollback();
  EXPECT_EQ(everything(), (Positions{1}));
}

TEST_P(StreamHazard, ATransactionOfAnotherDatabaseIsRefused) {
  class Foreign final : public Tx {
   public:
    explicit Foreign(BackendKind kind) : Tx(std::make_unique<ForeignSession>(kind)) {}
    [[nodiscard]] bool adopted() const noexcept override { return true; }
  };
  Foreign tx(backend() == "sqlite" ? BackendKind::postgres : BackendKind::sqlite);
  EXPECT_EQ(error_of([&] { append_in(tx, {happened("A")}); }).code(), ErrorCode::wrong_storage);
}

}  // namespace
}  // namespace postrider::conformance
