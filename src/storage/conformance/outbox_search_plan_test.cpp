// SPDX-License-Identifier: Apache-2.0
// Every list is walked along its index: whatever is looked for, no statement of a search reads the table from
// one end to the other, or sorts more than it was allowed to look at. Nor does what changes pending rows.
#include <functional>
#include <memory>
#include <utility>

#include "storage/conformance/outbox_fixture.hpp"
#include "storage/sql_outbox_pending.hpp"
#include "storage/sql_outbox_search.hpp"

namespace postrider::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Tells of each statement before it is run.
class WatchedSession final : public detail::TxSession {
 public:
  using Watch = std::function<void(Transaction&, std::string_view, std::span<const Value>)>;
  WatchedSession(Transaction real, Watch watch) : real_(std::move(real)), watch_(std::move(watch)) {}
  [[nodiscard]] BackendKind kind() const noexcept override { return real_.kind(); }
  [[nodiscard]] bool active() const noexcept override { return real_.active(); }
  Rows execute(std::string_view sql, std::span<const Value> params) override {
    watch_(real_, sql, params);
    return real_.run(sql, params);
  }
  void commit() override { real_.commit(); }
  void rollback() noexcept override { real_.rollback(); }

 private:
  Transaction real_;
  Watch watch_;
};

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
    const std::string hundred = "(c.d + 10 * e.d + 100 * f.d)";
    const std::string key = sqlite ? "'k' || " + hundred : "concat('k', " + hundred + ")";
    const std::string time = around(dialect().from_micros, "(1600000000000000 + " + number + ")");
    sql("insert into " + table() +
        " (event_id, event_type, payload, status, ordering_key, available_at, created_at, done_at) select " +
        id + ", 'T', '{}', " + number + " % 4, case when a.d % 3 = 0 then " + key + " end, " + time + ", " +
        time + ", case when " + number + " % 2 = 1 then " + time + " end from " + digits +
        " as a cross join " + digits + " as b cross join " + digits + " as c cross join " + digits +
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
    result.clock = &clock_;
    result.run = [this](std::string_view statement, std::span<const Value> params) {
      Transaction tx = storage().begin();
      explain(tx, statement, params);
      return Rows{};
    };
    result.begin = [this] {
      return Transaction(std::make_unique<WatchedSession>(
          storage().begin(),
          [this](Transaction& tx, std::string_view statement, std::span<const Value> params) {
            plan_ += "-- " + std::string(statement) + "\n";
            explain(tx, statement, params);
          }));
    };
    return result;
  }
  void explain(Transaction& tx, std::string_view statement, std::span<const Value> params) {
    const std::string verb = tx.kind() == BackendKind::sqlite ? "explain query plan " : "explain ";
    const Rows rows = tx.run(verb + std::string(statement), params);
    for (const auto& row : rows.rows) {
      for (const auto& cell : row) plan_ += cell.value_or("-") + " ";
      plan_ += "\n";
    }
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
    search.rows = PendingRows{.filter = {.types = {"Rare"}, .stuck_for = 5min},
                              .action = OutboxAction::requeue,
                              .begun = clock_.now()};
    expect_good(plan_of(search), due);
    search.rows.reset();
    search.from = time;
    search.list = OutboxList::done;
    expect_good(plan_of(search), {mariadb ? "outbox_event_finished" : "outbox_event_done"});
    search.list = OutboxList::dead;
    expect_good(plan_of(search), {mariadb ? "outbox_event_finished" : "outbox_event_dead"});
  }
}

TEST_P(OutboxSearchPlan, PendingRowsAreCountedAndChangedByTheirIndexes) {
  fill();
  SqlOutboxPendingStore store(dialect());
  (void)store.count({.filter = {.types = {"Rare"}}, .action = OutboxAction::requeue});
  expect_good(plan_, {"outbox_event_due"});

  // Few rows, as there are few in a batch compared with a large table; some with a key, of which a node has
  // all.
  sql("update " + table() + " set owner = 'n', lease_until = " +
      around(dialect().from_micros, std::to_string((clock_.now() + 1h).time_since_epoch().count())) +
      " where ordering_key = 'k100' and status in (0, 2)");
  std::vector<EventId> ids;
  for (int i = 10'000; i < 10'080; i += 2) ids.emplace_back("e" + std::to_string(i));
  const std::string by_id = storage().kind() == BackendKind::postgres  ? "outbox_event_pkey"
                            : storage().kind() == BackendKind::mariadb ? "outbox_event_id"
                                                                       : "(event_id=?)";
  for (const OutboxAction action : {OutboxAction::requeue, OutboxAction::cancel}) {
    plan_.clear();
    EXPECT_GT(store.apply({.action = action}, ids, "x"), 0);
    expect_good(plan_, {by_id, "outbox_event_key"});
  }
}

}  // namespace
}  // namespace postrider::conformance
