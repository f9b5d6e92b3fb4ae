// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "postrider/queued_event.hpp"

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
};

/// Which entries are wanted; what is empty matches all.
struct LogFilter {
  std::vector<QueueStatus> statuses{};
  std::vector<std::string> types{};
};

struct LogPage {
  std::vector<LogEntry> entries{};
  LogSeq scanned_to{};  ///< go on after this one
};

}  // namespace postrider
