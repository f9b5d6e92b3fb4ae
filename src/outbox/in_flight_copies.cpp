// SPDX-License-Identifier: Apache-2.0
#include "outbox/in_flight_copies.hpp"

#include <cstdint>
#include <utility>

#include "outbox/decide.hpp"
#include "storage/next_token.hpp"

namespace postrider {

namespace {

/// The result came too late: its lease had ended, and this node's next claim took the row. That is so only if
/// the tokens are neighbours: a row that *is* done or dead cannot be claimed, and whatever revives it raises
/// the token by itself.
bool missed_by_this_claim(const Completion& result, Token claim) noexcept {
  return for_good(result) && claim == next_token(static_cast<std::int64_t>(result.lease.token));
}

Completion under(Completion result, Token claim) {
  result.lease.token = claim;
  return result;
}

}  // namespace

void InFlightCopies::claim_ends() {
  claiming_ = false;
  for (const auto& [id, result] : ended_meanwhile_) in_flight_.release(id);
  ended_meanwhile_.clear();
}

InFlightCopies::Arrival InFlightCopies::arrive(const OutboxItem& event) {
  const InFlightTracker::Hold hold{static_cast<std::int64_t>(event.token), event.lease_end};
  if (in_flight_.try_acquire(event.id(), hold)) return {.queue = true};
  // Committed just now, yet held: a claim was faster. It has the newer token.
  if (event.source == Source::hot) return {};
  const auto ended = ended_meanwhile_.find(event.id());
  if (ended == ended_meanwhile_.end()) {
    // Queued, running, or its result is on its way: what comes of that decides, see `ended`.
    waiting_.insert_or_assign(event.id(), event);
    return {};
  }
  Completion result = std::move(ended->second);
  ended_meanwhile_.erase(ended);
  if (missed_by_this_claim(result, event.token)) {
    return {.write_again = under(std::move(result), event.token)};
  }
  in_flight_.release(event.id());
  return {.queue = in_flight_.try_acquire(event.id(), hold)};
}

InFlightCopies::Ended InFlightCopies::ended(const Completion& result) {
  std::optional<OutboxItem> copy = take_waiting(result.lease);
  if (copy && missed_by_this_claim(result, copy->token)) return {.write_again = under(result, copy->token)};
  if (claiming_ && !copy && for_good(result)) {
    ended_meanwhile_.insert_or_assign(result.lease.id, result);
  } else {
    in_flight_.release(result.lease.id);
  }
  return {.requeue = std::move(copy)};
}

/// A copy that was claimed after the result's own claim.
std::optional<OutboxItem> InFlightCopies::take_waiting(const LeaseRef& finished) {
  const auto found = waiting_.find(finished.id);
  if (found == waiting_.end()) return std::nullopt;
  OutboxItem copy = std::move(found->second);
  waiting_.erase(found);
  // Claimed before the listeners ended: the result was written under this very claim.
  if (copy.token <= finished.token) return std::nullopt;
  return copy;
}

}  // namespace postrider
