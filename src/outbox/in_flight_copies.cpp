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

InFlightTracker::Hold hold_of(const OutboxItem& event) {
  return {static_cast<std::int64_t>(event.token), event.lease_end};
}

/// By the tokens alone: `known` is the one of what is here already.
bool another_life_by_token(const OutboxItem& event, Token known) noexcept {
  if (life_of(event.token) != life_of(known)) return true;
  // A claim raises the token, and a row is committed once.
  return event.source == Source::cold ? event.token <= known : event.token == known;
}

}  // namespace

std::vector<Event> InFlightCopies::claim_ends() {
  claiming_ = false;
  std::vector<Event> gone;
  for (const auto& [id, result] : ended_meanwhile_) {
    if (std::optional<Event> event = release(id)) gone.push_back(*std::move(event));
  }
  ended_meanwhile_.clear();
  return gone;
}

bool InFlightCopies::acquire(const OutboxItem& event) {
  if (!in_flight_.try_acquire(event.id(), hold_of(event), {event.event, event.bytes, event.source}))
    return false;
  (event.source == Source::hot ? hot_bytes_ : cold_bytes_) += event.bytes;
  return true;
}

std::optional<Event> InFlightCopies::release(const EventId& id) {
  std::optional<InFlightTracker::Cargo> cargo = in_flight_.release(id);
  if (!cargo) return std::nullopt;
  (cargo->source == Source::hot ? hot_bytes_ : cold_bytes_) -= cargo->bytes;
  return std::move(cargo->event);
}

/// The newest copy takes the place of one that waits already.
void InFlightCopies::wait(const OutboxItem& event) {
  OutboxItem& place = waiting_[event.id()];
  cold_bytes_ = cold_bytes_ - place.bytes + event.bytes;
  place = event;
}

/// Not what is held, claimed once more, but what became of it: a dead letter that was replayed, maybe edited,
/// or another row, published when the first one had been purged. Payloads are compared only for an event that
/// is here twice.
bool InFlightCopies::is_another_life(const OutboxItem& event, Token held) const {
  if (another_life_by_token(event, held)) return true;
  const std::optional<Event> here = in_flight_.event_of(event.id());
  return here && !same_content(*event.event, *here);
}

InFlightCopies::Arrival InFlightCopies::arrive(const OutboxItem& event) {
  if (acquire(event)) return {.queue = true};
  const std::optional<InFlightTracker::Hold> held = in_flight_.find(event.id());
  if (held && is_another_life(event, Token{held->token})) return arrive_anew(event);
  // Committed just now, yet held: a claim was faster. It has the newer token.
  if (event.source == Source::hot) return {};
  // Claimed before its next life began, which is waiting already.
  if (held && held->lost) return {};
  in_flight_.take_over(event.id(), hold_of(event));
  const auto ended = ended_meanwhile_.find(event.id());
  if (ended == ended_meanwhile_.end()) {
    // Queued, running, or its result is on its way: what comes of that decides, see `ended`.
    wait(event);
    return {};
  }
  Completion result = std::move(ended->second);
  ended_meanwhile_.erase(ended);
  if (missed_by_this_claim(result, event.token)) {
    return {.write_again = under(std::move(result), event.token)};
  }
  (void)release(event.id());
  return {.queue = acquire(event)};
}

/// Whoever has the old life may be inside a listener. The new one comes after it, never at the same time.
InFlightCopies::Arrival InFlightCopies::arrive_anew(const OutboxItem& event) {
  if (ended_meanwhile_.erase(event.id()) > 0) {
    (void)release(event.id());
    return {.queue = acquire(event)};
  }
  in_flight_.lose(event.id());
  const auto waiting = waiting_.find(event.id());
  // Committed just now, and it waits already: a claim was faster.
  const bool late = waiting != waiting_.end() && event.source == Source::hot &&
                    !another_life_by_token(event, waiting->second.token) &&
                    same_content(*event.event, *waiting->second.event);
  if (!late) wait(event);
  return {};
}

InFlightCopies::Ended InFlightCopies::ended(const Completion& result) {
  const std::optional<InFlightTracker::Hold> held = in_flight_.find(result.lease.id);
  const bool lost = held && held->lost;
  std::optional<OutboxItem> copy = take_waiting(result.lease, lost);
  // Of a copy that went back without having been held: what is held by now was claimed after that.
  if (!copy && held && !lost && Token{held->token} > result.lease.token) return {};
  if (copy && !lost && missed_by_this_claim(result, copy->token))
    return {.write_again = under(result, copy->token)};
  if (claiming_ && !copy && for_good(result)) {
    ended_meanwhile_.insert_or_assign(result.lease.id, result);
    return {};
  }
  std::optional<Event> gone = release(result.lease.id);
  return {.requeue = std::move(copy), .gone = std::move(gone)};
}

/// A copy that was claimed after the result's own claim, or is another life than what is `lost`.
std::optional<OutboxItem> InFlightCopies::take_waiting(const LeaseRef& finished, bool lost) {
  const auto found = waiting_.find(finished.id);
  if (found == waiting_.end()) return std::nullopt;
  OutboxItem copy = std::move(found->second);
  waiting_.erase(found);
  cold_bytes_ -= copy.bytes;
  // Claimed before the listeners ended: the result was written under this very claim.
  if (!lost && copy.token <= finished.token) return std::nullopt;
  return copy;
}

}  // namespace postrider
