// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

#include "backends/postgres/postgres_test_support.hpp"

namespace postrider::postgres {
namespace {

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
  std::vector<std::future<MigrationReport>> runs;
  for (int i = 0; i < 6; ++i)
    runs.push_back(std::async(std::launch::async, [&] { return storage().migrate(); }));
  int worked = 0;
  for (auto& run : runs) worked += run.get().steps.empty() ? 0 : 1;
  EXPECT_EQ(worked, 1);
  store().check_schema();
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
