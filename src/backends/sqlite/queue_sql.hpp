// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "postrider/identifier.hpp"

namespace postrider::sqlite {

/// How many events `to_log_block` finalises at once: half the time of one by one, and more of them bring
/// nothing.
inline constexpr std::size_t block_size = 50;

/// The queue's statements, with the tables' names filled in. In one place so that a test can look at the plan
/// of each.
struct QueueSql {
  explicit QueueSql(const Identifier& schema);

  std::string insert;         ///< the event's columns, updated, available, priority, dedupe key; or nothing
  std::string duplicate;      ///< dedupe key → id
  std::string due;            ///< priority, now, now → rows without a key that can be had, in order
  std::string first_key;      ///< → the first ordering key
  std::string next_key;       ///< key → the one after it
  std::string key_rows;       ///< key, id → the key's rows after that one, in order
  std::string take;           ///< owner, lease end, crashes, started, updated, id
  std::string take_fresh;     ///< owner, lease end, started, updated, now; then block_size ids (NULL: none)
  std::string quarantine;     ///< crashes, error, since, updated, id
  std::string renew;          ///< lease end, id, token
  std::string to_log;         ///< status, finalized, results, id, token
  std::string remove;         ///< id
  std::string to_log_block;   ///< block_size times id (NULL: none), token, status, results; then finalized
  std::string remove_block;   ///< block_size ids
  std::string retry;          ///< available, error, updated, id, token
  std::string release;        ///< updated, id, token
  std::string find;           ///< id → token, status
  std::string find_logged;    ///< id → token
  std::string held;           ///< id, token → a row when that claim holds it
  std::string save_state;     ///< id, handler, result, failed, error, updated
  std::string log_attempt;    ///< now, outcome, error, id, token; before the row is changed
  std::string log_crash;      ///< now, id; before the row is changed
  std::string trim_attempts;  ///< id
  std::string states;         ///< id → handler, result, failed, error
  std::string done;           ///< id → handler of stored successes
  std::string left_states;    ///< limit → id, handler of states whose event is not in the queue any more
  std::string delete_state;   ///< id, handler
};

/// The columns of `due` and `key_rows` behind those of the event.
enum QueueColumn : int {
  first_queue_column = 11,
  column_id = first_queue_column,
  column_priority,
  column_available,
  column_status,
  column_lease_until,
  column_owner,
  column_attempts,
  column_crashes,
  column_token,
};

}  // namespace postrider::sqlite
