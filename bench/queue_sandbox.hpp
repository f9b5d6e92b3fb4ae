// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bare_queue.hpp"
#include "drain_metrics.hpp"
#include "sandbox.hpp"

namespace postrider::bench {

/// The queue and its log in a sandbox.
class QueueSandbox {
 public:
  QueueSandbox(BackendKind kind, const std::string& schema)
      : sandbox_(kind, schema), queue_(sandbox_.table("event_queue")), log_(sandbox_.table("event_log")) {}

  [[nodiscard]] Storage& storage() noexcept { return sandbox_.storage(); }
  [[nodiscard]] const std::string& url() const noexcept { return sandbox_.url(); }
  [[nodiscard]] const std::string& schema() const noexcept { return sandbox_.schema(); }
  [[nodiscard]] BareQueueOptions bare() const;

  /// Empties both.
  void clear();
  /// Adds pending events by plain SQL, as another program would. 200-byte payloads.
  void seed(std::size_t rows);
  /// Throws unless the queue is empty and the log has exactly `rows` entries, each event once, completed and
  /// numbered.
  void expect_all_logged(std::size_t rows);
  /// Starts a manager on what is pending, with its defaults and a handler that does nothing; returns the rate
  /// at which `rows` events came into the log.
  double drain(std::size_t rows, DrainMetrics& metrics);

 private:
  Sandbox sandbox_;
  std::string queue_;
  std::string log_;
  std::size_t seeded_ = 0;
};

}  // namespace postrider::bench
