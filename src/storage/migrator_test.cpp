// SPDX-License-Identifier: Apache-2.0
#include "storage/migrator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "postrider/error.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::array known{EmbeddedMigration{1, "one", "create {schema}.a;", "drop {schema}.a;"},
                           EmbeddedMigration{2, "two", "create {schema}.b;", "drop {schema}.b;"},
                           EmbeddedMigration{3, "three", "create {schema}.c;", "drop {schema}.c;"}};

std::vector<std::string> sql_of(const MigrationReport& report) {
  std::vector<std::string> sql;
  for (const MigrationStep& step : report.steps) sql.push_back(step.sql);
  return sql;
}

Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorCode::database, "nothing was thrown");
}

TEST(PlanMigrations, FromNothingToTheNewest) {
  const MigrationReport report = plan_migrations(known, {}, "shop", {});
  EXPECT_EQ(report.from, 0);
  EXPECT_EQ(report.to, 3);
  EXPECT_THAT(sql_of(report), ElementsAre("create shop.a;", "create shop.b;", "create shop.c;"));
  EXPECT_TRUE(report.steps[0].up);
  EXPECT_EQ(report.steps[1].name, "two");
}

TEST(PlanMigrations, OnlyWhatIsMissing) {
  EXPECT_THAT(sql_of(plan_migrations(known, std::array{1, 2}, "s", {})), ElementsAre("create s.c;"));
  EXPECT_THAT(sql_of(plan_migrations(known, std::array{1, 2, 3}, "s", {})), IsEmpty());
}

TEST(PlanMigrations, UpToATarget) {
  const MigrationReport report = plan_migrations(known, std::array{1}, "s", {.target = 2});
  EXPECT_EQ(report.to, 2);
  EXPECT_THAT(sql_of(report), ElementsAre("create s.b;"));
}

TEST(PlanMigrations, DownInReverse) {
  const MigrationReport report = plan_migrations(known, std::array{1, 2, 3}, "s", {.target = 0});
  EXPECT_EQ(report.from, 3);
  EXPECT_EQ(report.to, 0);
  EXPECT_THAT(sql_of(report), ElementsAre("drop s.c;", "drop s.b;", "drop s.a;"));
  EXPECT_FALSE(report.steps[0].up);
  EXPECT_THAT(sql_of(plan_migrations(known, std::array{1, 2, 3}, "s", {.target = 2})),
              ElementsAre("drop s.c;"));
}

TEST(PlanMigrations, ANewerDatabaseIsRefused) {
  const Error error = error_of([] { (void)plan_migrations(known, std::array{1, 2, 3, 4}, "s", {}); });
  EXPECT_EQ(error.code(), ErrorCode::schema);
  EXPECT_THAT(error.what(), HasSubstr("version 4"));
  EXPECT_THAT(error.what(), HasSubstr("upgrade"));
  EXPECT_EQ(error_of([] {
              (void)plan_migrations(known, std::array{1, 2, 3, 4}, "s", {.target = 0});
            }).code(),
            ErrorCode::schema)
      << "not even downwards: nobody here knows how to undo 4";
}

TEST(PlanMigrations, AGapIsRefused) {
  const Error error = error_of([] { (void)plan_migrations(known, std::array{1, 3}, "s", {}); });
  EXPECT_EQ(error.code(), ErrorCode::schema);
  EXPECT_THAT(error.what(), HasSubstr("version 2 is missing"));
}

TEST(PlanMigrations, AnUnknownTargetIsRefused) {
  for (const int target : {-1, 4}) {
    EXPECT_EQ(error_of([&] { (void)plan_migrations(known, {}, "s", {.target = target}); }).code(),
              ErrorCode::invalid_argument);
  }
}

class FakeTarget final : public MigrationTarget {
 public:
  void lock() override { calls.emplace_back("lock"); }
  std::vector<int> applied() override {
    calls.emplace_back("applied");
    return versions;
  }
  bool apply(const MigrationStep& step) override {
    calls.push_back((step.up ? "up " : "down ") + step.name);
    if (step.name == fail_at) throw Error(ErrorCode::database, "no");
    return step.name != done_by_others;
  }
  std::vector<int> versions;
  std::vector<std::string> calls;
  std::string fail_at;
  std::string done_by_others;
};

TEST(RunMigrations, ReportsWhatItDidItself) {
  FakeTarget target;
  target.done_by_others = "two";
  const MigrationReport report = run_migrations(target, known, "s", {});
  ASSERT_EQ(report.steps.size(), 2U);
  EXPECT_EQ(report.steps[0].name, "one");
  EXPECT_EQ(report.steps[1].name, "three");
}

TEST(RunMigrations, LocksBeforeItLooks) {
  FakeTarget target;
  target.versions = {1};
  run_migrations(target, known, "s", {});
  EXPECT_THAT(target.calls, ElementsAre("lock", "applied", "up two", "up three"));
}

TEST(RunMigrations, ADryRunTouchesNothing) {
  FakeTarget target;
  const MigrationReport report = run_migrations(target, known, "s", {.dry_run = true});
  EXPECT_THAT(target.calls, ElementsAre("applied"));
  EXPECT_EQ(report.steps.size(), 3U);
}

TEST(RunMigrations, StopsAtTheFirstFailure) {
  FakeTarget target;
  target.fail_at = "two";
  EXPECT_THROW(run_migrations(target, known, "s", {}), Error);
  EXPECT_THAT(target.calls, ElementsAre("lock", "applied", "up one", "up two"));
}

TEST(RequireCurrentSchema, SaysWhatToDo) {
  require_current_schema(known, std::array{1, 2, 3}, "sqlite:x");
  const Error missing = error_of([] { require_current_schema(known, {}, "sqlite:x"); });
  EXPECT_EQ(missing.code(), ErrorCode::schema);
  EXPECT_THAT(missing.what(), HasSubstr("sqlite:x"));
  EXPECT_THAT(missing.what(), HasSubstr("tables are missing"));
  EXPECT_THAT(missing.what(), HasSubstr("call storage->migrate() first"));
  const Error old = error_of([] { require_current_schema(known, std::array{1}, "sqlite:x"); });
  EXPECT_THAT(old.what(), HasSubstr("version 1, version 3 is needed"));
  EXPECT_THAT(old.what(), HasSubstr("call storage->migrate() first"));
  EXPECT_THAT(error_of([] {
                require_current_schema(known, std::array{1, 2, 3, 9}, "sqlite:x");
              }).what(),
              HasSubstr("upgrade"));
}

TEST(SplitStatements, AtSemicolonsThatEndALine) {
  EXPECT_THAT(split_statements(""), IsEmpty());
  EXPECT_THAT(split_statements("-- nothing;\n\n"), IsEmpty());
  EXPECT_THAT(split_statements("a;\nb\n  c;  \nd"), ElementsAre("a", "b\n  c", "d"));
  EXPECT_THAT(split_statements("a;\r\nb;\r\n"), ElementsAre("a", "b"));
  EXPECT_THAT(split_statements("select ';' || x; select 2;"), ElementsAre("select ';' || x; select 2"));
  EXPECT_THAT(split_statements("-- why;\ncreate (\n  -- a column;\n  x int\n);\n-- the end"),
              ElementsAre("-- why;\ncreate (\n  -- a column;\n  x int\n)"));
  EXPECT_THAT(split_statements("create x\nBEGIN\n  a;\n  BEGIN\n    b;\n  END;\nEND;\nc;"),
              ElementsAre("create x\nBEGIN\n  a;\n  BEGIN\n    b;\n  END;\nEND", "c"));
}

TEST(FillSchema, EveryPlace) {
  EXPECT_EQ(fill_schema("{schema}.a, {schema}_b {other}", "shop"), "shop.a, shop_b {other}");
  EXPECT_EQ(fill_schema("", "shop"), "");
}

TEST(NamesOurTable, InASchemaOrBehindAPrefix) {
  for (const char* text :
       {"relation \"postrider.outbox_event\" does not exist", "Table 'db.shop_outbox_event' doesn't exist",
        "no such table: postrider_schema_migrations", "no such table: postrider_outbox_topic_progress",
        "insert into s.outbox_event(event_id)"}) {
    EXPECT_TRUE(names_our_table(text)) << text;
  }
  for (const char* text :
       {"", "no such table: orders", "Table 'db.outbox_eventlog' doesn't exist",
        "relation \"outbox_event\" does not exist", "no such table: my_outbox_event_archive"}) {
    EXPECT_FALSE(names_our_table(text)) << text;
  }
}

}  // namespace
}  // namespace postrider
