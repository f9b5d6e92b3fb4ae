// SPDX-License-Identifier: Apache-2.0
// For the tests of plans: statements are prepared while their tables are empty, under the settings that our
// own transactions use, and must reach their rows through the intended indexes whatever the tables have grown
// to and whether or not they were analysed.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "backends/postgres/connection.hpp"
#include "support/postgres.hpp"

namespace postrider::postgres {

struct Hot {
  const char* name;
  const Statement* statement;
  std::string arguments;
  std::vector<std::string> must_use;
  bool may_sort = false;  ///< what was limited before
};

class PlanTest : public test::PostgresTest {
 protected:
  /// `tables`: those that the statements are about.
  void prepare(std::vector<std::string> tables, std::vector<Hot> hot) {
    tables_ = std::move(tables);
    hot_ = std::move(hot);
    // Otherwise autovacuum may analyse a table in the middle, and the test would prove less than it says.
    for (const std::string& name : tables_) {
      run(connection_, "ALTER TABLE " + database_->table(name) + " SET (autovacuum_enabled = off)");
    }
    run(connection_, "SET client_min_messages = warning");
    // As the storage does: prepared and planned on first use.
    run(connection_, "BEGIN");
    run(connection_, settings_statement.sql);
    for (const Hot& one : hot_) {
      run(connection_, std::string("PREPARE ") + one.name + " AS " + one.statement->sql);
      run(connection_, execute(one));
    }
    run(connection_, "ROLLBACK");
  }

  void analyze() {
    for (const std::string& name : tables_) run(connection_, "ANALYZE " + database_->table(name));
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
      for (const char* bad : {"Seq Scan", "Bitmap", "Hash Join", "Merge Join"})
        EXPECT_EQ(plan.find(bad), plan.npos) << where;
      // A sort says "Sort  (cost" before its key; the key alone is that of two ordered scans being merged.
      EXPECT_TRUE(hot.may_sort || plan.find("Sort ") == plan.find("Sort Key: \"*SELECT* 1\"")) << where;
    }
    run(connection_, "ROLLBACK");
  }

  test::NativeConnection connection_;

 private:
  [[nodiscard]] static std::string execute(const Hot& hot) {
    return std::string("EXECUTE ") + hot.name + (hot.arguments.empty() ? "" : "(" + hot.arguments + ")");
  }

  std::vector<std::string> tables_;
  std::vector<Hot> hot_;
};

}  // namespace postrider::postgres
