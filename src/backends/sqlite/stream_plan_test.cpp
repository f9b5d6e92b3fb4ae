// SPDX-License-Identifier: Apache-2.0
// Whatever an append or a page looks for is a range of one index.
#include "storage/stream_search.hpp"
#include "support/sqlite_plan.hpp"

namespace postrider::sqlite {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class SqliteStreamPlan : public SqlitePlan {
 protected:
  static std::string text(std::size_t hashes, bool backwards) {
    std::string sql = group_text(hashes, backwards, "cross join");
    for (std::size_t at = sql.find("{tags}"); at != std::string::npos; at = sql.find("{tags}")) {
      sql.replace(at, 6, "postrider_event_tags");
    }
    return sql;
  }
  void expect_plans() {
    for (const bool backwards : {false, true}) {
      for (std::size_t hashes = 1; hashes <= 4; ++hashes) {
        const std::string lines = plan(text(hashes, backwards));
        EXPECT_THAT(lines, StartsWith("SEARCH t0 USING PRIMARY KEY (hash=? AND position>? AND position<?)"));
        for (std::size_t i = 1; i < hashes; ++i) {
          EXPECT_THAT(lines, HasSubstr("SEARCH t" + std::to_string(i) +
                                       " USING PRIMARY KEY (hash=? AND position=?)"));
        }
      }
    }
    EXPECT_THAT(
        plan("select * from postrider_events where position > ? and position <= ? order by position limit ?",
             true),
        StartsWith("SEARCH postrider_events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"));
  }
};

TEST_F(SqliteStreamPlan, HoldOnTheEmptyTableAndOverManyAnalysedRows) {
  expect_plans();
  connection_->prepare("pragma synchronous = off").run();
  connection_
      ->prepare(
          "insert into postrider_event_tags (hash, position) with recursive n(i) as (select 1 union all "
          "select i + 1 "
          "from n where i < 50000) select 7, i from n union all select 1000 + i / 5, i from n")
      .run();
  connection_->prepare("analyze").run();
  expect_plans();
}

}  // namespace
}  // namespace postrider::sqlite
