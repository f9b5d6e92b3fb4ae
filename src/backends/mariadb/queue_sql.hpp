// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "backends/mariadb/sql_text.hpp"
#include "postrider/identifier.hpp"

namespace postrider::mariadb {

/// The statements over event_queue, event_log and event_handler_state. Times travel as microseconds since
/// 1970; `now` parameters may be NULL where it says so, then the database's clock is taken. Indexes are
/// forced: a wrong guess of the optimizer would lock rows that are not meant.
struct QueueSql {
  explicit QueueSql(const Identifier& schema);

  std::string now;            ///< → micros
  std::string step;           ///< → how far two numbers of one insert are apart
  ListSql insert;             ///< rows of `insert_columns` parameters; now may be NULL
  std::string insert_unique;  ///< one row with a dedupe key; insert_id() is the new id, or minus the old one

  // Claiming.
  std::string first_due;  ///< for each level from 9 on: available_at, id, available_at, now, now, abandoned
                          ///< (1: these too) → level, available_at, id of the first claimable row not before;
                          ///< at the end -1, how many microseconds that took, 0
  std::string lock_due;  ///< level, available_at, id, available_at, now, now, abandoned, limit → claim
                         ///< columns, locked
  std::string
      first_heads;  ///< key, page → pending_key, lowest id, how many rows of the page; from this key on
  std::string next_heads;  ///< the same after this key
  ListSql eligible;        ///< ids, now, now → id of those that are; not locked
  ListSql followers;       ///< per key: now, now, key, id, limit → pending_key, id, eligible; not locked
  ListSql lock_rows;       ///< ids, now, now → claim columns of those that are eligible, locked
  ListSql take;            ///< owner, lease end, now, now, ids
  std::string quarantine;  ///< now, now, error, id

  // Writing about claimed rows.
  ListSql lock_held;  ///< ids → id, token, status, locked; waits
  ListSql lock_idle;  ///< the same, past those that are locked
  ListSql held;    ///< now, ids → id, token of those whose lease has not ended; not locked. now may be NULL
  ListSql extend;  ///< now (may be NULL), lease, now, ids
  ListSql lock_whole;       ///< ids → log columns, locked; waits
  ListSql lock_whole_idle;  ///< the same; passes over what others have locked
  ListSql present;          ///< ids → those in the queue; locks nothing
  std::string remove_one;   ///< id
  ListSql remove;           ///< ids; may have to wait for other rows than these, for a second; MariaDB only
  ListSql take_out;         ///< the same, and returns log columns
  std::string remove_exactly;  ///< ids as a JSON array
  ListSql find_logged;         ///< ids → id, token
  std::string retry;           ///< now, delay, error, now, id; now may be NULL
  ListSql release;             ///< now (may be NULL), ids
  std::string postpone;        ///< now, delay, id
  std::string move;            ///< status, now (may be NULL), results, id: into the log without a number
  std::string save_state;      ///< id, handler, result, failed, error, now (may be NULL)
  ListSql attempt_facts;  ///< ids → id, token, attempts, started, lease end, owner of those in progress
  ListSql lock_attempt_facts;  ///< the same, locked, and as they are now whatever the transaction sees
  std::string log_attempt;     ///< id, token, attempt, started, at (now when NULL), owner, outcome, error
  std::string trim_attempts;   ///< id, id
  ListSql load_states;         ///< ids → id, handler, result, failed, error
  std::string done_states;     ///< id → handler of stored successes, others' newest commits included
  std::string find_orphans;    ///< limit → id, handler
  std::string drop_state;      ///< id, handler

  // Numbers of the log.
  std::string take_numbers;     ///< how many
  std::string last_number;      ///< → last, whether there are entries without
  std::string unnumbered;       ///< → one row if there are committed entries without
  std::string lock_unnumbered;  ///< limit → id
  std::string give_number;      ///< seq, id
  std::string log;              ///< `log_columns` parameters, see MariadbQueueStore::write_log

  std::string probe;  ///< fails when a table is missing

  static constexpr std::size_t insert_columns = 16;
  static constexpr std::size_t log_columns = 21;
};

/// The positions of `lock_due` and `lock_rows`.
struct QueueColumn {
  enum : std::size_t {
    id,
    event_id,
    event_type,
    aggregate_type,
    aggregate_id,
    tenant_id,
    ordering_key,
    payload,
    payload_bytes,
    headers,
    status,
    priority,
    attempts,
    crashes,
    token,
    available_at,
    created_at,
    occurred_at,
    owner
  };
};

}  // namespace postrider::mariadb
