// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "postrider/event_log.hpp"
#include "postrider/transaction.hpp"

namespace postrider {

/// The reading side of event_log and event_attempt. Thread-safe.
class LogStore {
 public:
  virtual ~LogStore() = default;

  /// Entries with a higher seq than `after`, in order, that match the filter. `scanned_to` in the result is
  /// how far the log was looked through: the next read goes on there, however few entries matched.
  virtual LogPage read(LogSeq after, std::size_t limit, const LogFilter& filter) = 0;
  /// The same the other way: entries with a lower seq than `before`, highest first. `scanned_to` is 0 when
  /// there is nothing below what was looked through.
  virtual LogPage read_back(LogSeq before, std::size_t limit, const LogFilter& filter) = 0;
  /// The highest sequence number, 0 when the log is empty. See QueueStore::sequence_log for entries
  /// that have none yet.
  virtual LogSeq head() = 0;
  /// With its history.
  virtual std::optional<LogEntry> find(QueueId id) = 0;
  /// The attempts of an event that failed, oldest first; it may be in the queue or in the log.
  virtual std::vector<FailedAttempt> attempts(QueueId id) = 0;
};

}  // namespace postrider
