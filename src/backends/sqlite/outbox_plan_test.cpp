// SPDX-License-Identifier: Apache-2.0
// The plans of the outbox's statements.
#include "backends/sqlite/outbox_sql.hpp"
#include "support/sqlite_plan.hpp"

namespace postrider::sqlite {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class SqliteHotPlan : public SqlitePlan {
 protected:
  void expect_hot_plans() {
    EXPECT_THAT(plan(sql_.due_free), HasSubstr("postrider_outbox_event_due (due_at<?)"));
    EXPECT_THAT(plan(sql_.due_ordered), HasSubstr("postrider_outbox_event_due_ordered (due_at<?)"));
    EXPECT_THAT(plan(sql_.run_of_key), HasSubstr("postrider_outbox_event_key (ordering_key=?)"));
    EXPECT_THAT(plan(sql_.predecessors), HasSubstr("postrider_outbox_event_key (ordering_key=? AND seq<?)"));
    for (const std::string& sql : {sql_.take, sql_.defer}) {
      EXPECT_THAT(plan(sql), HasSubstr("USING INTEGER PRIMARY KEY (rowid=?)")) << sql;
    }
    for (const std::string& sql : {sql_.renew, sql_.done, sql_.retry, sql_.later, sql_.dead, sql_.release,
                                   sql_.log_attempt, sql_.trim_attempts}) {
      EXPECT_THAT(plan(sql), HasSubstr("(event_id=?)")) << sql;
    }
  }

  /// Rows up to this number: nine in ten are finished, one in twenty is ordered. Then statistics, as a user's
  /// `PRAGMA optimize` would take them.
  void fill_to(int rows) {
    connection_
        ->prepare(
            "insert into postrider_outbox_event (event_id, event_type, payload, status, done_at, "
            "ordering_key) "
            "with recursive n(i) as (select coalesce((select max(seq) from postrider_outbox_event), 0) + 1 "
            "union all select i + 1 from n where i < " +
            std::to_string(rows) +
            ") select 'e' || i, 'T', '{}', i % 10 <> 0, case when i % 10 <> 0 then i end, "
            "case when i % 20 = 0 then 'k' || (i % 1000) end from n")
        .run();
    connection_->prepare("analyze").run();
  }

  const OutboxSql sql_{"postrider"};
};

TEST_F(SqliteHotPlan, HoldOnTheEmptyTable) {
  expect_hot_plans();
}

TEST_F(SqliteHotPlan, HoldAtTenThousandAndAtAMillionAnalysedRows) {
  connection_->prepare("pragma synchronous = off").run();
  for (const int rows : {10'000, 1'000'000}) {
    fill_to(rows);
    SCOPED_TRACE(rows);
    expect_hot_plans();
  }
}

class SqliteAdminPlan : public SqlitePlan {
 protected:
  /// The verbs' statements are explained instead of run; each that asks for columns gets one row of zeros.
  SqlOutboxAdminStore verbs(bool may_sort = false) {
    return SqlOutboxAdminStore({.kind = BackendKind::sqlite,
                                .table_prefix = "postrider_",
                                .run =
                                    [this, may_sort](std::string_view sql, std::span<const Value>) {
                                      last_ = plan(sql, may_sort);
                                      all_ += last_;
                                      Rows rows;
                                      const int columns = connection_->prepare(sql).columns();
                                      if (columns > 0) rows.rows.emplace_back(columns, "0");
                                      return rows;
                                    },
                                .begin = {},
                                .from_micros = "{}",
                                .to_micros = "{}",
                                .now = {},
                                .clock = &clock_,
                                .hex = "lower(hex({}))"});
  }
  ManualClock clock_;
  std::string last_;
  std::string all_;
};

TEST_F(SqliteAdminPlan, CountsReachTheirRowsByIndexes) {
  (void)verbs().counts();
  EXPECT_THAT(all_, HasSubstr("postrider_outbox_event_due"));
  EXPECT_THAT(all_, HasSubstr("postrider_outbox_event_due_ordered"));
  EXPECT_THAT(all_, HasSubstr("postrider_outbox_event_done"));
  EXPECT_THAT(all_, HasSubstr("postrider_outbox_event_dead"));
}

TEST_F(SqliteAdminPlan, DeadLettersComeInTheOrderOfTheirIndex) {
  const OutboxRecord after{.id = EventId("x"), .done_at = TimePoint{}};
  (void)verbs().list_dead({}, 10, nullptr);
  EXPECT_THAT(last_, HasSubstr("postrider_outbox_event_dead"));
  (void)verbs().list_dead({.type = "T", .error_contains = "x"}, 10, &after);
  EXPECT_THAT(last_, HasSubstr("postrider_outbox_event_dead (done_at>?)"));
  (void)verbs().count_dead({.tenant_id = "t"});
  EXPECT_THAT(last_, HasSubstr("postrider_outbox_event_dead"));
  verbs().revive_dead({}, 10);
  EXPECT_THAT(last_, HasSubstr("postrider_outbox_event_dead"));
  (void)verbs(true).list_dead({.ids = {EventId("a")}}, 10, nullptr);  // a few by id: sorted
  EXPECT_THAT(last_, HasSubstr("(event_id=?)"));
}

TEST_F(SqliteAdminPlan, PurgeReadsOnlyWhatItDeletes) {
  verbs().purge_batch(EventStatus::done, 1h, 10);
  EXPECT_THAT(last_, HasSubstr("postrider_outbox_event_done (done_at<?)"));
  EXPECT_THAT(last_, HasSubstr("(event_id=?)"));
  verbs().purge_batch(EventStatus::dead, 1h, 10);
  EXPECT_THAT(last_, HasSubstr("postrider_outbox_event_dead (done_at<?)"));
  (void)verbs().count_purgeable(EventStatus::done, 1h);
  EXPECT_THAT(last_, HasSubstr("postrider_outbox_event_done (done_at<?)"));
}

TEST_F(SqliteAdminPlan, SingleRowsAreFoundById) {
  (void)verbs().find(EventId("x"));
  EXPECT_THAT(last_, HasSubstr("(event_id=?)"));
  (void)verbs().edit_dead(EventId("x"), PayloadKind::json, "1", std::nullopt);
  EXPECT_THAT(last_, HasSubstr("(event_id=?)"));
}

}  // namespace
}  // namespace postrider::sqlite
