// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <future>
#include <thread>

#include "backends/mariadb/mariadb_fixture.hpp"
#include "backends/mariadb/migration_target.hpp"

namespace postrider::mariadb {
namespace {

using ::testing::HasSubstr;

using MariadbMigrationTest = MariadbTest;

TEST_F(MariadbMigrationTest, GoesUpAndDown) {
  const auto storage = open_storage();
  EXPECT_EQ(error_of([&] { storage->outbox_store().check_schema(); }).code(), ErrorCode::schema);
  EXPECT_EQ(storage->migrate({.dry_run = true}).steps.size(), embedded_migrations().size());
  EXPECT_EQ(error_of([&] { storage->outbox_store().check_schema(); }).code(), ErrorCode::schema);
  EXPECT_EQ(storage->migrate().to, embedded_migrations().back().version);
  EXPECT_NO_THROW(storage->outbox_store().check_schema());
  EXPECT_TRUE(storage->migrate().steps.empty());
  EXPECT_EQ(storage->migrate({.target = 0}).to, 0);
  EXPECT_EQ(client().query("SHOW TABLES LIKE '" + table() + "'").size(), 0U);
}

TEST_F(MariadbMigrationTest, TellsWhatToCallWhenTheTableIsMissing) {
  const auto storage = open_storage();
  Transaction tx = storage->begin();
  const Event e = event("a");
  const NewOutboxRow row{.event = &e};
  const Error error = error_of([&] { storage->outbox_store().insert(tx, "node", {&row, 1}); });
  EXPECT_EQ(error.code(), ErrorCode::schema);
  EXPECT_THAT(error.what(), HasSubstr("migrate()"));
}

TEST_F(MariadbMigrationTest, ResumesWhereverItWasStopped) {
  const auto storage = open_storage();
  for (int stop_at = 1;; ++stop_at) {
    int passed = 0;
    failpoints::set("mariadb.migrate.between", [&] {
      if (++passed == stop_at) throw Error(ErrorCode::unavailable, "stopped");
    });
    try {
      storage->migrate();
      EXPECT_GE(stop_at, 3) << "the failpoint was not passed around each statement";
      break;
    } catch (const Error& error) {
      ASSERT_THAT(error.what(), HasSubstr("stopped"));
      EXPECT_THROW(storage->outbox_store().check_schema(), Error);
    }
    failpoints::clear();
    EXPECT_EQ(storage->migrate().to, embedded_migrations().back().version) << "stopped at " << stop_at;
    EXPECT_NO_THROW(storage->outbox_store().check_schema());
    storage->migrate({.target = 0});
  }
}

TEST_F(MariadbMigrationTest, TwoAtOnceTakeTurns) {
  const auto storage = open_storage();
  std::promise<void> first_is_inside;
  std::promise<void> let_it_go_on;
  bool first = true;
  failpoints::set("mariadb.migrate.between", [&] {
    if (!std::exchange(first, false)) return;
    first_is_inside.set_value();
    let_it_go_on.get_future().wait();
  });
  auto one = std::async(std::launch::async, [&] { return storage->migrate().steps.size(); });
  first_is_inside.get_future().wait();
  auto two = std::async(std::launch::async, [&] { return storage->migrate().steps.size(); });
  // The second has to be seen waiting for the lock before the first goes on.
  const std::string waiting =
      "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User lock' AND db = DATABASE()";
  while (client().one(waiting) == "0" && two.wait_for(std::chrono::seconds{0}) != std::future_status::ready) {
    std::this_thread::yield();
  }
  let_it_go_on.set_value();
  EXPECT_EQ(one.get(), embedded_migrations().size());
  EXPECT_EQ(two.get(), 0U);
}

TEST_F(MariadbMigrationTest, RefusesANewerSchema) {
  storage();
  client().query("INSERT INTO " + prefix_ + "_schema_migrations (version, name) VALUES (99, 'future')");
  EXPECT_EQ(error_of([&] { storage().migrate(); }).code(), ErrorCode::schema);
  EXPECT_EQ(error_of([&] { store().check_schema(); }).code(), ErrorCode::schema);
}

TEST_F(MariadbMigrationTest, TheTableTakesRowsOfOtherProgramsAndRefusesBrokenOnes) {
  storage();
  client().query("SET time_zone = '-07:00'");
  client().query("INSERT INTO " + table() + " (event_id, event_type, payload) VALUES ('a', 'T', '{}')");
  EXPECT_EQ(
      client().one(
          "SELECT due_at = available_at AND ABS(TIMESTAMPDIFF(SECOND, due_at, UTC_TIMESTAMP())) < 60 FROM " +
          table()),
      "1");
  EXPECT_THROW(
      client().query("INSERT INTO " + table() + " (event_id, event_type, payload) VALUES ('', 'T', '{}')"),
      std::runtime_error);
  EXPECT_THROW(
      client().query("INSERT INTO " + table() + " (event_id, event_type, payload) VALUES ('a b', 'T', '{}')"),
      std::runtime_error);
  EXPECT_THROW(client().query("INSERT INTO " + table() + " (event_id, event_type) VALUES ('b', 'T')"),
               std::runtime_error);
  EXPECT_THROW(client().query("INSERT INTO " + table() +
                              " (event_id, event_type, payload, status) VALUES ('b', 'T', '{}', 4)"),
               std::runtime_error);
  EXPECT_EQ(claim(), std::vector<std::string>{"a"});
}

}  // namespace
}  // namespace postrider::mariadb
