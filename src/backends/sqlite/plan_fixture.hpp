// SPDX-License-Identifier: Apache-2.0
// For tests of statements' plans: through the index that was made for it, without sorting, never through a
// whole table.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "backends/sqlite/storage.hpp"
#include "support/temp_dir.hpp"

namespace postrider::sqlite {

class SqlitePlan : public ::testing::Test {
 protected:
  SqlitePlan() {
    SqliteStorage("sqlite:" + file_, {}).migrate({});
    connection_.emplace(ConnectionOptions{.name = file_, .path = file_});
  }

  /// All lines of the plan; fails for what no statement of ours may do.
  std::string plan(std::string_view sql, bool may_sort = false) {
    std::string lines;
    Statement statement = connection_->prepare("explain query plan " + std::string(sql));
    while (statement.step()) {
      const std::string line(statement.text(3));
      lines += line + "\n";
      if (line.starts_with("SCAN postrider_")) {
        EXPECT_THAT(line, ::testing::HasSubstr("USING")) << sql;
      }
    }
    if (!may_sort) {
      EXPECT_THAT(lines, ::testing::Not(::testing::HasSubstr("TEMP B-TREE"))) << sql;
    }
    return lines;
  }

  test::TempDir dir_;
  const std::string file_ = dir_.file("plan.db");
  std::optional<Connection> connection_;
};

}  // namespace postrider::sqlite
