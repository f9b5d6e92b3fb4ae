// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/event.hpp"
#include "postrider/outbox_admin.hpp"
#include "postrider/queued_event.hpp"
#include "postrider/retry_policy.hpp"
#include "postrider/transaction.hpp"

namespace postrider {

/// An outbox row is born with this one.
inline constexpr Token birth_token{1};

/// What `last_error` keeps of a message, cut on a character boundary.
inline constexpr std::size_t max_error_chars = 4000;

/// One row to insert. Borrowed from the caller for the time of the call.
struct NewOutboxRow {
  const Event* event = nullptr;
  std::string_view ordering_key{};  ///< empty: none
  /// Zero: the row is born free, any poller may take it once it is available. Otherwise it is born leased to
  /// `owner` for this long, so that nobody races the hot path.
  Duration lease{};
};

/// A row that this node holds.
struct LeaseRef {
  EventId id{};
  Token token{};
};

struct ClaimRequest {
  std::string_view owner{};
  Duration lease{};
  std::size_t limit = 0;
  /// Keys whose run this node has just finished: their next events are claimed first.
  std::span<const std::string> continue_keys{};
  /// Of one key at most so many; at least 1.
  std::size_t run_limit = std::numeric_limits<std::size_t>::max();
};

struct ClaimedEvent {
  LeaseRef lease{};
  /// Empty when the row could not be made into an event; then `decode_error` says why.
  std::optional<Event> event{};
  std::string decode_error{};
  std::string ordering_key{};
  Attempt failed{};  ///< attempts that failed before
  TimePoint created_at{};
};

/// What is to be written about one held row.
struct Completion {
  enum class Kind : std::uint8_t {
    done,     ///< DONE
    retry,    ///< RETRY after `delay`; `failed` is the new number of attempts; `error` replaces last_error
    later,    ///< as it was (NEW or RETRY), available after `delay`; attempts unchanged; `error`, if any,
              ///< replaces last_error
    dead,     ///< DEAD; `failed` is the new number of attempts; `error` is the reason
    release,  ///< give back untouched: no owner, no lease, due as before
  };
  LeaseRef lease{};
  Kind kind = Kind::done;
  Attempt failed{};
  Duration delay{};
  std::string error{};
};

/// The outbox table, as verbs. Thread-safe. The conformance suite (storage/conformance) is the definition; in
/// short:
///
/// - A row is *pending* while its status is NEW or RETRY. It is *due* when available_at and lease_until (if
/// any) have passed,
///   both on the database's clock (or on StorageOptions::clock when given).
/// - Every write about a held row is guarded by its token and by the row being pending: a stale holder
/// changes nothing.
/// - Ordered rows (with an ordering_key): a row may be claimed only if no earlier pending row (lower seq) has
/// its key, or if
///   those before it are claimed with it. A run of one key is claimed in order of seq. See `claim`.
class OutboxStore {
 public:
  virtual ~OutboxStore() = default;

  /// Writes the rows inside the caller's transaction, in one statement per batch, in the given order. Throws
  /// Error(wrong_storage) for a transaction of another backend, Error(conflict) for an id that exists,
  /// Error(schema) when the table is missing.
  virtual void insert(Tx& tx, std::string_view owner, std::span<const NewOutboxRow> rows) = 0;

  /// Takes up to `limit` due rows for `owner`, raising each one's token, those due for longest first. Other
  /// claimers are never waited for longer than their own statement and never get the same row.
  ///
  /// Ordered rows: for each key among the due rows and each of `continue_keys`, the pending rows of the key
  /// are taken in order of seq, from the head on, up to the first that is not yet available or is leased to a
  /// living owner (this one included: it has that row in memory), as far as `limit` and `run_limit` go. A
  /// claim that ends a run because of `run_limit` need not look for further keys. Due ordered rows that are
  /// blocked are deferred (lease_until without owner), so that a blocked backlog is not scanned
  /// again and again: until their head is available, or for a second at most when it is leased, and at least
  /// for 100 ms. A deferral hides a row from the scan, it does not lease it: it never keeps a row from being
  /// taken with its key. Results of one key are in order of seq.
  virtual std::vector<ClaimedEvent> claim(const ClaimRequest& request) = 0;

  /// Extends the leases to `lease` from now. Returns those that are still held: pending,
  /// with this token, and not given back (a late renewal must not lease a row to nobody).
  virtual std::vector<EventId> renew(std::span<const LeaseRef> held, Duration lease) = 0;

  /// Writes results. Returns how many rows were changed; the rest were stale. All or nothing on error. Each
  /// retry and each death that changed its row leaves a line in outbox_attempt, one per claim; of one event
  /// the newest `max_kept_attempts` stay.
  virtual std::size_t complete(std::span<const Completion> results) = 0;

  /// The ids of pending rows of `key` with a lower seq than row `id`, lowest first, at most `limit`. Empty
  /// when `id` is the head.
  virtual std::vector<EventId> predecessors(std::string_view key, const EventId& id, std::size_t limit) = 0;

  /// Throws Error(schema) unless the tables are there in this library's version.
  virtual void check_schema() = 0;
};

/// What operators do with the table. Thread-safe.
class OutboxAdminStore {
 public:
  virtual ~OutboxAdminStore() = default;

  virtual OutboxCounts counts() = 0;
  /// With its history.
  virtual std::optional<OutboxRecord> find(const EventId& id) = 0;
  /// Order: (done_at, event_id). `after` excludes everything up to and including that record.
  virtual std::vector<OutboxRecord> list_dead(const DeadLetterFilter& filter, std::size_t limit,
                                              const OutboxRecord* after) = 0;
  virtual std::int64_t count_dead(const DeadLetterFilter& filter) = 0;
  /// DEAD → NEW, attempts 0, available after `delay`, done_at and last_error cleared (nobody has tried it in
  /// this life; its history stays), at most `limit` rows, those that died first. The token begins another
  /// life, see `next_life`. Returns how many.
  virtual std::int64_t revive_dead(const DeadLetterFilter& filter, std::size_t limit, Duration delay) = 0;
  std::int64_t revive_dead(const DeadLetterFilter& filter, std::size_t limit) {
    return revive_dead(filter, limit, Duration::zero());
  }
  virtual bool edit_dead(const EventId& id, PayloadKind kind, std::string_view payload,
                         std::optional<std::string_view> headers_json) = 0;
  /// One transaction: deletes at most `limit` rows of `status` (done or dead) that finished `age` ago or
  /// longer, and their attempts.
  virtual std::int64_t purge_batch(EventStatus status, Duration age, std::size_t limit) = 0;
  virtual std::int64_t count_purgeable(EventStatus status, Duration age) = 0;
};

}  // namespace postrider
