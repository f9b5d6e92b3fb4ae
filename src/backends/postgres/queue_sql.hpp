// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "backends/postgres/connection.hpp"
#include "postrider/identifier.hpp"

namespace postrider::postgres {

/// The texts of the queue's statements for one schema. As in OutboxSql, `now` is in each a parameter that
/// falls back to statement_timestamp().
struct QueueSql {
  explicit QueueSql(const Identifier& schema);

  Statement insert;
  Statement insert_deduped;
  Statement find_deduped;

  Statement claim;
  Statement probe;
  Statement clock;
  Statement walk;
  Statement lock_heads;
  Statement lock_followers;
  Statement take;
  Statement renew;

  Statement finalize;
  Statement finalize_unnumbered;
  Statement retry;
  Statement release;
  Statement log_crashes;
  Statement log_attempts;
  Statement trim_attempts;
  Statement lock_idle;
  Statement classify;

  Statement save_states;
  Statement load_states;
  Statement done_states;
  Statement clean_states;

  Statement any_unnumbered;
  Statement lock_numbers;
  Statement number_log;
};

/// Columns of what `claim` and `take` return.
namespace queue_row {
inline constexpr int event_id = 0;
inline constexpr int event_type = 1;
inline constexpr int aggregate_type = 2;
inline constexpr int aggregate_id = 3;
inline constexpr int tenant_id = 4;
inline constexpr int ordering_key = 5;
inline constexpr int headers = 6;
inline constexpr int payload = 7;
inline constexpr int payload_bytes = 8;
inline constexpr int occurred_at = 9;
inline constexpr int created_at = 10;
inline constexpr int id = 11;
inline constexpr int token = 12;
inline constexpr int attempts = 13;
inline constexpr int crashes = 14;
inline constexpr int priority = 15;
inline constexpr int started_at = 16;
inline constexpr int available_at = 17;
inline constexpr int quarantine = 18;
inline constexpr int abandoned = 19;
inline constexpr int seen_at = 20;  ///< `claim`: when the scan came to it
inline constexpr int place = 20;    ///< `take`: its number among the arguments, from 1
}  // namespace queue_row

}  // namespace postrider::postgres
