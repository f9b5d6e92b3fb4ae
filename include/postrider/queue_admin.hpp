// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/event.hpp"
#include "postrider/failed_attempt.hpp"
#include "postrider/filter_list.hpp"
#include "postrider/queued_event.hpp"
#include "postrider/storage.hpp"

namespace postrider {

/// Which events are meant; what is not set matches all. A list that is set and empty matches nothing, see
/// FilterList. At most 10,000 values in all lists together.
struct QueueFilter {
  FilterList<QueueId> ids{};
  FilterList<EventId> event_ids{};
  FilterList<std::string> types{};
  std::optional<std::string> tenant_id{};
  FilterList<QueueStatus> statuses{};
  /// In the queue: published this long ago, or longer. In the log: finished.
  std::optional<Duration> older_than{};
  /// In the queue: part of the last error. In the log: part of any handler's. Upper and lower case differ.
  std::optional<std::string> error_contains{};
  std::optional<std::int32_t> attempts_at_least{};
  /// Queue only: PROCESSING, and begun or last touched this long ago, or longer.
  std::optional<Duration> stuck_for{};
  /// Queue only.
  std::optional<bool> quarantined{};
  /// Queue only: PENDING, and due at a later time, because it was published so or waits for a retry.
  std::optional<bool> delayed{};
};

/// A row of the queue as it is; `payload` as text or bytes, also when it cannot be decoded into an Event.
struct QueueRecord {
  QueueId id{};
  std::string event_id{};
  std::string type{};
  std::string aggregate_type{};
  std::string aggregate_id{};
  std::string tenant_id{};
  std::string ordering_key{};
  std::string dedupe_key{};
  std::string headers_json{};
  std::string payload{};
  PayloadKind payload_kind = PayloadKind::json;
  QueueStatus status = QueueStatus::pending;
  int priority = 0;
  std::int32_t attempts = 0;
  std::int32_t crashes = 0;
  Token token{};
  TimePoint occurred_at{};
  TimePoint created_at{};
  TimePoint updated_at{};
  TimePoint available_at{};
  std::optional<TimePoint> processing_started_at{};
  std::optional<TimePoint> lease_until{};
  std::optional<TimePoint> quarantined_at{};
  std::string owner{};  ///< which worker holds it, empty when none
  std::string last_error{};
  /// Attempts that failed, oldest first. Only of QueueAdmin::find: lists leave it out.
  std::vector<FailedAttempt> history{};
};

struct QueueCounts {
  std::int64_t pending = 0;  ///< PENDING and due: workers could take them now
  std::int64_t delayed = 0;  ///< PENDING, due later: published so, or waiting for a retry
  std::int64_t processing = 0;
  std::int64_t abandoned = 0;  ///< of these, those whose worker has let the lease run out
  std::int64_t quarantined = 0;
  Duration oldest_pending{};  ///< for how long the oldest of `pending` has been due
};

struct LogCounts {
  std::int64_t completed = 0;
  std::int64_t completed_with_errors = 0;
  std::int64_t failed = 0;
};

struct LogPurgeOptions {
  Duration older_than = std::chrono::hours{24 * 30};  ///< finished this long ago, or longer
  std::size_t batch_size = 1000;                      ///< rows per transaction, 1 to 10,000
  /// Stop after this many rows, to fit a maintenance window.
  std::optional<std::size_t> at_most{};
  /// Keep what a projection has not read yet. A version that nobody runs any more holds everything back:
  /// ProjectionAdmin::forget it.
  bool keep_unread = true;
  bool dry_run = false;  ///< only count
  /// Of these, only those that match: the others stay where they are. Fields that are about the queue alone
  /// are refused.
  QueueFilter filter{};
};

/// What QueueAdmin::purge_log has done.
struct LogPurged {
  struct Unread {
    std::string name{};
    int version = 0;
    LogSeq position{};  ///< how far it has read
  };
  std::int64_t deleted = 0;  ///< with `dry_run` how many there would be
  /// Not empty when older entries were left because projections have yet to read them (`keep_unread`): the
  /// projections that are furthest behind.
  std::vector<Unread> held_back_by{};
  /// The same for people, with what to do about it; empty when nothing was held back.
  [[nodiscard]] std::string why() const;
};

/// What an operator does with the queue and its log. Thread-safe; works whether anybody runs workers or not,
/// from any process. Verbs that change something work in small transactions, each event once, and return how
/// many they changed; with `dry_run` how many there would be. An event that somebody's transaction holds
/// right now is passed over: call again.
class QueueAdmin {
 public:
  /// What changes many events does so in small transactions. Told after each how many are changed so far,
  /// `go_on` may end it: what is changed stays so.
  explicit QueueAdmin(Storage& storage, std::function<bool(std::int64_t changed)> go_on = {})
      : storage_(storage), go_on_(std::move(go_on)) {}

  [[nodiscard]] QueueCounts counts(const QueueFilter& filter = {});
  /// Walks through the whole log: slow when it is long.
  [[nodiscard]] LogCounts log_counts(const QueueFilter& log_filter = {});
  /// How many events in the queue have been claimed how many times.
  [[nodiscard]] std::map<std::int32_t, std::int64_t> attempts(const QueueFilter& filter = {});

  /// What is in the queue, by id; `after` is the last id of the page before. The log is read by EventLog.
  [[nodiscard]] std::vector<QueueRecord> list(const QueueFilter& filter = {}, std::size_t limit = 100,
                                              QueueId after = {});
  /// PROCESSING for this long, or longer.
  [[nodiscard]] std::vector<QueueRecord> stuck(Duration stuck_for, std::size_t limit = 100,
                                               QueueId after = {});
  /// What is in the queue under this number, with its history.
  [[nodiscard]] std::optional<QueueRecord> find(QueueId id);

  /// PROCESSING → PENDING, due now. The worker that had it is fenced: its result will be refused.
  ///
  /// With `delayed = true` in the filter, and only then: those that are due at a later time are due now.
  std::int64_t requeue(const QueueFilter& filter, bool dry_run = false);
  /// Out of the queue, into the log as FAILED; `reason` stands there as the error of handler "(cancelled)",
  /// behind what handlers had said before. A worker that has the event is fenced.
  std::int64_t cancel(const QueueFilter& filter, std::string_view reason, bool dry_run = false);
  /// Out of quarantine: no crashes, due now.
  std::int64_t release(const QueueFilter& filter, bool dry_run = false);
  /// Publishes finished events again: new rows in the queue with the same event id and no attempts, due now,
  /// in the order of the log. Their entries stay; the new runs will have entries of their own.
  std::int64_t replay(const QueueFilter& log_filter, bool dry_run = false);
  /// Deletes the oldest entries of the log, in order, up to the first that is too young.
  LogPurged purge_log(const LogPurgeOptions& options = {});

 private:
  Storage& storage_;
  std::function<bool(std::int64_t)> go_on_;
};

}  // namespace postrider
