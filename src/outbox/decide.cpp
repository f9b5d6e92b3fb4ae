// SPDX-License-Identifier: Apache-2.0
#include "outbox/decide.hpp"

#include <algorithm>
#include <limits>

namespace postrider {

Completion decide(const LeaseRef& lease, Attempt failed_before, const Outcome& outcome,
                  const RetryRules& rules, double random) {
  Completion result;
  result.lease = lease;
  result.failed = failed_before;
  // A row written by another program may carry any number: stay at the top instead of wrapping round.
  const auto before = static_cast<std::int32_t>(failed_before);
  const std::int32_t failed =
      before == std::numeric_limits<std::int32_t>::max() ? before : std::max(before, 0) + 1;

  switch (outcome.kind()) {
    case Outcome::Kind::done:
      result.kind = Completion::Kind::done;
      break;
    case Outcome::Kind::retry_after:
      result.kind = Completion::Kind::later;
      result.delay = std::max(outcome.delay(), Duration::zero());
      break;
    case Outcome::Kind::dead:
      result.kind = Completion::Kind::dead;
      result.failed = Attempt{failed};
      result.error = outcome.reason();
      break;
    case Outcome::Kind::failed:
      result.failed = Attempt{failed};
      result.error = outcome.reason();
      if (failed >= rules.max_attempts) {
        result.kind = Completion::Kind::dead;
      } else {
        result.kind = Completion::Kind::retry;
        result.delay = std::max(rules.policy->delay(Attempt{failed}, random), Duration::zero());
      }
      break;
  }
  return result;
}

}  // namespace postrider
