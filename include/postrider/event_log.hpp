// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "postrider/failed_attempt.hpp"
#include "postrider/filter_list.hpp"
#include "postrider/queued_event.hpp"
#include "postrider/storage.hpp"

namespace postrider {

/// A finished event, as it stands in the log.
struct LogEntry {
  LogSeq seq{};
  QueueId id{};
  QueueStatus status = QueueStatus::completed;  ///< completed, completed_with_errors or failed
  /// Empty when the row cannot be made into an event; then `decode_error` says why.
  std::optional<Event> event{};
  std::string decode_error{};
  std::int32_t attempts = 0;
  std::int32_t crashes = 0;
  TimePoint created_at{};
  TimePoint processing_started_at{};
  TimePoint finalized_at{};
  /// What each handler said in the end.
  std::vector<HandlerResult> results{};
  /// Attempts that failed, oldest first, the last one included. Only of EventLog::find: pages leave it out.
  std::vector<FailedAttempt> history{};
};

/// Which entries are wanted; what is not set matches all. A list that is set and empty matches nothing.
struct LogFilter {
  FilterList<QueueStatus> statuses{};
  FilterList<std::string> types{};
  FilterList<EventId> event_ids{};  ///< the events' own
};

struct LogPage {
  std::vector<LogEntry> entries{};
  LogSeq scanned_to{};  ///< go on after this one
};

/// Finished events, in the order in which their end was committed: whoever has read up to an entry has not
/// missed any before it, however long ago that event was published. Thread-safe. To read it all, whatever is
/// added meanwhile:
///
///     LogSeq at{};
///     for (;;) {
///       const LogPage page = log.read(at);
///       for (const LogEntry& entry : page.entries) show(entry);
///       if (page.scanned_to == at) log.wait(at, 10s);
///       at = page.scanned_to;
///     }
///
/// A `Projection` does this for you, and remembers where it is.
class EventLog {
 public:
  /// `clock` is what `wait` waits by; default: Clock::system().
  explicit EventLog(Storage& storage, Clock* clock = nullptr) noexcept;

  /// Up to `limit` (1 to 10,000) entries behind `after`. Fewer does not mean that the end is reached: pages
  /// are cut when payloads are large or the filter matches little. At the end `scanned_to` is `after`.
  [[nodiscard]] LogPage read(LogSeq after, std::size_t limit = 100, const LogFilter& filter = {});
  /// The last entry's number; 0 when the log is empty.
  [[nodiscard]] LogSeq head();
  /// With its history.
  [[nodiscard]] std::optional<LogEntry> find(QueueId id);

  /// Waits until there is an entry behind `after`, at most for `timeout`. Returns the head: not above `after`
  /// when the time was over first. Looks at once when something was finished through this Storage object, and
  /// for what others do after 100 ms, then less and less often, up to once a second.
  [[nodiscard]] LogSeq wait(LogSeq after, Duration timeout) POSTRIDER_EXCLUDES(mutex_);
  /// Those who wait look now, because of something that was finished elsewhere.
  void wake() noexcept POSTRIDER_EXCLUDES(mutex_);

 private:
  Storage& storage_;
  Clock& clock_;
  Mutex mutex_;
  CondVar woken_;
  std::uint64_t wakes_ POSTRIDER_GUARDED_BY(mutex_) = 0;
};

}  // namespace postrider
