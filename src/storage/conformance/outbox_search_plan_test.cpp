// SPDX-License-Identifier: Apache-2.0
// Every list is walked along its index: whatever is looked for, no statement of a search reads the table from
// one end to the other, or sorts more than it was allowed to look at.
#include "storage/conformance/outbox_fixture.hpp"
#include "storage/sql_outbox_search.hpp"

namespace postrider::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class OutboxSearchPlan : public OutboxConformance {
 protected:
  /// Twenty thousand rows of all kinds.
  void fill() {
    const bool sqlite = storage().kind() == BackendKind::sqlite;
    const std::string digits =
        "(select 0 as d union all select 1 union all select 2 union all select 3 union all select 4 union "
        "all "
        "select 5 union all select 6 union all select 7 union all select 8 union all select 9)";
    const std::string number = "(a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d)";
    const std::string id = sqlite ? "'e' || " + number : "concat('e', " + number + ")";
    const std::string time = around(dialect().from_micros, "(1600000000000000 + " + number + ")");
    sql("insert into " + table() +
        " (event_id, event_type, payload, status, ordering_key, available_at, created_at, done_at) select " +
        id + ", 'T', '{}', " + number + " % 4, case when a.d % 3 = 0 then 'k' end, " + time + ", " + time +
        ", case when " + number + " % 2 = 1 then " + time + " end from " + digits + " as a cross join " +
        digits + " as b cross join " + digits + " as c cross join " + digits +
        " as e cross join (select 0 as d union all select 1) as f");
    if (storage().kind() == BackendKind::mariadb) {
      sql("analyze table " + table());
    } else {
      sql("analyze " + (sqlite ? std::string() : table()));
    }
  }
  /// As the storage's own, but explains instead of running.
  SqlDialect dialect() {
    const BackendKind kind = storage().kind();
    SqlDialect result{
        .kind = kind, .table_prefix = StoreConformance::table(""), .to_micros = micros_sql("{}")};
    result.from_micros =
        kind == BackendKind::postgres  ? "(timestamptz 'epoch' + {}::bigint * interval '1 microsecond')"
        : kind == BackendKind::mariadb ? "(timestamp'1970-01-01 00:00:00' + interval {} microsecond)"
                                       : "{}";
    result.hex = hex_sql("{}");
    result.run = [this, kind](std::string_view statement, std::span<const Value> params) {
      Transaction tx = storage().begin();
      const Rows rows =
          tx.run((kind == BackendKind::sqlite ? "explain query plan " : "explain ") + std::string(statement),
                 params);
      for (const auto& row : rows.rows) {
        for (const auto& cell : row) plan_ += cell.value_or("-") + " ";
        plan_ += "\n";
      }
      return Rows{};
    };
    return result;
  }
  std::string plan_of(const OutboxSearch& search) {
    plan_.clear();
    (void)SqlOutboxSearchStore(dialect()).search(search);
    return plan_;
  }
  void expect_good(const std::string& plan, const std::vector<std::string>& indexes) {
    for (const std::string& index : indexes) EXPECT_THAT(plan, HasSubstr(index));
    switch (storage().kind()) {
      case BackendKind::postgres:
        EXPECT_THAT(plan, Not(HasSubstr("Seq Scan")));
        break;
      case BackendKind::mariadb:
        EXPECT_THAT(plan, Not(HasSubstr(table() + " ALL"))) << "the whole table";
        break;
      case BackendKind::sqlite:
        EXPECT_THAT(plan, Not(HasSubstr("SCAN " + table() + " \n"))) << "the whole table";
        break;
    }
  }
  std::string plan_;
};
POSTRIDER_FOR_EACH_BACKEND(OutboxSearchPlan);

TEST_P(OutboxSearchPlan, EveryListIsWalkedAlongItsIndex) {
  fill();
  const bool mariadb = storage().kind() == BackendKind::mariadb;
  const TimePoint time{Duration{1'600'000'000'005'000}};
  const std::vector<std::string> due =
      mariadb ? std::vector<std::string>{"outbox_event_due"}
              : std::vector<std::string>{"outbox_event_due", "outbox_event_due_ordered"};
  const std::string all = storage().kind() == BackendKind::postgres ? "outbox_event_pkey"
                          : mariadb                                 ? "outbox_event_id"
                                                                    : "sqlite_autoindex";
  for (const bool later : {false, true}) {
    // One row in a hundred, as the standard bound has it of a million.
    OutboxSearch search{.type = "Rare", .limit = 100, .look_at = 200};
    if (later) search.after = OutboxMark{.at = time, .seq = 5000, .id = EventId("e5000")};
    search.list = OutboxList::all;
    expect_good(plan_of(search), {all});
    search.list = OutboxList::pending;
    expect_good(plan_of(search), due);
    search.from = time;
    search.list = OutboxList::done;
    expect_good(plan_of(search), {mariadb ? "outbox_event_finished" : "outbox_event_done"});
    search.list = OutboxList::dead;
    expect_good(plan_of(search), {mariadb ? "outbox_event_finished" : "outbox_event_dead"});
  }
}

}  // namespace
}  // namespace postrider::conformance
