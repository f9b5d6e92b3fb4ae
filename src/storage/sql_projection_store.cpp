// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_projection_store.hpp"

#include <algorithm>
#include <utility>

#include "storage/contention.hpp"
#include "storage/row_decoder.hpp"
#include "storage/sql_tables.hpp"

namespace postrider {
namespace {

constexpr std::string_view projections = "event_projection";
constexpr std::string_view skipped_table = "event_projection_skipped";

SqlQuery& where_key(SqlQuery& query, std::string_view name, int version) {
  return query.sql(" where name = ").bind(name).sql(" and version = ").bind(version);
}

SqlQuery& where_mine(SqlQuery& query, const ProjectionFence& fence) {
  return where_key(query, fence.name, fence.version).sql(" and epoch = ").bind(fence.epoch);
}

ProjectionChanged found(const Rows& rows) {
  return rows.affected > 0 ? ProjectionChanged::done : ProjectionChanged::unknown;
}

}  // namespace

SqlProjectionStore::SqlProjectionStore(SqlDialect dialect) : dialect_(std::move(dialect)) {}

ProjectionChanged SqlProjectionStore::enroll(std::string_view name, int version) {
  SqlQuery there(dialect_);
  there.sql("select 1 from ").table(projections);
  if (!where_key(there, name, version).run().empty()) return ProjectionChanged::done;
  // "+ 0" tells PostgreSQL that the parameter is a number.
  SqlQuery query(dialect_);
  query.sql(dialect_.kind == BackendKind::mariadb ? "insert ignore into " : "insert into ")
      .table(projections);
  query.sql(" (name, version, live, created_at, updated_at) select ").bind(name).sql(", ");
  query.bind(version).sql(" + 0, not exists (select 1 from ").table(projections).sql(" where name = ");
  query.bind(name).sql("), ").now().sql(", ").now().sql(" from (select 1 as one) as here where true");
  if (dialect_.kind != BackendKind::mariadb) query.sql(" on conflict do nothing");
  query.run();
  return ProjectionChanged::done;
}

std::optional<ProjectionLease> SqlProjectionStore::acquire(std::string_view name, int version,
                                                           std::string_view owner, Duration lease,
                                                           ProjectionTake take) {
  const auto free = [&](SqlQuery& query) -> SqlQuery& {
    if (take == ProjectionTake::anyway) return query.sql("1 = 1");
    query.sql("status = 0 and (owner is null or owner = ").bind(owner);
    return query.sql(" or lease_until is null or lease_until <= ").now().sql(")");
  };
  const auto look = [&] {
    SqlQuery query(dialect_);
    query.sql("select epoch, case when ");
    free(query).sql(" then 1 else 0 end, position, failures, live from ").table(projections);
    return where_key(query, name, version).run();
  };
  Rows row = look();
  if (row.empty() || row.integer(0, 1) == 0) return std::nullopt;
  const std::int64_t epoch = row.integer(0, 0);
  SqlQuery query(dialect_);
  query.sql("update ").table(projections).sql(" set owner = ").bind(owner).sql(", lease_until = ");
  query.now_plus(lease).sql(", epoch = epoch + 1, updated_at = ").now();
  where_mine(query, {name, version, epoch}).sql(" and ");
  if (free(query).run().affected == 0) return std::nullopt;
  // Again: the one before may have moved on between the look and the update.
  row = look();
  if (row.empty() || row.integer(0, 0) != epoch + 1) return std::nullopt;
  return ProjectionLease{.epoch = epoch + 1,
                         .position = LogSeq{row.integer(0, 2)},
                         .failures = static_cast<std::int32_t>(row.integer(0, 3)),
                         .live = flag(row.rows[0][4])};
}

bool SqlProjectionStore::renew(const ProjectionFence& fence, Duration lease) {
  SqlQuery query(dialect_);
  query.sql("update ").table(projections).sql(" set lease_until = ");
  if (lease == Duration::zero()) {
    query.sql("null, owner = null");
  } else {
    query.now_plus(lease);
  }
  return where_mine(query, fence).run().affected > 0;
}

bool SqlProjectionStore::advance(Tx& tx, const ProjectionFence& fence, const ProjectionAdvance& step) {
  SqlQuery query(dialect_);
  query.sql("update ").table(projections).sql(" set position = ").bind(plain(step.to));
  query.sql(", failures = 0, last_error = null, updated_at = ").now();
  query.sql(", lease_until = ").now_plus(step.lease);
  where_mine(query, fence).sql(" and status = 0 and position = ").bind(plain(step.from));
  if (query.run(tx).affected == 0) return false;
  if (step.skip_error.has_value()) {
    const std::string error = stored_error(*step.skip_error);
    SqlQuery note(dialect_);
    note.sql("insert into ").table(skipped_table).sql(" (name, version, seq, error, skipped_at) values (");
    note.bind(fence.name).sql(", ").bind(fence.version).sql(", ").bind(plain(step.to)).sql(", ");
    note.bind(error).sql(", ").now().sql(")").run(tx);
  }
  return true;
}

bool SqlProjectionStore::fail(const ProjectionFence& fence, const ProjectionFailure& failure) {
  const std::string error = stored_error(failure.error);
  SqlQuery query(dialect_);
  query.sql("update ").table(projections).sql(" set last_error = ").bind(error);
  query.sql(", updated_at = ").now();
  if (failure.counted) query.sql(", failures = failures + 1");
  if (failure.stop) query.sql(", status = 2, owner = null, lease_until = null");
  return where_mine(query, fence).run().affected > 0;
}

std::vector<ProjectionStatus> SqlProjectionStore::list(std::string_view name) {
  SqlQuery query(dialect_);
  query.sql("select name, version, status, live, position, case when lease_until > ").now();
  query.sql(" then owner end, failures, last_error, epoch, ").micros("created_at").sql(", ");
  query.micros("updated_at").sql(", (select count(*) from ").table(skipped_table);
  query.sql(" as s where s.name = p.name and s.version = p.version), ");
  std::optional<TimePoint> own_now;
  if (dialect_.clock != nullptr) {
    own_now = dialect_.clock->now();
    query.sql("0");
  } else {
    query.micros(dialect_.now);
  }
  query.sql(", (select max(seq) from ").table(log_table).sql("), ");
  query.micros("(select finalized_at from " + dialect_.table_prefix + std::string(log_table) +
               " as l where l.seq > p.position order by l.seq limit 1)");
  query.sql(" from ").table(projections).sql(" as p");
  if (!name.empty()) query.sql(" where name = ").bind(name);
  const Rows rows = query.sql(" order by name, version").run();
  std::vector<ProjectionStatus> list;
  list.reserve(rows.size());
  for (const auto& row : rows.rows) {
    ProjectionStatus one;
    one.name = text(row[0]);
    one.version = static_cast<int>(number(row[1]));
    one.state = static_cast<ProjectionState>(number(row[2]));
    one.live = flag(row[3]);
    one.position = LogSeq{number(row[4])};
    one.owner = text(row[5]);
    one.failures = static_cast<std::int32_t>(number(row[6]));
    one.last_error = text(row[7]);
    one.epoch = number(row[8]);
    one.created_at = time_of(row[9]);
    one.updated_at = time_of(row[10]);
    one.skipped = number(row[11]);
    const TimePoint now = own_now.value_or(time_of(row[12]));
    one.head = LogSeq{number(row[13])};
    if (row[14].has_value()) {
      one.lag_events = std::max<std::int64_t>(0, plain(one.head) - plain(one.position));
      one.lag_time = std::max(Duration::zero(), now - time_of(row[14]));
    }
    // Two nodes that made the first two versions at the same moment may both have found themselves first.
    if (one.live && !list.empty() && list.back().name == one.name) {
      for (ProjectionStatus& lower : list) {
        if (lower.name == one.name) lower.live = false;
      }
    }
    list.push_back(std::move(one));
  }
  return list;
}

ProjectionChanged SqlProjectionStore::change(std::string_view name, int version, ProjectionChange what) {
  SqlQuery query(dialect_);
  switch (what) {
    case ProjectionChange::enroll:
      return enroll(name, version);
    case ProjectionChange::switch_to:
      return retried_on_contention(dialect_.kind, [&] { return switch_to(name, version); });
    case ProjectionChange::forget:
      return retried_on_contention(dialect_.kind, [&] { return forget(name, version); });
    case ProjectionChange::pause:
      query.sql("update ").table(projections);
      query.sql(" set status = 1, epoch = epoch + 1, owner = null, lease_until = null, updated_at = ").now();
      break;
    case ProjectionChange::resume:
      query.sql("update ").table(projections);
      query.sql(" set status = 0, failures = 0, last_error = null, updated_at = ").now();
      break;
  }
  return found(where_key(query, name, version).run());
}

ProjectionChanged SqlProjectionStore::switch_to(std::string_view name, int version) {
  Transaction tx = dialect_.begin();
  SqlQuery query(dialect_);
  query.sql("select version, position, live from ").table(projections).sql(" where name = ").bind(name);
  query.sql(" order by version").sql(dialect_.kind == BackendKind::sqlite ? "" : " for update");
  const Rows rows = query.run(tx);
  std::optional<std::int64_t> reached;
  std::int64_t needed = 0;
  for (const auto& row : rows.rows) {
    if (number(row[0]) == version) {
      reached = number(row[1]);
    } else if (flag(row[2])) {
      needed = std::max(needed, number(row[1]));
    }
  }
  if (!reached.has_value()) return ProjectionChanged::unknown;
  if (*reached < needed) return ProjectionChanged::refused;
  SqlQuery change(dialect_);
  change.sql("update ").table(projections).sql(" set live = (version = ").bind(version);
  change.sql(" + 0), updated_at = ").now().sql(" where name = ").bind(name).run(tx);
  tx.commit();
  return ProjectionChanged::done;
}

ProjectionChanged SqlProjectionStore::forget(std::string_view name, int version) {
  Transaction tx = dialect_.begin();
  SqlQuery query(dialect_);
  query.sql("delete from ").table(projections);
  where_key(query, name, version).sql(" and live = false and (lease_until is null or lease_until <= ");
  if (query.now().sql(")").run(tx).affected == 0) {
    SqlQuery there(dialect_);
    there.sql("select live from ").table(projections);
    const Rows rows = where_key(there, name, version).run(tx);
    if (rows.empty()) return ProjectionChanged::unknown;
    return flag(rows.rows[0][0]) ? ProjectionChanged::refused : ProjectionChanged::busy;
  }
  SqlQuery notes(dialect_);
  where_key(notes.sql("delete from ").table(skipped_table), name, version).run(tx);
  tx.commit();
  return ProjectionChanged::done;
}

ProjectionChanged SqlProjectionStore::restart(Tx& tx, const ProjectionFence& fence) {
  SqlQuery query(dialect_);
  query.sql("update ").table(projections);
  query.sql(
      " set position = 0, status = 0, failures = 0, last_error = null, epoch = epoch + 1, owner = null, "
      "lease_until = null, updated_at = ");
  query.now();
  if (where_mine(query, fence).run(tx).affected == 0) {
    SqlQuery there(dialect_);
    there.sql("select 1 from ").table(projections);
    return where_key(there, fence.name, fence.version).run(tx).empty() ? ProjectionChanged::unknown
                                                                       : ProjectionChanged::refused;
  }
  SqlQuery notes(dialect_);
  where_key(notes.sql("delete from ").table(skipped_table), fence.name, fence.version).run(tx);
  return ProjectionChanged::done;
}

std::vector<SkippedEntry> SqlProjectionStore::skipped(std::string_view name, int version, LogSeq after,
                                                      std::size_t limit) {
  SqlQuery query(dialect_);
  query.sql("select seq, error, ").micros("skipped_at").sql(" from ").table(skipped_table);
  where_key(query, name, version).sql(" and seq > ").bind(plain(after));
  const Rows rows = query.sql(" order by seq limit ").bind_limit(limit).run();
  std::vector<SkippedEntry> entries;
  entries.reserve(rows.size());
  for (const auto& row : rows.rows) {
    entries.push_back({.seq = LogSeq{number(row[0])}, .error = text(row[1]), .skipped_at = time_of(row[2])});
  }
  return entries;
}

}  // namespace postrider
