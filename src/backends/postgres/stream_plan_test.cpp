// SPDX-License-Identifier: Apache-2.0
// The plan of every statement of the event store, prepared while the tables were empty, under the settings
// that our own transactions use: see outbox_plan_test.cpp.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/postgres/stream_sql.hpp"
#include "support/postgres.hpp"

namespace postrider::postgres {
namespace {

using test::NativeConnection;
using test::PostgresTest;

struct Hot {
  const char* name;
  const Statement* statement;
  std::string arguments;
  std::vector<std::string> must_use;
  bool may_sort = false;  // what was limited before
};

class StreamPlanTest : public PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    sql_.emplace(database_->options().schema);
    connection_ = connect();
    // Otherwise autovacuum may analyse the tables in the middle, and the test would prove less than it says.
    for (const char* name : {"events", "event_tags"}) {
      run(connection_, "ALTER TABLE " + database_->table(name) + " SET (autovacuum_enabled = off)");
    }
    const std::string groups = "0, 1000000, 100, 1000000, '{1,2}', '{1,3}', '{7,8,9}'";
    hot_ = {
        {"head", &sql_->head, "", {"Backward using events_pkey"}},
        {"probe_one",
         &sql_->probe_one,
         "'{7,8}', '{0,1}', '{9,9}'",
         {"Backward using event_tags_pkey", "events_pkey"}},
        {"probe_groups",
         &sql_->probe_groups,
         "'{1,3}', '{2,3}', '{0,0}', '{9,9}', '{7,8,9}'",
         {"Backward using event_tags_pkey", "events_pkey"},
         true},
        {"read_all",
         &sql_->read_all,
         "0, 1000000, 100, 1000000",
         {"Scan using events_pkey", "Backward using events_pkey"}},
        {"read_all_backwards",
         &sql_->read_all_backwards,
         "0, 1000000, 100, 1000000",
         {"Backward using events_pkey"}},
        {"read_groups", &sql_->read_groups, groups, {"Scan using event_tags_pkey", "events_pkey"}, true},
        {"read_groups_backwards",
         &sql_->read_groups_backwards,
         groups,
         {"Backward using event_tags_pkey", "events_pkey"},
         true},
    };
    // As the storage does: prepared and planned on first use, on the empty tables.
    run(connection_, "BEGIN");
    run(connection_, settings_statement.sql);
    for (const Hot& hot : hot_) {
      run(connection_, std::string("PREPARE ") + hot.name + " AS " + hot.statement->sql);
      run(connection_, execute(hot));
    }
    run(connection_, "ROLLBACK");
  }

  [[nodiscard]] static std::string execute(const Hot& hot) {
    return std::string("EXECUTE ") + hot.name + (hot.arguments.empty() ? "" : "(" + hot.arguments + ")");
  }

  /// Hash 7 is at every event, hash 8 at every third, the others are rare.
  void fill(int from, int to) {
    const std::string range =
        "FROM generate_series(" + std::to_string(from) + ", " + std::to_string(to) + ") AS i";
    run(connection_,
        "INSERT INTO " + database_->table("events") +
            " (position, event_id, type, tags, data, occurred_at, stored_at, size) SELECT i, 'e', 'T', "
            "'[]', '{}', now(), now(), 4 " +
            range);
    run(connection_, "INSERT INTO " + database_->table("event_tags") + " SELECT 7, i " + range);
    run(connection_,
        "INSERT INTO " + database_->table("event_tags") + " SELECT 8, i " + range + " WHERE i % 3 = 0");
    run(connection_, "INSERT INTO " + database_->table("event_tags") + " SELECT 1000 + i / 5, i " + range);
  }
  void analyze() {
    for (const char* name : {"events", "event_tags"}) run(connection_, "ANALYZE " + database_->table(name));
  }

  void expect_good_plans(const std::string& when) {
    run(connection_, "BEGIN");
    run(connection_, settings_statement.sql);
    for (const Hot& hot : hot_) {
      PGresult* result = PQexec(connection_.get(), ("EXPLAIN " + execute(hot)).c_str());
      ASSERT_EQ(PQresultStatus(result), PGRES_TUPLES_OK) << PQerrorMessage(connection_.get());
      std::string plan;
      for (int row = 0; row < PQntuples(result); ++row) plan.append(PQgetvalue(result, row, 0)).append("\n");
      PQclear(result);
      const std::string where = std::string(hot.name) + ", " + when + ":\n" + plan;
      for (const std::string& part : hot.must_use)
        EXPECT_NE(plan.find(part), plan.npos) << part << " in " << where;
      for (const char* bad : {"Seq Scan", "Bitmap", "Hash Join", "Merge Join"}) {
        EXPECT_EQ(plan.find(bad), plan.npos) << where;
      }
      EXPECT_TRUE(hot.may_sort || plan.find("Sort ") == plan.npos) << where;
    }
    run(connection_, "ROLLBACK");
  }

  std::optional<StreamSql> sql_;
  NativeConnection connection_;
  std::vector<Hot> hot_;
};

TEST_F(StreamPlanTest, StaysOnItsIndexesFromEmptyToHalfAMillionEvents) {
  expect_good_plans("empty");
  fill(1, 10'000);
  expect_good_plans("10,000 events, not analysed");
  analyze();
  expect_good_plans("10,000 events, analysed");
  fill(10'001, 500'000);
  expect_good_plans("500,000 events, analysed at 10,000");
  analyze();
  expect_good_plans("500,000 events, analysed");
}

}  // namespace
}  // namespace postrider::postgres
