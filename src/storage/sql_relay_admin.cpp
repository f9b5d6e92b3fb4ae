// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_relay_admin.hpp"

#include <algorithm>
#include <utility>

#include "storage/sql_lease_store.hpp"
#include "storage/sql_progress_store.hpp"

namespace postrider {
namespace {

constexpr std::string_view events_table = "events";
/// By it the leader of a pair that pauses after a failure, and is ACTIVE all the time, sees that it may go
/// on. First in the list: MariaDB assigns from left to right.
constexpr std::string_view new_epoch_after_errors =
    ", epoch = epoch + case when error_count > 0 or last_error is not null then 1 else 0 end";
constexpr std::string_view failed_is_active =
    ", status = case when status = 'FAILED' then 'ACTIVE' else status end";

SqlQuery& where_selected(SqlQuery& query, const PairSelector& which) {
  query.sql(" where 1 = 1");
  return query.and_equals("topic", which.topic).and_equals("publisher", which.publisher);
}

void up_to(SqlQuery& query, std::optional<Position> until) {
  if (until.has_value()) query.sql(" and position <= ").bind(static_cast<std::int64_t>(*until));
}

std::optional<TimePoint> perhaps_time(const Rows::Cell& cell) {
  if (!cell.has_value()) return std::nullopt;
  return time_of(cell);
}

}  // namespace

SqlRelayAdminStore::SqlRelayAdminStore(SqlDialect dialect) : dialect_(std::move(dialect)) {}

std::vector<PairStatus> SqlRelayAdminStore::list(const PairSelector& which) {
  const std::string events = dialect_.table_prefix + std::string(events_table);
  SqlQuery query(dialect_);
  query.sql("select topic, publisher, status, last_position, error_count, last_error, leader_instance, ");
  query.micros("leader_since").sql(", ");
  query.micros("(select max(l.heartbeat_at) from " + dialect_.table_prefix + std::string(lease_table) +
               " as l where l.owner = p.leader_instance)");
  query.sql(", epoch, ").micros("last_published_at").sql(", ").micros("created_at").sql(", ");
  query.micros("updated_at").sql(", (select count(*) from ").table(dead_letter_table);
  query.sql(" as d where d.topic = p.topic and d.publisher = p.publisher), ");
  query.sql("(select max(e.position) from ").sql(events).sql(" as e), ");
  query.micros("(select e.stored_at from " + events +
               " as e where e.position > p.last_position order by e.position limit 1)");
  query.sql(", ");
  std::optional<TimePoint> own_now;
  if (dialect_.clock != nullptr) {
    own_now = dialect_.clock->now();
    query.sql("0");
  } else {
    query.micros(dialect_.now);
  }
  query.sql(" from ").table(progress_table).sql(" as p");
  const Rows rows = where_selected(query, which).sql(" order by topic, publisher").run_often();
  std::vector<PairStatus> list;
  list.reserve(rows.size());
  for (const auto& row : rows.rows) {
    PairStatus one;
    one.name = {text(row[0]), text(row[1])};
    one.state = pair_state(text(row[2]));
    one.position = Position{number(row[3])};
    one.error_count = static_cast<std::int32_t>(number(row[4]));
    one.last_error = text(row[5]);
    one.leader = text(row[6]);
    one.leader_since = perhaps_time(row[7]);
    one.leader_heartbeat = perhaps_time(row[8]);
    one.epoch = Epoch{number(row[9])};
    one.last_published_at = perhaps_time(row[10]);
    one.created_at = time_of(row[11]);
    one.updated_at = time_of(row[12]);
    one.dead_letters = number(row[13]);
    one.head = Position{number(row[14])};
    if (row[15].has_value()) {
      one.lag_events = std::max<std::int64_t>(0, number(row[14]) - number(row[3]));
      one.lag_time = std::max(Duration::zero(), own_now.value_or(time_of(row[16])) - time_of(row[15]));
    }
    list.push_back(std::move(one));
  }
  return list;
}

std::size_t SqlRelayAdminStore::change(const PairSelector& which, PairChange what) {
  SqlQuery query(dialect_);
  query.sql("update ").table(progress_table).sql(" set updated_at = ").now();
  switch (what) {
    case PairChange::pause:
      query.sql(", status = 'PAUSED'");
      break;
    case PairChange::resume:
      query.sql(new_epoch_after_errors).sql(", status = 'ACTIVE', error_count = 0, last_error = null");
      break;
    case PairChange::reset:
      query.sql(new_epoch_after_errors).sql(", error_count = 0, last_error = null");
      query.sql(failed_is_active);
      break;
  }
  return static_cast<std::size_t>(where_selected(query, which).run().affected);
}

std::size_t SqlRelayAdminStore::move_to(const PairSelector& which, Position position) {
  SqlQuery query(dialect_);
  query.sql("update ").table(progress_table).sql(" set updated_at = ").now();
  query.sql(", last_position = ").bind(static_cast<std::int64_t>(position));
  query.sql(", epoch = epoch + 1, error_count = 0, last_error = null");
  query.sql(failed_is_active);
  return static_cast<std::size_t>(where_selected(query, which).run().affected);
}

bool SqlRelayAdminStore::forget(const PairName& pair, std::string_view leader) {
  SqlQuery query(dialect_);
  query.sql("delete from ").table(progress_table).sql(" where topic = ").bind(pair.topic);
  query.sql(" and publisher = ").bind(pair.publisher);
  query.sql(" and coalesce(leader_instance, '') = ").bind(leader);
  return query.run().affected == 1;
}

std::vector<DeadLetter> SqlRelayAdminStore::dead_letters(const PairSelector& which, std::size_t limit,
                                                         Position after) {
  SqlQuery query(dialect_);
  query.sql("select topic, publisher, position, error, ").micros("failed_at").sql(" from ");
  where_selected(query.table(dead_letter_table), which).sql(" and position > ");
  query.bind(static_cast<std::int64_t>(after)).sql(" order by topic, publisher, position limit ");
  const Rows rows = query.bind_limit(limit).run();
  std::vector<DeadLetter> letters;
  letters.reserve(rows.size());
  for (const auto& row : rows.rows) {
    letters.push_back({.pair = {text(row[0]), text(row[1])},
                       .position = Position{number(row[2])},
                       .error = text(row[3]),
                       .failed_at = time_of(row[4])});
  }
  return letters;
}

std::size_t SqlRelayAdminStore::count_dead(const PairSelector& which, std::optional<Position> until) {
  SqlQuery query(dialect_);
  up_to(where_selected(query.sql("select count(*) from ").table(dead_letter_table), which), until);
  return static_cast<std::size_t>(number(query.run().rows.at(0).at(0)));
}

std::size_t SqlRelayAdminStore::discard(const PairSelector& which, std::optional<Position> until) {
  SqlQuery query(dialect_);
  up_to(where_selected(query.sql("delete from ").table(dead_letter_table), which), until);
  return static_cast<std::size_t>(query.run().affected);
}

}  // namespace postrider
