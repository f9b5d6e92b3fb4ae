// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/mariadb/in_list.hpp"
#include "backends/mariadb/queue_sql.hpp"
#include "backends/mariadb/tx_work.hpp"
#include "storage/settled_attempt.hpp"

namespace postrider::mariadb {

/// Lines of event_attempt, gathered and then written together, before the rows that they are about are
/// changed.
class AttemptLines {
 public:
  /// Of those that have failed; nothing for others.
  void add(const Settlement& settlement) {
    if (const auto outcome = failed_outcome(settlement)) add(settled_attempt(settlement, *outcome));
  }
  void add_crash(const Claim& abandoned) {
    add({.claim = abandoned, .outcome = AttemptOutcome::crashed, .error = {}});
  }

  /// Those whose claims hold their rows. With `lock` the rows are locked; without it the caller has them
  /// locked, or will see whether they were his all the time, and undo this if not. `now` may be NULL. Forgets
  /// what it has written.
  void write(Link& link, const QueueSql& sql, const Value& now, bool lock = false) {
    if (attempts_.empty()) return;
    std::deque<std::string> owners;  // borrowed by the values; a deque does not move them
    std::vector<Value> lines;
    std::vector<Value> trim;
    run_list(link, lock ? sql.lock_attempt_facts : sql.attempt_facts, {}, ids_, {}, [&](const RowView& row) {
      const auto found = attempts_.find(row.integer(0));
      if (found == attempts_.end()) return;
      const SettledAttempt& one = found->second;
      if (row.integer(1) != static_cast<std::int64_t>(one.claim.token)) return;
      const bool crashed = one.outcome == AttemptOutcome::crashed;
      owners.emplace_back(row.text(5));
      lines.insert(lines.end(),
                   {Value(row.integer(0)), Value(row.integer(1)), Value(row.integer(2)),
                    row.is_null(3) ? Value(nullptr) : Value(row.integer(3)),
                    crashed && !row.is_null(4) ? Value(row.integer(4)) : now, bytes_or_null(owners.back()),
                    Value(static_cast<std::int64_t>(one.outcome)), bytes_or_null(one.error)});
      if (may_exceed_kept(one.claim.token))
        trim.insert(trim.end(), {Value(row.integer(0)), Value(row.integer(0))});
    });
    link.run_many(sql.log_attempt, 8, lines);
    link.run_many(sql.trim_attempts, 2, trim);
    ids_.clear();
    attempts_.clear();
  }

 private:
  void add(SettledAttempt attempt) {
    const auto id = static_cast<std::int64_t>(attempt.claim.id);
    if (attempts_.emplace(id, std::move(attempt)).second) ids_.push_back(id);
  }

  std::vector<std::int64_t> ids_;
  std::unordered_map<std::int64_t, SettledAttempt> attempts_;
};

}  // namespace postrider::mariadb
