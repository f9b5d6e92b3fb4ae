// SPDX-License-Identifier: Apache-2.0
// The queue's tables as the tests read them, with SQL of their own. An empty text stands for NULL.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "postrider/queued_event.hpp"

namespace postrider::conformance {

struct QueueRow {
  std::int64_t id = 0;
  std::string event_id{};
  std::string type{};
  std::string key{};
  std::string dedupe{};
  int priority = 0;
  QueueStatus status = QueueStatus::pending;
  std::int64_t attempts = 0;
  std::int64_t crashes = 0;
  std::int64_t token = 0;
  TimePoint available{};
  TimePoint created{};
  std::optional<TimePoint> started{};  ///< processing_started_at
  std::string owner{};
  std::optional<TimePoint> lease_until{};
  std::string error{};
  std::optional<TimePoint> quarantined{};
  friend bool operator==(const QueueRow&, const QueueRow&) = default;
};

struct LogRow {
  std::int64_t seq = 0;  ///< 0: none yet
  std::int64_t id = 0;
  std::int64_t token = 0;
  std::string event_id{};
  std::string key{};
  int priority = 0;
  QueueStatus status = QueueStatus::completed;
  std::int64_t attempts = 0;
  std::int64_t crashes = 0;
  TimePoint created{};
  std::optional<TimePoint> started{};
  TimePoint finalized{};
  std::vector<HandlerResult> results{};
  friend bool operator==(const LogRow&, const LogRow&) = default;
};

struct StateRow {
  std::int64_t id = 0;
  HandlerResult result{};
  friend bool operator==(const StateRow&, const StateRow&) = default;
};

std::ostream& operator<<(std::ostream& out, const QueueRow& row);
std::ostream& operator<<(std::ostream& out, const LogRow& row);
std::ostream& operator<<(std::ostream& out, const StateRow& row);

}  // namespace postrider::conformance
