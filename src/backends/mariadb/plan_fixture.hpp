// SPDX-License-Identifier: Apache-2.0
// The plan of a hot statement, as the server makes it for the prepared statement's text.
#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/mariadb/connection.hpp"
#include "backends/mariadb/mariadb_fixture.hpp"

namespace postrider::mariadb {

class MariadbPlanFixture : public MariadbTest {
 protected:
  /// One line of EXPLAIN.
  struct Line {
    std::string type;
    std::string key;
    std::string extra;
  };

  Link& link() {
    if (connection_ == nullptr) connection_ = Connection::open(settings_);
    return connection_->link();
  }

  std::vector<Line> explain(const std::string& sql, const std::vector<Value>& params) {
    std::vector<Line> lines;
    const Rows rows = link().run_any("EXPLAIN " + sql, params);
    for (const auto& row : rows.rows) {
      lines.push_back({row[3].value_or(""), row[5].value_or(""), row.back().value_or("")});
    }
    return lines;
  }

  void expect_plan(const std::string& sql, const std::vector<Value>& params, const std::string& index) {
    const std::vector<Line> lines = explain(sql, params);
    ASSERT_FALSE(lines.empty());
    for (const Line& line : lines) {
      if (line.type.empty()) continue;  // "Impossible WHERE", "optimized away", the union itself
      EXPECT_THAT(line.type, ::testing::AnyOf("range", "ref", "const", "eq_ref")) << sql;
      EXPECT_THAT(line.extra, ::testing::Not(::testing::HasSubstr("filesort"))) << sql;
      EXPECT_THAT(line.extra, ::testing::Not(::testing::HasSubstr("temporary"))) << sql;
    }
    EXPECT_EQ(lines.front().key, index) << sql;
  }

  /// How many rows `work` reads over a storage of one connection, by the server's own count.
  static std::int64_t rows_read(Storage& storage, const std::function<void()>& work) {
    const auto total = [&] {
      return storage.begin()
          .execute(
              "SELECT CAST(SUM(variable_value) AS SIGNED) FROM information_schema.session_status "
              "WHERE variable_name IN ('HANDLER_READ_KEY', 'HANDLER_READ_NEXT', 'HANDLER_READ_PREV', "
              "'HANDLER_READ_LAST', 'HANDLER_READ_RND_NEXT')")
          .integer(0, 0);
    };
    const std::int64_t before = total();
    work();
    const std::int64_t with_work = total() - before;
    const std::int64_t again = total();
    return with_work - (total() - again);
  }

 private:
  std::unique_ptr<Connection> connection_;
};

}  // namespace postrider::mariadb
