// SPDX-License-Identifier: Apache-2.0
// A list is walked along its index, over narrow columns and for a bounded number of rows; only what matches
// is then read whole, by id. So a payload is never sorted, and a filter that matches nothing costs no more
// than one that matches all.
#include "storage/sql_outbox_search.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "storage/sql_outbox_filter.hpp"
#include "storage/sql_outbox_rows.hpp"
#include "storage/sql_tables.hpp"

namespace postrider {
namespace {

/// How a list is ordered.
struct Order {
  std::string_view time;  ///< empty: by the tie breaker alone
  std::string_view tie;
  bool down;
};

Order order_of(OutboxList list) {
  switch (list) {
    case OutboxList::pending:
      return {"due_at", "seq", false};
    case OutboxList::done:
    case OutboxList::dead:
      return {"done_at", "event_id", true};
    case OutboxList::all:
      break;
  }
  return {{}, "event_id", true};
}

class Walk {
 public:
  Walk(SqlQuery& query, const SqlDialect& dialect, const OutboxSearch& search)
      : query_(query), dialect_(dialect), search_(search), order_(order_of(search.list)) {}

  /// The rows that a page looks at, as "(…) as walk", in no order.
  void from() {
    if (search_.list != OutboxList::pending) {
      query_.sql(" from (");
      lane(own_condition());
      query_.sql(") as walk");
      return;
    }
    // Rows with and without a key have indexes of their own (on MariaDB: the halves of one).
    query_.sql(" from (select * from (");
    lane(where_pending(dialect_.kind, false));
    query_.sql(") as free_rows union all select * from (");
    lane(where_pending(dialect_.kind, true));
    query_.sql(") as keyed_rows) as walk");
  }
  void filter() {
    query_.sql(" where 1 = 1");
    if (search_.status) query_.sql(" and status = ").bind(static_cast<std::int64_t>(*search_.status));
    query_.and_equals("event_type", search_.type).and_equals("aggregate_type", search_.aggregate_type);
    query_.and_equals("aggregate_id", search_.aggregate_id).and_equals("tenant_id", search_.tenant_id);
    if (search_.error_contains) query_.sql(" and ").contains("last_error", *search_.error_contains);
    if (search_.list == OutboxList::all) between("created_at");
    if (search_.rows) and_pending(query_, *search_.rows);
  }
  void in_order() {
    const std::string_view way = order_.down ? " desc" : "";
    query_.sql(" order by ");
    if (!order_.time.empty()) query_.sql(order_.time).sql(way).sql(", ");
    query_.sql(order_.tie).sql(way);
  }

 private:
  [[nodiscard]] std::string_view own_condition() const {
    switch (search_.list) {
      case OutboxList::done:
        return " where status = 1";
      case OutboxList::dead:
        return " where status = 3";
      default:
        return " where 1 = 1";
    }
  }
  void lane(std::string_view condition) {
    query_.sql(
        "select event_id, seq, status, event_type, aggregate_type, aggregate_id, tenant_id, created_at, ");
    query_.sql("due_at, done_at");
    if (search_.rows) query_.sql(", available_at, attempts, owner");
    if (search_.error_contains || (search_.rows && search_.rows->filter.error_contains)) {
      query_.sql(", last_error");
    } else if (search_.rows) {
      query_.sql(", substr(last_error, 1, 1) as last_error");  // whether there is one
    }
    query_.sql(" from ").table(outbox_table);
    if (dialect_.kind == BackendKind::mariadb && search_.list == OutboxList::all) {
      query_.sql(" force index (outbox_event_id)");  // left to itself it sorts the whole table
    }
    query_.sql(condition);
    if (!order_.time.empty()) between(order_.time);
    if (search_.after) behind(*search_.after);
    in_order();
    query_.sql(" limit ").bind_limit(search_.look_at);
  }
  void between(std::string_view column) {
    if (search_.from) query_.sql(" and ").sql(column).sql(" >= ").bind_time(*search_.from);
    if (search_.until) query_.sql(" and ").sql(column).sql(" < ").bind_time(*search_.until);
  }
  /// Written out: MariaDB finds no range in a comparison of pairs.
  void behind(const OutboxMark& mark) {
    const std::string_view beyond = order_.down ? " < " : " > ";
    const auto tie = [&] {
      query_.sql(order_.tie).sql(beyond);
      order_.tie == "seq" ? query_.bind(mark.seq) : query_.bind(mark.id.view());
    };
    query_.sql(" and ");
    if (order_.time.empty()) {
      tie();
      return;
    }
    query_.sql(order_.time).sql(order_.down ? " <= " : " >= ").bind_time(mark.at);
    query_.sql(" and (").sql(order_.time).sql(beyond).bind_time(mark.at).sql(" or ");
    tie();
    query_.sql(")");
  }

  SqlQuery& query_;
  const SqlDialect& dialect_;
  const OutboxSearch& search_;
  const Order order_;
};

void select_marks(SqlQuery& query, const OutboxSearch& search) {
  const std::string_view time = order_of(search.list).time;
  query.sql("select event_id, seq, ");
  time.empty() ? query.sql("0") : query.micros(time);
}

OutboxMark mark_of(const std::vector<Rows::Cell>& row) {
  return {.at = time_of(row[2]), .seq = number(row[1]), .id = EventId(text(row[0]))};
}

}  // namespace

OutboxPage SqlOutboxSearchStore::search(const OutboxSearch& search) {
  OutboxPage page;
  std::vector<OutboxMark> found;
  {
    SqlQuery query(dialect_);
    Walk walk(query, dialect_, search);
    select_marks(query, search);
    walk.from();
    walk.filter();
    walk.in_order();
    query.sql(" limit ").bind_limit(search.limit);
    for (const auto& row : query.run().rows) found.push_back(mark_of(row));
  }
  if (!found.empty() && found.size() == search.limit) {
    page.next = found.back();
  } else {
    // Fewer than were asked for: the list is at its end, or so many rows were looked at.
    SqlQuery query(dialect_);
    Walk walk(query, dialect_, search);
    select_marks(query, search);
    walk.from();
    walk.in_order();
    query.sql(" limit 1 offset ").bind_limit(search.look_at - 1);
    const Rows last = query.run();
    if (!last.empty()) page.next = mark_of(last.rows.front());
  }
  if (found.empty()) return page;

  SqlQuery query(dialect_);
  query.sql("select ")
      .sql(outbox_columns(dialect_, OutboxContent::left_out))
      .sql(" from ")
      .table(outbox_table)
      .sql(" where 1 = 1");
  query.and_in("event_id", found, [](const OutboxMark& mark) { return mark.id.view(); });
  std::vector<OutboxRecord> records = outbox_records(query.run());
  std::unordered_map<EventId, std::size_t> places;
  for (std::size_t i = 0; i < found.size(); ++i) places.emplace(found[i].id, i);
  std::sort(records.begin(), records.end(),
            [&](const OutboxRecord& a, const OutboxRecord& b) { return places.at(a.id) < places.at(b.id); });
  page.records = std::move(records);
  return page;
}

std::vector<EventId> SqlOutboxSearchStore::known(std::span<const EventId> ids) {
  const std::vector<EventId> wanted(ids.begin(), ids.end());
  SqlQuery query(dialect_);
  query.sql("select event_id from ").table(outbox_table).sql(" where 1 = 1");
  query.and_in("event_id", wanted, [](const EventId& id) { return id.view(); });
  std::vector<EventId> found;
  for (const auto& row : query.run().rows) found.emplace_back(text(row[0]));
  return found;
}

std::vector<DeadError> SqlOutboxSearchStore::dead_errors(std::size_t limit, std::size_t chars) {
  SqlQuery query(dialect_);
  query.sql("select event_id, event_type, ").micros("done_at").sql(", substr(last_error, 1, ");
  query.sql(std::to_string(chars)).sql(") from ").table(outbox_table).sql(" where status = 3");
  const Rows rows = query.sql(" order by done_at desc, event_id desc limit ").bind_limit(limit).run();
  std::vector<DeadError> errors;
  errors.reserve(rows.size());
  for (const auto& row : rows.rows) {
    errors.push_back({.id = EventId(text(row[0])),
                      .type = text(row[1]),
                      .died_at = time_of(row[2]),
                      .error = text(row[3])});
  }
  return errors;
}

}  // namespace postrider
