// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_lease_store.hpp"

#include <utility>

namespace postrider {
namespace {

SqlQuery& where_mine(SqlQuery& query, const LeaseFence& fence) {
  query.sql(" where name = ").bind(fence.name).sql(" and owner = ").bind(fence.owner);
  return query.sql(" and epoch = ").bind(static_cast<std::int64_t>(fence.epoch));
}

}  // namespace

SqlLeaseStore::SqlLeaseStore(SqlDialect dialect) : dialect_(std::move(dialect)) {}

std::optional<Epoch> SqlLeaseStore::acquire(std::string_view name, std::string_view owner, Duration lease,
                                            bool locked, std::span<const std::string> dead) {
  Transaction tx = dialect_.begin();
  SqlQuery query(dialect_);
  query.sql("update ")
      .table(lease_table)
      .sql(" set owner = ")
      .bind(owner)
      .sql(", epoch = epoch + 1, since = ");
  query.now().sql(", heartbeat_at = ").now().sql(", lease_until = ").now_plus(lease);
  query.sql(", locked = (").bind(locked).sql(" = 1) where name = ").bind(name);
  query.sql(" and (owner is null or lease_until is null or lease_until <= ").now();
  for (const std::string& one : dead) query.sql(" or owner = ").bind(one);
  if (query.sql(")").run(tx).affected == 0) {
    SqlQuery insert(dialect_);
    insert.sql(dialect_.kind == BackendKind::mariadb ? "insert ignore into " : "insert into ");
    insert.table(lease_table).sql(" (name, owner, epoch, since, heartbeat_at, lease_until, locked) values (");
    insert.bind(name).sql(", ").bind(owner).sql(", 1, ").now().sql(", ").now().sql(", ").now_plus(lease);
    insert.sql(", (").bind(locked).sql(" = 1))");
    if (dialect_.kind != BackendKind::mariadb) insert.sql(" on conflict do nothing");
    if (insert.run(tx).affected == 0) return std::nullopt;
  }
  SqlQuery look(dialect_);
  look.sql("select epoch from ").table(lease_table).sql(" where name = ").bind(name);
  const Epoch epoch{look.run(tx).integer(0, 0)};
  tx.commit();
  return epoch;
}

bool SqlLeaseStore::renew(const LeaseFence& fence, Duration lease, bool locked) {
  SqlQuery query(dialect_);
  query.sql("update ").table(lease_table).sql(" set heartbeat_at = ").now().sql(", lease_until = ");
  query.now_plus(lease).sql(", locked = (").bind(locked).sql(" = 1)");
  return where_mine(query, fence).run().affected > 0;
}

bool SqlLeaseStore::release(const LeaseFence& fence) {
  SqlQuery query(dialect_);
  query.sql("update ").table(lease_table).sql(" set owner = null, lease_until = null, heartbeat_at = ").now();
  return where_mine(query, fence).run().affected > 0;
}

void SqlLeaseStore::announce(std::string_view name, Duration lease) {
  SqlQuery query(dialect_);
  query.sql("update ").table(lease_table).sql(" set since = case when lease_until > ").now();
  query.sql(" then since else ").now().sql(" end, heartbeat_at = ").now().sql(", lease_until = ");
  query.now_plus(lease).sql(" where name = ").bind(name).sql(" and owner is null");
  if (query.run().affected > 0) return;
  SqlQuery insert(dialect_);
  insert.sql(dialect_.kind == BackendKind::mariadb ? "insert ignore into " : "insert into ");
  insert.table(lease_table).sql(" (name, epoch, since, heartbeat_at, lease_until) values (").bind(name);
  insert.sql(", 0, ").now().sql(", ").now().sql(", ").now_plus(lease).sql(")");
  if (dialect_.kind != BackendKind::mariadb) insert.sql(" on conflict do nothing");
  insert.run();
}

void SqlLeaseStore::withdraw(std::string_view name) {
  SqlQuery query(dialect_);
  query.sql("delete from ").table(lease_table).sql(" where name = ").bind(name).sql(" and owner is null");
  query.run();
}

std::vector<LeaseRow> SqlLeaseStore::list() {
  SqlQuery query(dialect_);
  query.sql("select name, owner, epoch, ").micros("since").sql(", ").micros("heartbeat_at");
  query.sql(", case when lease_until > ").now().sql(" then 1 else 0 end, locked from ").table(lease_table);
  const Rows rows = query.sql(" order by name").run();
  std::vector<LeaseRow> list;
  list.reserve(rows.size());
  for (const auto& row : rows.rows) {
    list.push_back({.name = text(row[0]),
                    .owner = text(row[1]),
                    .epoch = Epoch{number(row[2])},
                    .since = time_of(row[3]),
                    .heartbeat = time_of(row[4]),
                    .held = flag(row[5]) && row[1].has_value(),
                    .waits = flag(row[5]) && !row[1].has_value(),
                    .locked = flag(row[6])});
  }
  return list;
}

std::size_t SqlLeaseStore::forget(std::string_view prefix, Duration over_for) {
  SqlQuery query(dialect_);
  query.sql("delete from ").table(lease_table).sql(" where substr(name, 1, ").bind(prefix.size());
  query.sql(") = ").bind(prefix).sql(" and heartbeat_at <= ").now_minus(over_for);
  query.sql(" and (lease_until is null or lease_until <= ").now_minus(over_for).sql(")");
  return static_cast<std::size_t>(query.run().affected);
}

}  // namespace postrider
