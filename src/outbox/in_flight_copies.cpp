// SPDX-License-Identifier: Apache-2.0
#include "outbox/in_flight_copies.hpp"

#include <cstdint>
#include <utility>

#include "core/event_content.hpp"
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

/// Not what is held, claimed once more, but what became of it: a dead letter that was replayed, maybe edited,
/// or another row, published when the first one had been purged.
bool is_another_life(const OutboxItem& event, std::size_t content, const InFlightTracker::Hold& held) {
  const Token token{held.token};
  if (life_of(event.token) != life_of(token) || content != held.content) return true;
  // A claim raises the token, and a row is committed once.
  return event.source == Source::cold ? event.token <= token : event.token == token;
}

}  // namespace

void InFlightCopies::claim_ends() {
  claiming_ = false;
  for (const auto& [id, result] : ended_meanwhile_) in_flight_.release(id);
  ended_meanwhile_.clear();
}

InFlightCopies::Arrival InFlightCopies::arrive(const OutboxItem& event) {
  const InFlightTracker::Hold hold{static_cast<std::int64_t>(event.token), event.lease_end,
                                   content_of(*event.event)};
  if (in_flight_.try_acquire(event.id(), hold)) return {.queue = true};
  const std::optional<InFlightTracker::Hold> held = in_flight_.find(event.id());
  if (held && is_another_life(event, hold.content, *held)) return arrive_anew(event, hold);
  // Committed just now, yet held: a claim was faster. It has the newer token.
  if (event.source == Source::hot) return {};
  // Claimed before its next life began, which is waiting already.
  if (held && held->lost) return {};
  in_flight_.take_over(event.id(), hold);
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

/// Whoever has the old life may be inside a listener. The new one comes after it, never at the same time.
InFlightCopies::Arrival InFlightCopies::arrive_anew(const OutboxItem& event,
                                                    const InFlightTracker::Hold& hold) {
  if (ended_meanwhile_.erase(event.id()) > 0) {
    in_flight_.release(event.id());
    return {.queue = in_flight_.try_acquire(event.id(), hold)};
  }
  in_flight_.lose(event.id());
  const auto [place, first] = waiting_.try_emplace(event.id(), event);
  if (first) return {};
  OutboxItem& waiting = place->second;
  const InFlightTracker::Hold of_waiting{static_cast<std::int64_t>(waiting.token), waiting.lease_end,
                                         content_of(*waiting.event)};
  // Committed just now, and it waits already: a claim was faster.
  const bool late = event.source == Source::hot && !is_another_life(event, hold.content, of_waiting);
  if (!late) waiting = event;
  return {};
}

InFlightCopies::Ended InFlightCopies::ended(const Completion& result) {
  const std::optional<InFlightTracker::Hold> held = in_flight_.find(result.lease.id);
  const bool lost = held && held->lost;
  std::optional<OutboxItem> copy = take_waiting(result.lease, lost);
  if (copy && !lost && missed_by_this_claim(result, copy->token))
    return {.write_again = under(result, copy->token)};
  if (claiming_ && !copy && for_good(result)) {
    ended_meanwhile_.insert_or_assign(result.lease.id, result);
  } else {
    in_flight_.release(result.lease.id);
  }
  return {.requeue = std::move(copy)};
}

/// A copy that was claimed after the result's own claim, or is another life than what is `lost`.
std::optional<OutboxItem> InFlightCopies::take_waiting(const LeaseRef& finished, bool lost) {
  const auto found = waiting_.find(finished.id);
  if (found == waiting_.end()) return std::nullopt;
  OutboxItem copy = std::move(found->second);
  waiting_.erase(found);
  // Claimed before the listeners ended: the result was written under this very claim.
  if (!lost && copy.token <= finished.token) return std::nullopt;
  return copy;
}

}  // namespace postrider
