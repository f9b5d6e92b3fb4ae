// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "backends/mariadb/sql_text.hpp"
#include "postrider/identifier.hpp"

namespace postrider::mariadb {

/// The statements over the outbox table. Times travel as microseconds since 1970; `now` parameters may be
/// NULL, then the database's clock is taken. Indexes are forced: a wrong guess of the optimizer would lock
/// rows that are not meant.
struct OutboxSql {
  explicit OutboxSql(const Identifier& schema);

  std::string table;
  std::string now;        ///< → micros
  std::string insert;     ///< 16 parameters, see MariadbOutboxStore::insert
  std::string lock_free;  ///< now, limit → claim columns of due rows without key, locked
  std::string due_keys;   ///< now, limit → seq, pending_key, due of due rows with key, not locked
  ListSql
      key_runs;  ///< per key: key, after seq, limit → pending_key, seq, available, lease, owner; not locked
  ListSql lock_rows;          ///< seqs → claim columns of those that are pending, locked
  ListSql lock_due;           ///< seqs, now → seq of those that are due, locked
  ListSql take;               ///< owner, lease end, seqs
  std::string defer;          ///< until, seq
  ListSql lock_held;          ///< ids → seq, event_id, token of those that are pending, locked; waits
  ListSql extend;             ///< now, lease, seqs
  ListSql finish;             ///< now, token, ids
  ListSql release;            ///< token, ids
  std::string retry;          ///< attempts, error, now, delay, id, token
  std::string later;          ///< error, now, delay, id, token
  std::string bury;           ///< attempts, error, now, id, token
  std::string log_attempt;    ///< id, token, attempt, now, owner, outcome, error
  std::string trim_attempts;  ///< id, id
  std::string predecessors;   ///< key, id, limit → event_id
  std::string probe;          ///< fails when the table is missing
};

/// The positions of `lock_free` and `lock_rows`.
struct ClaimColumn {
  enum : std::size_t {
    seq,
    event_id,
    event_type,
    aggregate_type,
    aggregate_id,
    tenant_id,
    ordering_key,
    payload,
    payload_bytes,
    headers,
    attempts,
    occurred_at,
    created_at,
    token,
    due_at,
    available_at,
    lease_until,
    owner
  };
};

}  // namespace postrider::mariadb
