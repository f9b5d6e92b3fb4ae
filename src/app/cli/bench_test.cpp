// SPDX-License-Identifier: Apache-2.0
// postrider bench: measures, and leaves the database as it was.
#include <gmock/gmock.h>

#include "app/cli/cli_fixture.hpp"
#include "postrider/open.hpp"

namespace postrider::cli {
namespace {

using ::testing::HasSubstr;

class BenchCommand : public CliTest {
 protected:
  /// Tables (of any schema) that the bench may have made.
  [[nodiscard]] std::int64_t bench_tables() {
    Transaction tx = storage().begin();
    switch (storage().kind()) {
      case BackendKind::sqlite:
        return tx
            .execute("select count(*) from sqlite_master where name like 'postrider\\_bench%' escape '\\'")
            .integer(0, 0);
      case BackendKind::postgres:
        return tx.execute("select count(*) from pg_namespace where nspname = 'postrider_bench'")
            .integer(0, 0);
      case BackendKind::mariadb:
        break;
    }
    return tx
        .execute(
            "select count(*) from information_schema.tables where table_schema = database() and table_name "
            "like 'postrider\\_bench%'")
        .integer(0, 0);
  }
};

TEST_P(BenchCommand, MeasuresOutboxQueueAndStoreAndRemovesItsTables) {
  if (IsSkipped() || HasFatalFailure()) return;
  const boost::json::value said = json({"bench", "--events", "40", "--seconds", "30"});
  const boost::json::array& rows = said.as_array();
  ASSERT_EQ(rows.size(), 3U);
  for (const boost::json::value& row : rows) {
    EXPECT_EQ(row.at("events").to_number<std::int64_t>(), 40) << row;
    EXPECT_GT(row.at("perSecond").to_number<double>(), 0) << row;
    EXPECT_GT(row.at("p50Ms").to_number<double>(), 0) << row;
    EXPECT_GE(row.at("p99Ms").to_number<double>(), row.at("p50Ms").to_number<double>()) << row;
  }
  EXPECT_THAT(std::string(rows[0].at("name").as_string()), HasSubstr("outbox"));
  EXPECT_EQ(bench_tables(), 0);
  // What was there is untouched.
  Transaction tx = storage().begin();
  EXPECT_EQ(tx.execute("select count(*) from " + table("outbox_event")).integer(0, 0), 0);
}

TEST_P(BenchCommand, RefusesTablesThatAreNotItsOwnDoing) {
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_EQ(run({"migrate", "--schema", "postrider_bench"}).code, 0);
  const std::int64_t before = bench_tables();
  ASSERT_GT(before, 0);
  const Said said = run({"bench", "--events", "5"});
  EXPECT_EQ(bench_tables(), before) << "nothing was removed";
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, HasSubstr("postrider_bench exists already"));
  // As the hint says.
  EXPECT_EQ(run({"migrate", "--schema", "postrider_bench", "--to", "0", "--yes"}).code, 0);
  EXPECT_EQ(run({"bench", "--events", "5"}).code, 0);
  EXPECT_EQ(bench_tables(), 0);
}

TEST_P(BenchCommand, MeasuresWhereItIsToldAndNeverWhereTablesAre) {
  if (IsSkipped() || HasFatalFailure()) return;
  ASSERT_EQ(run({"migrate", "--schema", "postrider_bench"}).code, 0) << "so that it cannot be there";
  EXPECT_EQ(run({"bench", "--events", "5", "--schema", "postrider_bench_b"}).code, 0);
  EXPECT_EQ(run({"migrate", "--schema", "postrider_bench", "--to", "0", "--yes"}).code, 0);
  const std::string in_use = database_->options().schema.str();
  const Said said = run({"bench", "--events", "5", "--schema", in_use});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, HasSubstr(in_use + " exists already, and may be in use"));
  EXPECT_THAT(said.err, ::testing::Not(HasSubstr("migrate"))) << "no hint that would remove what is in use";
  Transaction tx = storage().begin();
  EXPECT_EQ(tx.execute("select count(*) from " + table("outbox_event")).integer(0, 0), 0) << "still there";
  tx.rollback();
  EXPECT_EQ(run({"bench", "--events", "5", "--schema", "no schema"}).code, 1);
}

POSTRIDER_FOR_EACH_BACKEND(BenchCommand);

TEST(BenchCommandLine, DoesNotMakeAFileThatIsNotThere) {
  const test::TempDir dir;
  const CommandLine line;
  const CommandLine::Said said = line.run({"bench", "--storage", "sqlite:" + dir.file("typing-error.db")});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.err, HasSubstr("there is no such file"));
  EXPECT_FALSE(std::filesystem::exists(dir.file("typing-error.db")));
}

}  // namespace
}  // namespace postrider::cli
