// SPDX-License-Identifier: Apache-2.0
#include "storage/settled_attempt.hpp"

#include "core/utf8.hpp"

namespace postrider {

std::optional<AttemptOutcome> failed_outcome(const Settlement& settlement) noexcept {
  if (settlement.kind == Settlement::Kind::retry) return AttemptOutcome::retry;
  if (settlement.kind == Settlement::Kind::release) return std::nullopt;
  switch (settlement.status) {
    case QueueStatus::failed:
      return AttemptOutcome::failed;
    case QueueStatus::completed_with_errors:
      return AttemptOutcome::completed_with_errors;
    default:
      return std::nullopt;
  }
}

SettledAttempt settled_attempt(const Settlement& settlement, AttemptOutcome outcome) {
  std::string error = settlement.error;
  if (error.empty()) {
    for (const HandlerResult& result : settlement.results) {
      if (result.verdict == HandlerVerdict::success || error.size() > max_attempt_error_chars) continue;
      if (!error.empty()) error += "; ";
      if (!result.handler.empty())
        error.append(result.handler).append(": ");  // whoever polls has no handlers
      error += result.error;
    }
  }
  return {.claim = settlement.claim,
          .outcome = outcome,
          .error = utf8_repaired(utf8_prefix(error, max_attempt_error_chars))};
}

}  // namespace postrider
