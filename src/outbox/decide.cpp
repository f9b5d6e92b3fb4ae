// SPDX-License-Identifier: Apache-2.0
#include "outbox/decide.hpp"

#include <algorithm>
#include <limits>

namespace postrider {

namespace {

constexpr Duration longest_delay = std::chrono::hours{24 * 365};
constexpr Duration delay_of_a_broken_policy = std::chrono::minutes{1};

/// What comes from users may be anything; times are added to it later.
Duration bounded(Duration delay) noexcept {
  return std::clamp(delay, Duration::zero(), longest_delay);
}

/// The policy is the user's code: should it throw, the event must not be lost for it.
Duration policy_delay(const RetryPolicy& policy, Attempt failed, double random) noexcept {
  try {
    return policy.delay(failed, random);
  } catch (...) {
    return delay_of_a_broken_policy;
  }
}

}  // namespace

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
      result.delay = bounded(outcome.delay());
      result.error = outcome.reason();
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
        result.delay = bounded(policy_delay(*rules.policy, Attempt{failed}, random));
      }
      break;
  }
  return result;
}

bool for_good(const Completion& completion) noexcept {
  return completion.kind == Completion::Kind::done || completion.kind == Completion::Kind::dead;
}

}  // namespace postrider
