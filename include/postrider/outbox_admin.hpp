// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/event.hpp"
#include "postrider/failed_attempt.hpp"
#include "postrider/filter_list.hpp"
#include "postrider/retry_policy.hpp"
#include "postrider/storage.hpp"

namespace postrider {

enum class EventStatus : std::int16_t { fresh = 0, done = 1, retry = 2, dead = 3 };

/// NEW, DONE, RETRY, DEAD.
[[nodiscard]] std::string_view to_string(EventStatus status) noexcept;

/// Which pending events (NEW, RETRY) are meant; what is not set matches all. A list that is set and empty
/// matches nothing, see FilterList. At most 10,000 values in all lists together.
struct OutboxFilter {
  FilterList<EventId> ids{};
  FilterList<std::string> types{};
  FilterList<EventStatus> statuses{};  ///< fresh, retry
  std::optional<std::string> aggregate_type{};
  std::optional<std::string> aggregate_id{};
  std::optional<std::string> tenant_id{};
  std::optional<std::string> owner{};           ///< which node has it, or had it last
  std::optional<Duration> older_than{};         ///< published this long ago, or longer
  std::optional<std::string> error_contains{};  ///< part of the last error; upper and lower case differ
  std::optional<std::int32_t> attempts_at_least{};
  /// Available for this long, or longer: neither delivered nor failed since it was published, or since it was
  /// to be retried. Either a node has it and does not come to an end, or nobody takes it.
  std::optional<Duration> stuck_for{};
  /// Available at a later time, because it was published so or waits for a retry; no node has it.
  std::optional<bool> delayed{};
};

/// Which dead letters are meant; what is not set matches all. A list that is set and empty matches nothing.
struct DeadLetterFilter {
  FilterList<EventId> ids{};  ///< any of these
  std::optional<std::string> type{};
  std::optional<std::string> aggregate_type{};
  std::optional<std::string> aggregate_id{};
  std::optional<std::string> tenant_id{};
  std::optional<std::string> error_contains{};  ///< upper and lower case differ
  std::optional<TimePoint> died_after{};        ///< inclusive
  std::optional<TimePoint> died_before{};       ///< exclusive
};

/// A row as it is in the table; `payload` as text or bytes, also when it could not be decoded into an Event.
struct OutboxRecord {
  EventId id{};
  std::string type{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string tenant_id{};
  std::string ordering_key{};
  std::string headers_json{};
  std::string payload{};
  PayloadKind payload_kind = PayloadKind::json;
  EventStatus status = EventStatus::fresh;
  Attempt attempts{};
  TimePoint occurred_at{};
  TimePoint created_at{};
  TimePoint available_at{};
  std::optional<TimePoint> done_at{};  ///< when it became DONE or DEAD
  std::string last_error{};
  std::string owner{};  ///< which node works on it, empty when none
  /// Until when others than `owner` leave it alone. Without one it is no lease: claims pass the event over
  /// until then, because it waits behind its key.
  std::optional<TimePoint> lease_until{};
  std::int64_t seq = 0;  ///< in order of publication; its place among those of its key
  /// Attempts that failed, oldest first, also those before a replay. Only of OutboxAdmin::find: lists leave
  /// it out.
  std::vector<FailedAttempt> history{};
};

struct OutboxCounts {
  std::int64_t pending = 0;  ///< NEW and RETRY
  /// Of these, tried and not taken: after a failure (RETRY), or because the receiver is away.
  std::int64_t retrying = 0;
  std::int64_t done = 0;  ///< not yet purged
  std::int64_t dead = 0;
  Duration
      oldest_pending{};  ///< age of the pending row that has been due for longest; zero when none is overdue
  /// How long the oldest pending event waits: since it was published when it is being retried, which
  /// `oldest_pending` does not see, else since it fell due. What is planned for later does not wait.
  Duration oldest_undelivered{};
  std::string last_error{};  ///< of the `retrying` one that was tried last, when it is known
};

struct PurgeOptions {
  EventStatus status = EventStatus::done;  ///< done or dead
  Duration older_than = std::chrono::hours{24 * 7};
  std::size_t batch_size = 1000;  ///< rows per transaction, 1 to 10,000
  /// Stop after this many rows, to fit a maintenance window.
  std::optional<std::size_t> at_most{};
  bool dry_run = false;  ///< only count
};

/// How dead letters come back, see OutboxAdmin::replay_some.
struct ReplayOptions {
  std::size_t at_most = 10'000;  ///< of one call, 1 to 10,000
  /// Events per second, 1 to 100,000: they fall due one after the other, so that receivers are not flooded.
  /// Not given: all at once.
  std::optional<std::int32_t> rate{};
  Duration start_in{};  ///< when the first is due, from now on
};
struct Replayed {
  std::int64_t events = 0;
  std::int64_t left = 0;  ///< that match and are still dead
  /// When the next one would fall due, from now on: `start_in` of the call that goes on.
  Duration next_in{};
};

/// What an operator does with an outbox. Thread-safe; works whether the outbox runs or not, from any process.
class OutboxAdmin {
 public:
  /// `requeue` and `cancel` work in small transactions. Told after each how many events are changed so far,
  /// `go_on` may end them: what is changed stays so.
  explicit OutboxAdmin(Storage& storage, std::function<bool(std::int64_t changed)> go_on = {})
      : storage_(storage), go_on_(std::move(go_on)) {}

  [[nodiscard]] OutboxCounts counts();
  /// Any row by its id, with its history.
  [[nodiscard]] std::optional<OutboxRecord> find(const EventId& id);

  /// What is not finished, without payloads and headers: by the time at which somebody may take it, earliest
  /// first. `after` is the last record of the page before.
  [[nodiscard]] std::vector<OutboxRecord> pending(const OutboxFilter& filter = {}, std::size_t limit = 100,
                                                  const OutboxRecord* after = nullptr);
  /// The same for what has been available for this long, see OutboxFilter::stuck_for.
  [[nodiscard]] std::vector<OutboxRecord> stuck(Duration stuck_for, std::size_t limit = 100,
                                                const OutboxRecord* after = nullptr);

  /// Takes pending events from the nodes that have them, and ends the wait of those that are to be retried:
  /// due now, attempts as they are. A node that still works on one is fenced: its result will be refused,
  /// unless the same node takes the event again and goes on with it.
  ///
  /// An event with an ordering key that a node has is due when the node's lease ends, which it cannot renew
  /// any more, and so is what the node has of the key behind it: until then the node may be running them.
  ///
  /// With `delayed = true` in the filter, and only then: also what was published for a later time.
  ///
  /// Returns how many; with `dry_run` how many there would be. What somebody's transaction holds right now is
  /// passed over: call again.
  std::int64_t requeue(const OutboxFilter& filter, bool dry_run = false);
  /// Pending events become dead letters, with the error "cancelled: <reason>"; they can be replayed like any
  /// other. A node that works on one is fenced. If it has an ordering key, the next event of the key that is
  /// there already waits for the end of the node's lease. Otherwise as `requeue`.
  std::int64_t cancel(const OutboxFilter& filter, std::string_view reason, bool dry_run = false);

  /// Oldest death first; `after` is the last record of the page before.
  [[nodiscard]] std::vector<OutboxRecord> dead_letters(const DeadLetterFilter& filter = {},
                                                       std::size_t limit = 100,
                                                       const OutboxRecord* after = nullptr);
  [[nodiscard]] std::int64_t count_dead_letters(const DeadLetterFilter& filter = {});
  /// Makes them NEW again with no attempts, due now; their last error stays until the next one. Returns how
  /// many; with `dry_run` how many there would be.
  std::int64_t replay_dead_letters(const DeadLetterFilter& filter, bool dry_run = false);
  /// The same for those that died first, a bounded number, spread over time when there is a rate. The rest
  /// stays as it is: call again.
  Replayed replay_some(const DeadLetterFilter& filter, const ReplayOptions& options = {});
  /// Gives a dead letter a corrected payload (checked like a new event's) and, when given, headers; it stays
  /// dead until replayed. Returns false when there is no dead letter with this id.
  bool edit_dead_letter(const EventId& id, PayloadKind kind, std::string payload,
                        std::optional<Headers> headers = {});

  /// Deletes finished rows in small transactions. Returns how many.
  std::int64_t purge(const PurgeOptions& options = {});

 private:
  Storage& storage_;
  std::function<bool(std::int64_t)> go_on_;
};

}  // namespace postrider
