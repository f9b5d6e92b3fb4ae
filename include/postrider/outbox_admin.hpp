// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/event.hpp"
#include "postrider/failed_attempt.hpp"
#include "postrider/filter_list.hpp"
#include "postrider/retry_policy.hpp"

namespace postrider {

class OutboxAdminStore;

enum class EventStatus : std::int16_t { fresh = 0, done = 1, retry = 2, dead = 3 };

/// NEW, DONE, RETRY, DEAD.
[[nodiscard]] std::string_view to_string(EventStatus status) noexcept;

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
  /// Attempts that failed, oldest first, also those before a replay. Only of OutboxAdmin::find: lists leave
  /// it out.
  std::vector<FailedAttempt> history{};
};

struct OutboxCounts {
  std::int64_t pending = 0;   ///< NEW and RETRY
  std::int64_t retrying = 0;  ///< of these, RETRY
  std::int64_t done = 0;      ///< not yet purged
  std::int64_t dead = 0;
  Duration
      oldest_pending{};  ///< age of the pending row that has been due for longest; zero when none is overdue
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
  explicit OutboxAdmin(OutboxAdminStore& store) noexcept : store_(store) {}

  [[nodiscard]] OutboxCounts counts();
  /// Any row by its id, with its history.
  [[nodiscard]] std::optional<OutboxRecord> find(const EventId& id);

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
  OutboxAdminStore& store_;
};

}  // namespace postrider
