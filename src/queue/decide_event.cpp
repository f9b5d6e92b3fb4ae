// SPDX-License-Identifier: Apache-2.0
#include "queue/decide_event.hpp"

#include <algorithm>
#include <string>

namespace postrider {
namespace {

constexpr Duration longest_delay = std::chrono::hours{24 * 365};
constexpr Duration delay_of_a_broken_policy = std::chrono::minutes{1};

Duration delay_of(const HandlerStanding& handler, double random) noexcept {
  if (handler.asked_delay) return std::clamp(*handler.asked_delay, Duration::zero(), longest_delay);
  // The policy is the user's code: should it throw, the event must not be lost for it.
  try {
    return std::clamp(handler.policy->delay(handler.result.failed, random), Duration::zero(), longest_delay);
  } catch (...) {
    return delay_of_a_broken_policy;
  }
}

}  // namespace

bool is_final(const HandlerResult& result, int max_attempts) noexcept {
  return result.verdict != HandlerVerdict::transient_error ||
         static_cast<std::int32_t>(result.failed) >= max_attempts;
}

Settlement decide_event(const QueuedEvent& event, std::span<const HandlerStanding> handlers, int max_attempts,
                        double random) {
  Settlement settlement;
  settlement.claim = event.claim;
  bool all_succeeded = true;
  bool hopeless = false;
  std::optional<Duration> delay;
  for (const HandlerStanding& handler : handlers) {
    settlement.results.push_back(handler.result);
    if (handler.result.verdict == HandlerVerdict::success) continue;
    all_succeeded = false;
    if (!settlement.error.empty()) settlement.error += "; ";
    settlement.error += handler.result.handler + ": " + handler.result.error;
    if (handler.result.verdict == HandlerVerdict::unrecoverable_error) hopeless = true;
    if (!is_final(handler.result, handler.max_attempts)) {
      delay = std::max(delay.value_or(Duration::zero()), delay_of(handler, random));
      max_attempts = std::max(max_attempts, handler.max_attempts);  // its own may be larger
    }
  }
  hopeless = hopeless || event.attempts >= max_attempts;
  if (delay && !hopeless) {
    settlement.kind = Settlement::Kind::retry;
    settlement.delay = *delay;
    return settlement;
  }
  settlement.kind = Settlement::Kind::finalize;
  settlement.status = all_succeeded ? QueueStatus::completed : QueueStatus::completed_with_errors;
  return settlement;
}

}  // namespace postrider
