// SPDX-License-Identifier: Apache-2.0
#include "storage/sql_outbox_pending.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "core/failpoint.hpp"
#include "storage/contention.hpp"
#include "storage/row_decoder.hpp"
#include "storage/sql_outbox_filter.hpp"
#include "storage/sql_tables.hpp"

namespace postrider {
namespace {

constexpr std::string_view fenced = "token = token % 1000000000000000000 + 1";

/// In place of a node: it holds a key back behind what was cancelled. Not the node that had it, which an
/// operator may be asking for.
constexpr std::string_view nobody = "(cancelled)";

using Ids = std::vector<std::string>;

/// What a node has of a key, and may be running.
struct Holding {
  std::int64_t first_seq = 0;
  TimePoint until{};
};
struct KeyAndNode {
  std::string key;
  std::string node;
  bool operator<(const KeyAndNode& other) const {
    return key == other.key ? node < other.node : key < other.key;
  }
};

/// The rows that one transaction is about, locked.
struct Locked {
  Ids ids;
  Ids free;  ///< those whose place in a key no node can be at
  std::map<KeyAndNode, Holding> held;
};

/// One call of `apply`, inside one transaction.
class Change {
 public:
  Change(const SqlDialect& dialect, Tx& tx) : dialect_(dialect), tx_(tx) {}

  Locked lock(const PendingRows& rows, const Ids& ids) {
    SqlQuery query(dialect_);
    query.sql("select event_id, seq, ordering_key, owner, ").micros("lease_until");
    query.sql(", case when owner is not null and lease_until > ").now().sql(" then 1 else 0 end from ");
    and_pending(of(query.table(outbox_table).sql(" where due_at is not null"), ids), rows);
    query.sql(" order by event_id");
    if (dialect_.kind != BackendKind::sqlite) query.sql(" for update skip locked");
    Locked locked;
    for (const auto& row : query.run(tx_).rows) {
      locked.ids.push_back(text(row[0]));
      if (!row[2].has_value() || number(row[5]) == 0) {
        locked.free.push_back(locked.ids.back());
        continue;
      }
      const std::int64_t seq = number(row[1]);
      const auto [at, first] = locked.held.try_emplace({text(row[2]), text(row[3])}, Holding{seq, {}});
      at->second.first_seq = std::min(at->second.first_seq, seq);
      at->second.until = std::max(at->second.until, time_of(row[4]));
    }
    return locked;
  }

  void requeue(const Locked& locked) {
    SqlQuery due(dialect_);
    due.sql("update ").table(outbox_table).sql(" set available_at = ").now();
    of(due.sql(" where due_at is not null"), locked.ids).run(tx_);
    if (!locked.free.empty()) {
      SqlQuery free(dialect_);
      free.sql("update ").table(outbox_table).sql(" set owner = null, lease_until = null, ").sql(fenced);
      of(free.sql(" where due_at is not null"), locked.free).run(tx_);
    }
    for (const auto& [whose, holding] : locked.held) take_from(whose, holding);
  }

  void cancel(const Locked& locked, std::string_view reason) {
    const std::string error = stored_error("cancelled: " + std::string(reason));
    SqlQuery query(dialect_);
    query.sql("update ").table(outbox_table).sql(" set status = 3, done_at = ").now();
    query.sql(", last_error = ").bind(error).sql(", owner = null, lease_until = null, ").sql(fenced);
    of(query.sql(" where due_at is not null"), locked.ids).run(tx_);
    for (const auto& [whose, holding] : locked.held) hold_back_next(whose.key, holding);
  }

 private:
  static SqlQuery& of(SqlQuery& query, const Ids& ids) {
    return query.and_in("event_id", ids, [](const std::string& id) { return std::string_view(id); });
  }
  /// " where …": the pending rows of a key, from a place on.
  SqlQuery& where_key(SqlQuery& query, const std::string& key, std::int64_t first_seq) {
    query.sql(" where due_at is not null and ");
    query.sql(dialect_.kind == BackendKind::mariadb ? "pending_key = " : "ordering_key = ").bind(key);
    return query.sql(" and seq >= ").bind(first_seq);
  }
  SqlQuery& where_held(SqlQuery& query, const KeyAndNode& whose, const Holding& holding) {
    return where_key(query, whose.key, holding.first_seq).sql(" and owner = ").bind(whose.node);
  }
  /// These are waited for: a row that was passed over would break the order.
  Rows run_locking(SqlQuery& query) {
    if (dialect_.kind != BackendKind::sqlite) query.sql(" for update");
    return query.run(tx_);
  }

  /// The node has these in memory, and runs one after the other until its leases have ended. Nobody else
  /// begins before that; then all of them come again, in order.
  void take_from(const KeyAndNode& whose, const Holding& holding) {
    SqlQuery query(dialect_);
    where_held(query.sql("select ").micros("lease_until").sql(" from ").table(outbox_table), whose, holding);
    TimePoint until = holding.until;
    for (const auto& row : run_locking(query.sql(" order by seq")).rows) {
      until = std::max(until, time_of(row[0]));
    }
    SqlQuery taken(dialect_);
    taken.sql("update ")
        .table(outbox_table)
        .sql(" set lease_until = ")
        .bind_time(until)
        .sql(", ")
        .sql(fenced);
    where_held(taken, whose, holding).run(tx_);
  }

  /// The node may be running what was cancelled until its lease ends, and what it has behind it afterwards.
  void hold_back_next(const std::string& key, const Holding& holding) {
    SqlQuery query(dialect_);
    where_key(query.sql("select event_id from ").table(outbox_table), key, holding.first_seq);
    query.sql(" and (owner is null or lease_until is null or lease_until <= ").now();
    const Rows next = run_locking(query.sql(") order by seq limit 1"));
    if (next.empty()) return;
    const std::string id = text(next.rows[0][0]);
    SqlQuery held(dialect_);
    held.sql("update ").table(outbox_table).sql(" set owner = ").bind(nobody).sql(", lease_until = ");
    held.bind_time(holding.until).sql(", ").sql(fenced).sql(" where event_id = ").bind(id).run(tx_);
  }

  const SqlDialect& dialect_;
  Tx& tx_;
};

}  // namespace

TimePoint SqlOutboxPendingStore::now() {
  if (dialect_.clock != nullptr) return dialect_.clock->now();
  SqlQuery query(dialect_);
  return time_of(query.sql("select ").micros(dialect_.now).run().rows.at(0).at(0));
}

std::int64_t SqlOutboxPendingStore::count(const PendingRows& rows) {
  std::int64_t sum = 0;
  for (const bool ordered : {false, true}) {
    SqlQuery query(dialect_);
    query.sql("select count(*) from ").table(outbox_table).sql(where_pending(dialect_.kind, ordered));
    query.and_in("event_id", rows.filter.ids, [](const EventId& id) { return id.view(); });
    const Rows found = and_pending(query, rows).run();
    if (!found.empty()) sum += number(found.rows[0][0]);
  }
  return sum;
}

std::int64_t SqlOutboxPendingStore::apply(const PendingRows& rows, std::span<const EventId> ids,
                                          std::string_view reason) {
  if (ids.empty()) return 0;
  Ids wanted;
  wanted.reserve(ids.size());
  for (const EventId& id : ids) wanted.push_back(id.str());
  const auto changed = retried_on_contention(dialect_.kind, [&]() -> std::int64_t {
    Transaction tx = dialect_.begin();
    Change change(dialect_, tx);
    const Locked locked = change.lock(rows, wanted);
    if (locked.ids.empty()) return 0;
    rows.action == OutboxAction::cancel ? change.cancel(locked, reason) : change.requeue(locked);
    failpoint("outbox.admin.before_commit");
    tx.commit();
    return static_cast<std::int64_t>(locked.ids.size());
  });
  if (changed > 0) failpoint("outbox.admin.after_commit");
  return changed;
}

}  // namespace postrider
