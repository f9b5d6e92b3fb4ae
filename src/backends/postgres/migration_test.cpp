// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "postrider/postgres.hpp"
#include "support/postgres.hpp"

namespace postrider::postgres {
namespace {

using test::error_of;
using test::PostgresTest;

class MigrationTest : public PostgresTest {
 protected:
  [[nodiscard]] test::TestDatabase::Options options() const override { return {.migrate = false}; }
  [[nodiscard]] std::string schema() const { return database_->options().schema.str(); }
  [[nodiscard]] bool schema_exists() {
    return query("SELECT count(*) FROM pg_namespace WHERE nspname = '" + schema() + "'").integer(0, 0) == 1;
  }
  [[nodiscard]] std::int64_t things() {
    return query("SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('" + schema() + "')")
        .integer(0, 0);
  }
};

TEST_F(MigrationTest, DownToNothingTakesTheSchemaAway) {
  EXPECT_EQ(error_of([&] { store().check_schema(); }).code(), ErrorCode::schema);
  const MigrationReport up = storage().migrate();
  EXPECT_EQ(up.from, 0);
  store().check_schema();
  EXPECT_TRUE(storage().migrate().steps.empty());
  storage().migrate({.target = 0});
  EXPECT_FALSE(schema_exists());
  storage().migrate();
  store().check_schema();
}

TEST_F(MigrationTest, AWordOfSqlCannotNameASchema) {
  for (const char* word : {"user", "order", "full"}) {
    StorageOptions options;
    options.schema = Identifier(word);
    const std::unique_ptr<Storage> storage = driver().open(database_->url(), options);
    const Error refused = error_of([&] { storage->migrate(); });
    EXPECT_EQ(refused.code(), ErrorCode::invalid_argument);
    EXPECT_NE(
        std::string(refused.what()).find("choose another name, for example " + std::string(word) + "_events"),
        std::string::npos)
        << refused.what();
  }
}

TEST_F(MigrationTest, SchemaOfSomebodyElseStays) {
  query("CREATE SCHEMA " + schema());
  storage().migrate();
  storage().migrate({.target = 0});
  EXPECT_TRUE(schema_exists());
  EXPECT_EQ(things(), 0);
}

TEST_F(MigrationTest, OurSchemaStaysWhileSomebodyElseUsesIt) {
  storage().migrate();
  query("CREATE TABLE " + schema() + ".theirs (x int)");
  storage().migrate({.target = 0});
  EXPECT_EQ(things(), 1);
}

TEST_F(MigrationTest, DryRunChangesNothing) {
  EXPECT_FALSE(storage().migrate({.dry_run = true}).steps.empty());
  EXPECT_FALSE(schema_exists());
}

TEST_F(MigrationTest, ManyAtOnce) {
  const std::size_t steps = storage().migrate({.dry_run = true}).steps.size();
  std::vector<std::future<MigrationReport>> runs;
  for (int i = 0; i < 6; ++i)
    runs.push_back(std::async(std::launch::async, [&] { return storage().migrate(); }));
  // They take turns from step to step; each step is done once.
  std::size_t done = 0;
  for (auto& run : runs) done += run.get().steps.size();
  EXPECT_EQ(done, steps);
  store().check_schema();
}

/// Another run that has the lock, changes the schema by hand, and ends when this one waits for it.
TEST_F(MigrationTest, SeesWhatWasDoneWhileItWaitedForTheLock) {
  StorageOptions one_connection = database_->options();
  one_connection.pool_size = 1;  // whose caches know the state before
  const std::unique_ptr<Storage> waiting = database_->open_another(one_connection);
  const std::string lock_key = "hashtextextended('postrider migrations of " + schema() + "', 0)";
  const auto while_it_waits = [&](const std::string& change) {
    const test::NativeConnection other = connect();
    run(other, "BEGIN; SELECT pg_advisory_xact_lock(" + lock_key + ")");
    std::future<MigrationReport> run_of_ours =
        std::async(std::launch::async, [&] { return waiting->migrate(); });
    const std::string waits =
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND "
        "(classid::bigint << 32 | objid::bigint) = " +
        lock_key;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{30};
    while (query(waits).integer(0, 0) == 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::yield();
    }
    run(other, change);
    run(other, "COMMIT");
    return run_of_ours.get();
  };
  EXPECT_THROW(waiting->outbox_store().check_schema(), Error) << "nothing is there";
  EXPECT_EQ(while_it_waits("CREATE SCHEMA " + schema()).from, 0);
  waiting->outbox_store().check_schema();
  EXPECT_EQ(while_it_waits("DROP SCHEMA " + schema() + " CASCADE").from, 0);
  waiting->outbox_store().check_schema();
}

TEST_F(MigrationTest, WithoutTablesEveryVerbSaysWhatToCall) {
  const Error error =
      error_of([&] { (void)store().claim({.owner = "n", .lease = std::chrono::seconds{1}, .limit = 1}); });
  EXPECT_EQ(error.code(), ErrorCode::schema);
  EXPECT_NE(std::string(error.what()).find("migrate()"), std::string::npos) << error.what();
  Transaction tx = storage().begin();
  EXPECT_EQ(error_of([&] { insert(tx, Event::json("A", "{}")); }).code(), ErrorCode::schema);
}

}  // namespace
}  // namespace postrider::postgres
