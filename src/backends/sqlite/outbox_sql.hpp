// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "postrider/identifier.hpp"

namespace postrider::sqlite {

/// The store's statements, with the table's name filled in. In one place so that a test can look at the plan
/// of each.
struct OutboxSql {
  explicit OutboxSql(const Identifier& schema);

  std::string insert;
  std::string due_free;     ///< seq, due_at of due rows without a key; now, limit
  std::string due_ordered;  ///< seq, due_at, ordering_key of due rows with a key; now, limit
  std::string
      run_of_key;     ///< seq, available_at, due_at, owner, lease_until of a key's pending rows in order; key
  std::string take;   ///< owner, lease end, seq → the row
  std::string defer;  ///< until, seq
  std::string renew;  ///< lease end, id, token
  std::string done;   ///< now, id, token
  std::string retry;  ///< attempts, available, error, id, token
  std::string later;  ///< available, error, id, token
  std::string dead;   ///< now, attempts, error, id, token
  std::string release;        ///< id, token
  std::string log_attempt;    ///< attempt, now, outcome, error, id, token; before the row is changed
  std::string trim_attempts;  ///< id
  std::string predecessors;   ///< key, id, limit
};

}  // namespace postrider::sqlite
