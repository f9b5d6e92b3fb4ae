// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_entry_purge.hpp"

#include <utility>

#include "storage/sql_tables.hpp"

namespace postrider {
namespace {

constexpr std::string_view time_index = "event_log_entries_time";

}  // namespace

SqlEntryPurge::SqlEntryPurge(SqlDialect dialect) : dialect_(std::move(dialect)) {}

std::int64_t SqlEntryPurge::count_before(TimePoint time) const {
  SqlQuery sql(dialect_);
  sql.sql("select count(*) from ").table(entries_table);
  if (dialect_.kind == BackendKind::sqlite) sql.sql(" indexed by ").table(time_index);
  if (dialect_.kind == BackendKind::mariadb) sql.sql(" force index (").sql(time_index).sql(")");
  sql.sql(" where occurred_at < ").bind_time(time);
  return number(sql.run().rows.at(0).at(0));
}

std::int64_t SqlEntryPurge::purge_before(TimePoint time, std::size_t limit) const {
  SqlQuery sql(dialect_);
  sql.sql("delete from ").table(entries_table).sql(" where ");
  switch (dialect_.kind) {
    case BackendKind::sqlite:
      sql.sql("id in (select id from ").table(entries_table).sql(" indexed by ").table(time_index);
      sql.sql(" where ");
      break;
    case BackendKind::postgres:
      // An array, not a join: a planner without statistics might read the whole table for that.
      sql.sql("id = any(array(select id from ").table(entries_table).sql(" where ");
      break;
    case BackendKind::mariadb:
      break;
  }
  sql.sql("occurred_at < ").bind_time(time).sql(" order by occurred_at, id limit ").bind_limit(limit);
  // Two nodes may do it at the same time; each takes what the other one does not.
  if (dialect_.kind == BackendKind::postgres) sql.sql(" for update skip locked))");
  if (dialect_.kind == BackendKind::sqlite) sql.sql(")");
  return sql.run().affected;
}

}  // namespace postrider
