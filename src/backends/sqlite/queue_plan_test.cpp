// SPDX-License-Identifier: Apache-2.0
// The plans of the queue's statements.
#include "backends/sqlite/queue_sql.hpp"
#include "support/sqlite_plan.hpp"

namespace postrider::sqlite {
namespace {

using ::testing::HasSubstr;

class SqliteQueuePlan : public SqlitePlan {
 protected:
  void expect_plans() {
    EXPECT_THAT(plan(sql_.due), HasSubstr("postrider_event_queue_due (priority=? AND available_at<?)"));
    for (const std::string& sql : {sql_.first_key, sql_.next_key}) {
      EXPECT_THAT(plan(sql), HasSubstr("postrider_event_queue_key (ordering_key>?)")) << sql;
    }
    EXPECT_THAT(plan(sql_.key_rows), HasSubstr("postrider_event_queue_key (ordering_key=? AND id>?)"));
    EXPECT_THAT(plan(sql_.duplicate), HasSubstr("postrider_event_queue_dedupe (dedupe_key=?)"));
    for (const std::string& sql :
         {sql_.take, sql_.quarantine, sql_.renew, sql_.to_log, sql_.remove, sql_.to_log_block,
          sql_.remove_block, sql_.retry, sql_.release, sql_.find, sql_.held}) {
      EXPECT_THAT(plan(sql), HasSubstr("SEARCH postrider_event_queue USING INTEGER PRIMARY KEY (rowid=?)"))
          << sql;
    }
    EXPECT_THAT(plan(sql_.find_logged), HasSubstr("SEARCH postrider_event_log USING INDEX"));
    EXPECT_THAT(plan(sql_.states), HasSubstr("SEARCH postrider_event_handler_state USING INDEX"));
    EXPECT_THAT(plan(sql_.done), HasSubstr("SEARCH postrider_event_handler_state USING INDEX"));
    EXPECT_THAT(plan(sql_.delete_state), HasSubstr("(id=? AND handler=?)"));
    const std::string left = plan(sql_.left_states);
    EXPECT_THAT(left, HasSubstr("SEARCH q USING INTEGER PRIMARY KEY (rowid=?)"));
    EXPECT_THAT(left, HasSubstr("COVERING INDEX")) << "states that are long are not read";
  }

  /// Rows up to this number: some with keys, some in quarantine, as many in the log, a few states. Then
  /// statistics, as a user's `PRAGMA optimize` would take them.
  void fill_to(int rows) {
    const std::string numbers =
        "with recursive n(i) as (select coalesce((select max(id) from postrider_event_queue), 0) + 1 "
        "union all select i + 1 from n where i < " +
        std::to_string(rows) + ") ";
    connection_
        ->prepare(
            "insert into postrider_event_log (id, token, event_id, event_type, payload, status, priority, "
            "attempts, crashes, created_at, occurred_at, finalized_at) " +
            numbers + "select 100000000 + i, 1, 'e' || i, 'T', '{}', 2, 0, 1, 0, i, i, i from n")
        .run();
    connection_
        ->prepare("insert into postrider_event_handler_state (id, handler, result, updated_at) " + numbers +
                  "select i, 'h', 0, i from n where i % 100 = 0")
        .run();
    connection_
        ->prepare(
            "insert into postrider_event_queue (event_id, event_type, payload, priority, ordering_key, "
            "dedupe_key, quarantined_at) " +
            numbers +
            "select 'e' || i, 'T', '{}', i % 10, case when i % 20 = 0 then 'k' || (i % 1000) end, "
            "case when i % 3 = 0 then 'd' || i end, case when i % 100 = 1 then i end from n")
        .run();
    connection_->prepare("analyze").run();
  }

  const QueueSql sql_{"postrider"};
};

TEST_F(SqliteQueuePlan, HoldOnTheEmptyTable) {
  expect_plans();
}

TEST_F(SqliteQueuePlan, HoldAtTenThousandAndAtAMillionAnalysedRows) {
  connection_->prepare("pragma synchronous = off").run();
  for (const int rows : {10'000, 1'000'000}) {
    fill_to(rows);
    SCOPED_TRACE(rows);
    expect_plans();
  }
}

}  // namespace
}  // namespace postrider::sqlite
