// SPDX-License-Identifier: Apache-2.0
// Rows of the queue's tables written by SQL, for tests of what reads and administers them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "postrider/clock.hpp"
#include "postrider/queued_event.hpp"
#include "support/backend.hpp"

namespace postrider::test {

/// A finished event; what is not given is made up.
struct LogRow {
  std::int64_t id = 0;
  std::optional<std::int64_t> seq{};  ///< default: the next one
  QueueStatus status = QueueStatus::completed;
  std::string event_id{};  ///< default: "e<id>"
  std::string type = "Happened";
  std::string tenant{};
  std::string key{};
  std::string headers{};
  std::string payload = "{}";
  std::optional<std::string> bytes{};  ///< instead of the payload
  std::int32_t attempts = 1;
  std::optional<TimePoint> finalized_at{};  ///< default: now
  std::string results{};
};

/// An event in the queue.
struct PendingRow {
  std::int64_t id = 0;
  QueueStatus status = QueueStatus::pending;
  std::string event_id{};  ///< default: "e<id>"
  std::string type = "Happened";
  std::string tenant{};
  std::string payload = "{}";
  std::int32_t priority = 0;
  std::int32_t attempts = 0;
  std::int32_t crashes = 0;
  std::int64_t token = 0;
  std::string owner{};
  std::string error{};
  Duration available_in{};
  std::optional<Duration> started_ago{};
  Duration updated_ago{};
  Duration created_ago{};
  std::optional<Duration> lease{};
  bool quarantined = false;
};

/// Times are `clock`'s.
class QueueRows {
 public:
  QueueRows(TestDatabase& database, Clock& clock) : database_(database), clock_(clock) {}

  void log(const LogRow& row);
  /// The same inside a transaction of the test's.
  void log(Tx& tx, const LogRow& row);
  void queue(const PendingRow& row);
  /// The last number that `log` has given.
  [[nodiscard]] std::int64_t last_seq() const noexcept { return last_seq_; }
  /// One cell as text; empty when there is no row or it is NULL.
  [[nodiscard]] std::string cell(const std::string& sql);
  /// For SQL of the test's own.
  void run(const std::string& sql);
  /// An expression for this time.
  [[nodiscard]] std::string time(TimePoint at) const;

 private:
  TestDatabase& database_;
  Clock& clock_;
  std::int64_t last_seq_ = 0;
};

}  // namespace postrider::test
