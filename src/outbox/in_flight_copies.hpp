// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "core/inflight.hpp"
#include "outbox/outbox_item.hpp"
#include "storage/outbox_store.hpp"

namespace postrider {

/// Decides what becomes of an event that is claimed while this process still has it, so that what was
/// delivered here is not delivered here again, and what came to a new life is not taken for the old one.
///
/// A claim can bring such a copy because a lease ended too early: before the result was written, or while it
/// was on its way. It can also bring one because the result is in the database and revived the row (a retry
/// that is due, a replay) before this process has heard that it was written. Tokens tell the two apart, see
/// `missed_by_this_claim`. And it can bring another life of the row (cancelled, maybe edited, replayed; or
/// purged and published again) while the old one is still in a listener: then what is held is *lost*, its
/// result does not count, and the new life is queued when it has ended.
///
/// A machine without threads and I/O: every call is one step, and the caller orders them by its own mutex.
class InFlightCopies {
 public:
  /// The tracker says what is held. This class acquires and releases in it.
  explicit InFlightCopies(InFlightTracker& in_flight) : in_flight_(in_flight) {}

  /// From before the database is asked for rows until those it returned have arrived, one claim at a time. A
  /// result that is written in between may have been too late for a row that the claim already has.
  void claim_begins() { claiming_ = true; }
  /// Returns what was held for the claim's sake, for the caller to let go of where it pleases.
  std::vector<Event> claim_ends();

  struct Arrival {
    /// The event is held from now on and is to be queued. Otherwise the caller drops it: its twin is here.
    bool queue = false;
    /// To be written: the result that was too late for this claim, under the claim's token.
    std::optional<Completion> write_again{};
  };
  /// An event was claimed (cold) or committed (hot).
  [[nodiscard]] Arrival arrive(const OutboxItem& event);

  /// At most one of the two; neither: the event is over here.
  struct Ended {
    /// To be written: the same result, under the token of the claim that it was too late for. Still held.
    std::optional<Completion> write_again{};
    /// The row's new life, to be queued by `arrive`. No longer held.
    std::optional<OutboxItem> requeue{};
    /// What was held, for the caller to let go of where it pleases.
    std::optional<Event> gone{};
  };
  /// A result of a held event was written, or was found stale, or the event was let go.
  [[nodiscard]] Ended ended(const Completion& result);
  /// A queued event goes back to the database, and nobody will hear how that ended.
  void let_go(const EventId& id) { (void)release(id); }

  /// Of the events in memory: those held, by where they came from, and with the cold ones what waits. An
  /// event counts from its arrival until it is no longer held, so also while its result is being written.
  [[nodiscard]] std::size_t bytes(Source source) const noexcept {
    return source == Source::hot ? hot_bytes_ : cold_bytes_;
  }

 private:
  [[nodiscard]] Arrival arrive_anew(const OutboxItem& event);
  [[nodiscard]] bool is_another_life(const OutboxItem& event, Token held) const;
  [[nodiscard]] bool acquire(const OutboxItem& event);
  std::optional<Event> release(const EventId& id);
  void wait(const OutboxItem& event);
  [[nodiscard]] std::optional<OutboxItem> take_waiting(const LeaseRef& finished, bool lost);

  InFlightTracker& in_flight_;
  bool claiming_ = false;
  std::size_t hot_bytes_ = 0;
  std::size_t cold_bytes_ = 0;
  /// Done or dead, written while a claim was under way; still held until it is over.
  std::unordered_map<EventId, Completion> ended_meanwhile_;
  /// Claimed again while they are held here; at most one for each held event.
  std::unordered_map<EventId, OutboxItem> waiting_;
};

}  // namespace postrider
