// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/storage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <thread>

#include "core/failpoint.hpp"
#include "postrider/error.hpp"
#include "postrider/sqlite.hpp"
#include "support/temp_dir.hpp"

namespace postrider::sqlite {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <class Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::database, "nothing was thrown");
}

class SqliteStorageTest : public ::testing::Test {
 protected:
  std::unique_ptr<SqliteStorage> make(const StorageOptions& options = {}) {
    auto storage = std::make_unique<SqliteStorage>("sqlite:" + file_, options);
    storage->migrate({});
    return storage;
  }
  static void insert(Storage& storage, Tx& tx, const std::string& id) {
    const Event event = Event::builder("E").id(EventId(id)).json("1").build();
    const NewOutboxRow row{.event = &event};
    storage.outbox_store().insert(tx, "n", {&row, 1});
  }
  test::TempDir dir_;
  std::string file_ = dir_.file("test.db");
};

/// A connection of the user's own.
class OwnConnection {
 public:
  explicit OwnConnection(const std::string& file) {
    if (sqlite3_open(file.c_str(), &db_) != SQLITE_OK) ADD_FAILURE() << sqlite3_errmsg(db_);
  }
  ~OwnConnection() { close(); }
  OwnConnection(const OwnConnection&) = delete;
  OwnConnection& operator=(const OwnConnection&) = delete;
  void run(const char* sql) const {
    EXPECT_EQ(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db_);
  }
  int close() { return sqlite3_close(std::exchange(db_, nullptr)); }
  [[nodiscard]] sqlite3* get() const { return db_; }

 private:
  sqlite3* db_ = nullptr;
};

TEST_F(SqliteStorageTest, AFileThatIsRemovedWhileItIsInUseTakesNothingMore) {
  const auto storage = make();
  storage->ping();
  const std::string aside = dir_.file("aside.db");
  ASSERT_EQ(std::rename(file_.c_str(), aside.c_str()), 0);
  const auto publish = [&](const std::string& id) {
    Transaction tx = storage->begin();
    insert(*storage, tx, id);
    tx.commit();
  };
  const Error error = error_of([&] { publish("lost"); });
  EXPECT_EQ(error.code(), ErrorCode::unavailable);
  EXPECT_TRUE(error.retryable());
  EXPECT_THAT(error.what(), HasSubstr("removed or replaced"));
  EXPECT_EQ(error_of([&] { storage->ping(); }).code(), ErrorCode::unavailable);
  std::ofstream(file_) << "";
  EXPECT_EQ(error_of([&] { publish("lost too"); }).code(), ErrorCode::unavailable)
      << "another one in its place";
  ASSERT_EQ(std::rename(aside.c_str(), file_.c_str()), 0);
  publish("kept");
  storage->ping();
}

TEST_F(SqliteStorageTest, AdoptPublishesInTheUsersTransaction) {
  const auto storage = make();
  OwnConnection own(file_);
  AdoptedTx tx = adopt(own.get());
  EXPECT_FALSE(tx.active());
  EXPECT_EQ(error_of([&] { insert(*storage, tx, "early"); }).code(), ErrorCode::not_in_transaction);
  own.run("BEGIN");
  EXPECT_TRUE(tx.active());
  insert(*storage, tx, "gone");
  own.run("ROLLBACK");
  own.run("BEGIN");
  insert(*storage, tx, "kept");
  EXPECT_EQ(
      tx.execute("select count(*) from postrider_outbox_event where event_id = ?", "kept").integer(0, 0), 1);
  own.run("COMMIT");
  EXPECT_FALSE(tx.active());
  EXPECT_TRUE(storage->outbox_admin_store().find(EventId("kept")).has_value());
  EXPECT_FALSE(storage->outbox_admin_store().find(EventId("gone")).has_value());
}

TEST_F(SqliteStorageTest, TheUserMayCloseTheConnectionFirst) {
  const auto storage = make();
  auto tx = std::make_unique<AdoptedTx>([&] {
    OwnConnection own(file_);
    AdoptedTx adopted = adopt(own.get());
    own.run("BEGIN");
    insert(*storage, adopted, "a");
    own.run("COMMIT");
    EXPECT_EQ(own.close(), SQLITE_OK) << "no statement of ours is left on it";
    return adopted;
  }());
  tx.reset();
  EXPECT_TRUE(storage->outbox_admin_store().find(EventId("a")).has_value());
}

TEST_F(SqliteStorageTest, AdoptingAnotherFileIsRefused) {
  const auto storage = make();
  OwnConnection other(dir_.file("other.db"));
  other.run("BEGIN");
  AdoptedTx tx = adopt(other.get());
  const Error error = error_of([&] { insert(*storage, tx, "a"); });
  EXPECT_EQ(error.code(), ErrorCode::wrong_storage);
  EXPECT_THAT(error.what(), HasSubstr("other.db"));
  EXPECT_EQ(error_of([] { (void)adopt(nullptr); }).code(), ErrorCode::invalid_argument);
}

TEST_F(SqliteStorageTest, TheSameFileByAnotherNameIsTheSame) {
  const auto storage = make();
  std::filesystem::create_symlink(file_, dir_.file("link.db"));
  OwnConnection own(dir_.file("link.db"));
  own.run("BEGIN");
  AdoptedTx tx = adopt(own.get());
  insert(*storage, tx, "a");
  own.run("COMMIT");
  EXPECT_TRUE(storage->outbox_admin_store().find(EventId("a")).has_value());
}

TEST_F(SqliteStorageTest, AnotherProcessHoldingTheLockIsContention) {
  const auto storage = make({.sqlite_busy_timeout = 1ms});
  const OwnConnection other(file_);
  other.run("BEGIN IMMEDIATE");
  const Error error = error_of([&] { (void)storage->begin(); });
  EXPECT_EQ(error.code(), ErrorCode::contention) << error.what();
  EXPECT_TRUE(error.retryable());
  EXPECT_THAT(error.what(), HasSubstr("sqlite_busy_timeout"));
  const LeaseRef held{EventId{"a"}, birth_token};
  EXPECT_EQ(error_of([&] {
              (void)storage->outbox_store().renew({&held, 1}, 1s);
            }).code(),
            ErrorCode::contention);
  EXPECT_TRUE(storage->outbox_store().claim({.owner = "n", .lease = 1s, .limit = 1}).empty())
      << "an idle look must not need the lock";
  other.run("COMMIT");
  Transaction tx = storage->begin();
  tx.commit();
}

TEST_F(SqliteStorageTest, ASecondTransactionOfTheSameThreadIsExplained) {
  const auto storage = make({.acquire_timeout = 1h});  // which is not waited for
  Transaction first = storage->begin();
  const Error error = error_of([&] { (void)storage->begin(); });
  EXPECT_EQ(error.code(), ErrorCode::timeout);
  EXPECT_FALSE(error.retryable()) << "it will be no better the next time";
  EXPECT_THAT(error.what(), HasSubstr("this thread has another transaction open"));
  first.commit();
  storage->begin().commit();
}

TEST_F(SqliteStorageTest, ATransactionThatWasHandedToAnotherThreadIsWaitedFor) {
  ManualClock clock;
  const auto storage = make({.clock = &clock});
  Transaction first = storage->begin();
  std::jthread other([&, handed = std::move(first)]() mutable {
    EXPECT_TRUE(clock.await_waiters(1));
    handed.commit();
  });
  storage->begin().commit();
}

TEST_F(SqliteStorageTest, WhoComesBackAtOnceDoesNotTakeItsOldTransactionForItsOwn) {
  ManualClock clock;
  const auto storage = make({.clock = &clock});
  std::optional<Transaction> first(storage->begin());
  std::jthread other([&] {
    Transaction tx = storage->begin();
    EXPECT_TRUE(clock.await_waiters(1));
    clock.advance(1s);  // longer than one would wait for oneself
    tx.commit();
  });
  EXPECT_TRUE(clock.await_waiters(1));
  first.reset();  // handed to the other one, who may not have noticed yet
  storage->begin().commit();
}

TEST_F(SqliteStorageTest, WritersOfThisProcessQueueFairlyWithADeadline) {
  ManualClock clock;
  const auto storage = make({.acquire_timeout = 10s, .clock = &clock});
  const auto await_waiting = [&](std::size_t count) {
    while (storage->pool_stats().waiting != count || clock.waiters() != count) std::this_thread::yield();
  };
  std::mutex mutex;
  std::vector<int> order;
  std::optional<Transaction> first(storage->begin());
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      Transaction tx = storage->begin();
      const std::lock_guard lock(mutex);
      order.push_back(i);
    });
    await_waiting(static_cast<std::size_t>(i) + 1);
  }
  first.reset();
  threads.clear();
  EXPECT_THAT(order, ElementsAre(0, 1, 2)) << "first come, first served";

  first.emplace(storage->begin());
  std::jthread late([&] {
    const Error error = error_of([&] { (void)storage->begin(); });
    EXPECT_EQ(error.code(), ErrorCode::timeout);
    EXPECT_THAT(error.what(), HasSubstr("acquire_timeout"));
  });
  await_waiting(1);
  clock.advance(10s);
  late.join();
  first->commit();
  EXPECT_EQ(storage->pool_stats().waiting, 0U);
}

TEST_F(SqliteStorageTest, ReadersSeeTheLastCommitWhileAWriterWorks) {
  const auto storage = make();
  Transaction tx = storage->begin();
  insert(*storage, tx, "a");
  EXPECT_EQ(storage->outbox_admin_store().counts().pending, 0);
  EXPECT_TRUE(storage->outbox_store().predecessors("k", EventId("a"), 1).empty());
  storage->outbox_store().check_schema();
  storage->ping();
  tx.commit();
  EXPECT_EQ(storage->outbox_admin_store().counts().pending, 1);
}

TEST_F(SqliteStorageTest, OnlyLeasesAreWrittenWithoutAFlush) {
  const auto storage = make({.sqlite_busy_timeout = 1ms});
  QueueStore& queue = storage->queue_store();
  const Event event = Event::json("E", "1");
  const NewQueueRow row{.event = &event};
  const auto synchronous = [&] {
    Transaction tx = storage->begin();
    return tx.execute("PRAGMA synchronous").text(0, 0);
  };
  {
    Transaction tx = storage->begin();
    queue.insert(tx, {&row, 1});
    tx.commit();
  }
  const QueueClaimResult claimed = queue.claim({.owner = "n", .lease = 1h, .limit = 1});
  ASSERT_EQ(claimed.events.size(), 1U);
  EXPECT_EQ(synchronous(), "2");
  EXPECT_EQ(queue.renew({&claimed.events[0].claim, 1}, 1h).size(), 1U);
  EXPECT_EQ(synchronous(), "2");
  {
    const OwnConnection other(file_);  // a claim that fails
    other.run("BEGIN IMMEDIATE");
    EXPECT_THROW((void)queue.renew({&claimed.events[0].claim, 1}, 1h), Error);
    other.run("ROLLBACK");
  }
  EXPECT_EQ(synchronous(), "2");
}

TEST_F(SqliteStorageTest, ACallbackMayBeginTheNextTransaction) {
  const auto storage = make({.acquire_timeout = 0s});
  Transaction tx = storage->begin();
  insert(*storage, tx, "a");
  tx.after_commit([&] {
    Transaction next = storage->begin();
    insert(*storage, next, "b");
    next.commit();
  });
  tx.commit();
  EXPECT_EQ(storage->outbox_admin_store().counts().pending, 2);
}

TEST_F(SqliteStorageTest, StatementsAreChecked) {
  const auto storage = make();
  Transaction tx = storage->begin();
  EXPECT_THAT(error_of([&] { tx.execute("select ?, ?", 1); }).what(),
              HasSubstr("it has 2 placeholders and was given 1 value"));
  EXPECT_THAT(error_of([&] { tx.execute("select 1; select 2"); }).what(),
              HasSubstr("more than one statement"));
  EXPECT_EQ(error_of([&] { tx.execute(""); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { tx.execute("select * from nowhere"); }).code(), ErrorCode::database)
      << "not our table: no hint to migrate";
  tx.execute("create table t (id integer primary key, x blob, unique (x))");
  const std::string bytes("\0\1", 2);
  EXPECT_EQ(tx.execute("insert into t (x) values (?), (?), (?)", Blob{bytes}, 1.5, nullptr).affected, 3);
  EXPECT_EQ(error_of([&] { tx.execute("insert into t (x) values (?)", 1.5); }).code(), ErrorCode::conflict);
  const Rows rows = tx.execute("select x from t order by id");
  EXPECT_EQ(rows.text(0, 0), bytes);
  EXPECT_EQ(rows.text(1, 0), "1.5");
  EXPECT_TRUE(rows.is_null(2, 0));
  EXPECT_EQ(rows.affected, 0);
  EXPECT_EQ(tx.execute("create table u (id)").affected, 0) << "not the count of the statement before";
}

TEST_F(SqliteStorageTest, PreparedStatementsAreKeptWithinBounds) {
  Connection connection({.name = "sqlite:" + file_, .path = file_});
  for (int i = 0; i < 500; ++i) connection.execute("select " + std::to_string(i), {});
  int count = 0;
  for (sqlite3_stmt* s = sqlite3_next_stmt(connection.native(), nullptr); s != nullptr;
       s = sqlite3_next_stmt(connection.native(), s)) {
    ++count;
  }
  EXPECT_EQ(count, 64);
}

TEST_F(SqliteStorageTest, ProcessesThatOpenAndMigrateAtOnce) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      try {
        SqliteStorage storage("sqlite:" + file_, {});
        storage.migrate({});
        storage.outbox_store().check_schema();
        ::_exit(0);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "child: %s\n", error.what());
        ::_exit(1);
      }
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_TRUE(SqliteStorage("sqlite:" + file_, {}).migrate({}).steps.empty());
}

TEST_F(SqliteStorageTest, ConnectionsThatMigrateAtOnce) {
  std::vector<std::jthread> threads;
  std::atomic<int> steps{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      SqliteStorage storage("sqlite:" + file_, {});
      steps += static_cast<int>(storage.migrate({}).steps.size());
    });
  }
  threads.clear();
  EXPECT_EQ(steps, static_cast<int>(embedded_migrations().size())) << "each step was made by one of them";
}

TEST_F(SqliteStorageTest, MigratesDownAndUpAgain) {
  const auto storage = make();
  EXPECT_EQ(storage->migrate({.target = 0, .dry_run = true}).steps.size(), embedded_migrations().size());
  storage->outbox_store().check_schema();
  storage->migrate({.target = 0});
  EXPECT_EQ(error_of([&] { storage->outbox_store().check_schema(); }).code(), ErrorCode::schema);
  EXPECT_EQ(error_of([&] { (void)storage->outbox_admin_store().counts(); }).code(), ErrorCode::schema);
  storage->migrate({});
  EXPECT_EQ(storage->outbox_admin_store().counts().pending, 0);
}

TEST_F(SqliteStorageTest, ANewerSchemaIsRefused) {
  const auto storage = make();
  OwnConnection(file_).run("insert into postrider_schema_migrations values (999, 'future', 0)");
  EXPECT_THAT(error_of([&] { storage->migrate({}); }).what(), HasSubstr("upgrade"));
  EXPECT_EQ(error_of([&] { storage->outbox_store().check_schema(); }).code(), ErrorCode::schema);
  storage->begin().commit();  // the lock was given back
}

TEST_F(SqliteStorageTest, TwoPrefixesLiveInOneFile) {
  const auto one = make();
  const auto two = make({.schema = "other"});
  Transaction tx = two->begin();
  insert(*two, tx, "a");
  tx.commit();
  EXPECT_EQ(one->outbox_admin_store().counts().pending, 0);
  EXPECT_EQ(two->outbox_admin_store().counts().pending, 1);
}

#if defined(POSTRIDER_FAILPOINTS)
class SqliteFailpoints : public SqliteStorageTest {
 protected:
  ~SqliteFailpoints() override { failpoints::clear(); }
  static void fail_at(std::string_view name) {
    failpoints::set(name, [] { throw Error(ErrorCode::unavailable, {.retryable = true}, "failpoint"); });
  }
};

TEST_F(SqliteFailpoints, AFailureBeforeTheCommitIsARollback) {
  const auto storage = make();
  bool rolled_back = false;
  Transaction tx = storage->begin();
  insert(*storage, tx, "a");
  tx.after_rollback([&] { rolled_back = true; });
  fail_at("sqlite.commit.before");
  EXPECT_FALSE(error_of([&] { tx.commit(); }).in_doubt());
  EXPECT_TRUE(rolled_back);
  EXPECT_FALSE(storage->outbox_admin_store().find(EventId("a")).has_value());
}

TEST_F(SqliteFailpoints, AFailureAfterTheCommitIsInDoubt) {
  const auto storage = make();
  bool called = false;
  Transaction tx = storage->begin();
  insert(*storage, tx, "a");
  tx.after_rollback([&] { called = true; });
  tx.after_commit([&] { called = true; });
  fail_at("sqlite.commit.after");
  EXPECT_TRUE(error_of([&] { tx.commit(); }).in_doubt());
  EXPECT_FALSE(called);
  EXPECT_TRUE(storage->outbox_admin_store().find(EventId("a")).has_value());
}

TEST_F(SqliteFailpoints, ClaimsAndResultsAreAllOrNothing) {
  const auto storage = make();
  Transaction tx = storage->begin();
  insert(*storage, tx, "a");
  insert(*storage, tx, "b");
  tx.commit();
  const ClaimRequest request{.owner = "n", .lease = 1h, .limit = 10};
  fail_at("sqlite.claim.before_commit");
  EXPECT_EQ(error_of([&] { (void)storage->outbox_store().claim(request); }).code(), ErrorCode::unavailable);
  failpoints::clear();
  const auto claimed = storage->outbox_store().claim(request);
  ASSERT_EQ(claimed.size(), 2U) << "the failed claim left no lease";
  EXPECT_EQ(claimed[0].lease.token, Token{2});
  const std::vector<Completion> results{{.lease = claimed[0].lease}, {.lease = claimed[1].lease}};
  fail_at("sqlite.complete.before_commit");
  EXPECT_EQ(error_of([&] { storage->outbox_store().complete(results); }).code(), ErrorCode::unavailable);
  failpoints::clear();
  EXPECT_EQ(storage->outbox_admin_store().counts().done, 0);
  EXPECT_EQ(storage->outbox_store().complete(results), 2U);
}

TEST_F(SqliteFailpoints, AKilledMigrationLeavesWholeSteps) {
  fail_at("sqlite.migrate.before_commit");
  EXPECT_EQ(error_of([&] { make(); }).code(), ErrorCode::unavailable);
  failpoints::clear();
  const auto storage = make();
  EXPECT_EQ(storage->outbox_admin_store().counts().pending, 0);
}
#endif

}  // namespace
}  // namespace postrider::sqlite
