// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/queued_event.hpp"
#include "postrider/transaction.hpp"

namespace postrider {

/// Priorities go from 0 (the default) to this one (first).
inline constexpr int max_priority = 9;

/// One row to insert. Borrowed from the caller for the time of the call.
struct NewQueueRow {
  const Event* event = nullptr;
  int priority = 0;
  std::string_view ordering_key{};  ///< empty: none
  /// While a row with this key is in the queue (pending, processing or in quarantine) another one is not
  /// inserted. Empty: none.
  std::string_view dedupe_key{};
};

struct InsertedRow {
  /// Of the new row; of the one that was there when `duplicate` (0 when another transaction had it and was
  /// not yet visible).
  QueueId id{};
  bool duplicate = false;
};

struct QueueClaimRequest {
  std::string_view owner{};
  Duration lease{};
  std::size_t limit = 0;
  /// How many of them may be *suspects*: those that were in progress when their worker died or fell silent,
  /// `suspect_crashes` times or more. An abandoned one counts the crash that it is found with; one that came
  /// back in peace (a retry, a release) is as suspect as before.
  std::size_t suspect_limit = 0;
  std::int32_t suspect_crashes = 1;
  /// An abandoned event that reaches this many crashes is put into quarantine instead of being claimed. 0:
  /// never.
  std::int32_t max_crashes = 3;
  /// How many events of one ordering key are taken at most, from the head on.
  std::size_t run_limit = 1;
  /// Events of these types are left where they are; a key whose head is one waits.
  std::span<const std::string> without_types{};
};

struct QueueClaimResult {
  std::vector<QueuedEvent> events{};
  std::vector<QueueId> quarantined{};  ///< put there by this claim
  /// Not all that waits was looked at, and the end was not reached: the next claim goes on from here.
  bool more = false;
};

/// What is to be written about one claimed event.
struct Settlement {
  enum class Kind : std::uint8_t {
    /// Moves the row to event_log with `status` (completed, completed_with_errors or failed) and `results`.
    finalize,
    /// PENDING again, available after `delay`; `results` are stored as handler states, replacing older ones
    /// of the same handlers (but never a success: whoever stored it knew more); `error` becomes last_error.
    retry,
    /// Gives the row back untouched: PENDING, and this claim does not count as an attempt. With a positive
    /// `delay` it is available after that, otherwise as before.
    release,
  };
  Claim claim{};
  Kind kind = Kind::finalize;
  QueueStatus status = QueueStatus::completed;
  std::vector<HandlerResult> results{};
  Duration delay{};
  std::string error{};
  /// For messages.
  [[nodiscard]] std::string name() const { return std::to_string(static_cast<std::int64_t>(claim.id)); }
};

/// The tables event_queue, event_log (its writing side) and event_handler_state, as verbs. Thread-safe. The
/// conformance suite is the definition; in short:
///
/// - A row in the queue is *available* when available_at has passed; PENDING rows are *eligible* when they
/// are
///   available, PROCESSING ones when their lease has ended: then they are *abandoned*. Rows in quarantine
///   (quarantined_at set) are never eligible. All times are the database's (or StorageOptions::clock).
/// - Order of claims: higher priority first, then available_at, then id. Abandoned rows keep their place, so
///   they come before newer ones.
/// - Rows with an ordering key: only the head of a key (lowest id of those in the queue and not in
/// quarantine)
///   is eligible, and those right behind it when they are claimed with it. Among rows with keys priority does
///   not count; keys take turns. When rows of both kinds are eligible, each kind gets at least half of the
///   limit (rounded down) if it has so many; the odd one goes to each kind in turn, so that claims of one at
///   a time starve neither.
/// - A claim sets PROCESSING, owner, lease_until, processing_started_at, updated_at, raises `attempts` and
///   `token` by one, and `crashes` when the row was abandoned.
/// - Every write about a claimed row is guarded by its token and by the row being PROCESSING: what was given
///   back keeps its token until the next claim, but is nobody's.
/// - A claim that returns less than its limit, with nobody else claiming, has left nothing that it could have
///   taken; but one claim looks only so far through a large backlog that waits, and the next ones go on
///   there.
/// - Sequence numbers of the log are given in commit order: whoever has read up to N has not missed any
/// below.
class QueueStore {
 public:
  virtual ~QueueStore() = default;

  /// Writes the rows inside the caller's transaction, in the given order; event ids within one call differ.
  /// Errors as OutboxStore::insert.
  virtual std::vector<InsertedRow> insert(Tx& tx, std::span<const NewQueueRow> rows) = 0;

  /// What was abandoned and is taken or put into quarantine leaves a line in event_attempt: who had it, and
  /// when that one's lease ended.
  virtual QueueClaimResult claim(const QueueClaimRequest& request) = 0;

  /// Extends the leases to `lease` from now. Returns the ids that are still held.
  virtual std::vector<QueueId> renew(std::span<const Claim> held, Duration lease) = 0;

  /// Writes results in a transaction of its own; the answers are in the order of the arguments. All or
  /// nothing on error. At most one settlement per id in a call. A row that somebody's open transaction has
  /// locked is waited for a second or so, then the others are written without it. Each retry that is applied,
  /// and each end as FAILED or COMPLETED_WITH_ERRORS, leaves a line in event_attempt, one per claim; of one
  /// event the newest `max_kept_attempts` stay, until its entry of the log is purged.
  virtual std::vector<Settled> settle(std::span<const Settlement> settlements) = 0;
  /// Finalises inside the caller's transaction (kind is `finalize`): applied only if that commits. Its log
  /// row gets its sequence number later, by `sequence_log` or the next own settlement. The row stays locked
  /// until the transaction ends.
  virtual Settled settle(Tx& tx, const Settlement& settlement) = 0;

  /// Stored states of these events' handlers.
  struct EventState {
    QueueId id{};
    HandlerResult result{};
  };
  virtual std::vector<EventState> load_states(std::span<const QueueId> ids) = 0;
  /// Stores states of a claimed event (replacing older ones, but never a success) in a transaction of its
  /// own. False, and nothing written, when the claim is stale.
  virtual bool save_states(const Claim& claim, std::span<const HandlerResult> results) = 0;
  /// The same inside the caller's transaction; locks the event's row until it ends.
  virtual bool save_states(Tx& tx, const Claim& claim, std::span<const HandlerResult> results) = 0;
  /// Which handlers and tasks of an event have a success stored, as the caller's transaction sees it: with
  /// its own writes, and with all that others have committed.
  virtual std::vector<std::string> done_in(Tx& tx, QueueId id) = 0;
  /// Deletes up to `limit` states of events that are no longer in the queue. Returns how many.
  virtual std::size_t clean_states(std::size_t limit) = 0;

  /// Gives sequence numbers to log entries that were finalised in users' transactions, in transactions of its
  /// own, and returns once no committed one is left without. Cheap when there are none.
  virtual void sequence_log() = 0;

  /// Throws Error(schema) unless the tables are there in this library's version.
  virtual void check_schema() = 0;
};

}  // namespace postrider
