// SPDX-License-Identifier: Apache-2.0
#include "storage/attempts.hpp"

namespace postrider {

std::string_view to_string(AttemptOutcome outcome) noexcept {
  switch (outcome) {
    case AttemptOutcome::retry:
      return "RETRY";
    case AttemptOutcome::dead:
      return "DEAD";
    case AttemptOutcome::failed:
      return "FAILED";
    case AttemptOutcome::completed_with_errors:
      return "COMPLETED_WITH_ERRORS";
    case AttemptOutcome::crashed:
      return "CRASHED";
  }
  return "UNKNOWN";
}

std::vector<FailedAttempt> outbox_attempts(const SqlDialect& dialect, std::string_view event_id) {
  SqlQuery query(dialect);
  query.sql("select attempt, ").micros("at").sql(", owner, outcome, error from ").table("outbox_attempt");
  const Rows rows = query.sql(" where event_id = ").bind(event_id).sql(" order by token").run();
  std::vector<FailedAttempt> history;
  history.reserve(rows.size());
  for (const auto& row : rows.rows) {
    history.push_back({.attempt = static_cast<std::int32_t>(number(row[0])),
                       .at = time_of(row[1]),
                       .node = text(row[2]),
                       .outcome = static_cast<AttemptOutcome>(number(row[3])),
                       .error = text(row[4])});
  }
  return history;
}

std::vector<FailedAttempt> queue_attempts(const SqlDialect& dialect, QueueId id) {
  SqlQuery query(dialect);
  query.sql("select attempt, ").micros("started_at").sql(", ").micros("at");
  query.sql(", owner, outcome, error from ").table("event_attempt").sql(" where id = ");
  const Rows rows = query.bind(static_cast<std::int64_t>(id)).sql(" order by token").run();
  std::vector<FailedAttempt> history;
  history.reserve(rows.size());
  for (const auto& row : rows.rows) {
    history.push_back({.attempt = static_cast<std::int32_t>(number(row[0])),
                       .started_at = row[1].has_value() ? std::optional(time_of(row[1])) : std::nullopt,
                       .at = time_of(row[2]),
                       .node = text(row[3]),
                       .outcome = static_cast<AttemptOutcome>(number(row[4])),
                       .error = text(row[5])});
  }
  return history;
}

}  // namespace postrider
