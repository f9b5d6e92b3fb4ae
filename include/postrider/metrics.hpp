// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "postrider/clock.hpp"

namespace postrider {

enum class LossReason : std::uint8_t;
struct LoggerStats;
struct ProjectionStatus;

/// Where the engines count. Called from any thread, at times many thousand times a second: be quick, don't
/// throw. Every method does nothing by default: override what you want to see.
class MetricsExporter {
 public:
  virtual ~MetricsExporter() = default;

  // Outbox counters.
  virtual void increment_hot_enqueued() {}
  /// The hot queue was full: the row stays NEW in the database and the poller brings it.
  virtual void increment_hot_dropped() {}
  virtual void increment_cold_enqueued() {}
  virtual void increment_dispatch_success() {}
  virtual void increment_dispatch_failure() {}
  virtual void increment_dispatch_dead() {}
  /// A result arrived after the row's lease had gone to somebody else; the newer owner decides.
  virtual void increment_stale_completions(std::size_t) {}
  /// Writing results to the database failed; it is tried again.
  virtual void increment_flush_failures() {}
  virtual void increment_poll_failures() {}

  // Outbox gauges.
  virtual void record_queue_depths(std::size_t /*hot*/, std::size_t /*cold*/) {}
  virtual void record_oldest_lag(Duration) {}
  virtual void record_in_flight(std::size_t) {}

  // Outbox histograms.
  /// From handing the event to the queue to entering the first listener.
  virtual void observe_queue_wait(Duration) {}
  /// All listeners of one event.
  virtual void observe_listener_time(Duration) {}
  virtual void observe_flush(std::size_t /*events*/, Duration) {}
  virtual void observe_claim(std::size_t /*events*/, Duration) {}

  // Queue counters.
  virtual void increment_queue_published(std::size_t /*events*/) {}
  virtual void increment_queue_completed() {}
  /// Ended in the log with errors, or as FAILED.
  virtual void increment_queue_completed_with_errors() {}
  virtual void increment_queue_retried() {}
  /// No handler here is registered for the event; it stays in the queue.
  virtual void increment_queue_unhandled() {}
  virtual void increment_queue_quarantined(std::size_t /*events*/) {}
  /// A result came after the claim had gone to somebody else; nothing was written.
  virtual void increment_queue_stale(std::size_t /*events*/) {}
  virtual void increment_queue_claim_failures() {}
  virtual void increment_queue_settle_failures() {}
  virtual void increment_handler_failures() {}

  // Queue histograms.
  virtual void observe_queue_claim(std::size_t /*events*/, Duration) {}
  virtual void observe_queue_settle(std::size_t /*events*/, Duration) {}
  /// All handlers of one event.
  virtual void observe_handler_time(Duration) {}

  // Projection counters.
  /// Entries that are in a view now: their transaction is committed.
  virtual void increment_projection_handled(std::size_t /*entries*/) {}
  /// A batch was undone, because `handle` threw or the database failed; it is tried again.
  virtual void increment_projection_failures() {}
  /// An entry was given up (PoisonPolicy::skip).
  virtual void increment_projection_skipped() {}
  /// Projection gauges: lag in events and time, position, state, owner. For each projection that this node
  /// has, whoever runs it, six times per lease and after each `run_once`.
  virtual void record_projection(const ProjectionStatus&) {}

  // Event store.
  virtual void increment_stream_appended(std::size_t /*events*/) {}
  virtual void increment_stream_conflicts() {}
  /// One transaction: how many appends shared it.
  virtual void observe_stream_flush(std::size_t /*appends*/, Duration) {}
  /// One page of a read: how many events came with it. The relay's own reads are `observe_relay_read`.
  virtual void observe_stream_read(std::size_t /*events*/, Duration) {}

  // Relay counters.
  virtual void increment_relay_published(std::size_t /*events*/) {}
  /// A batch was not, or not wholly, taken by its publisher.
  virtual void increment_relay_failures() {}
  virtual void increment_relay_dead_letters() {}
  /// Progress came too late: somebody else leads the pair, or has moved it.
  virtual void increment_relay_refused_writes(std::size_t /*pairs*/) {}
  /// This node has begun, or ceased, to lead.
  virtual void increment_relay_leader_changes() {}
  /// Relay gauge.
  virtual void record_relay_led(std::size_t /*pairs*/) {}
  // Relay histograms.
  /// One read of the store: for all pairs at the head (`tail`), or by one that is behind.
  virtual void observe_relay_read(std::size_t /*events*/, bool /*tail*/, Duration) {}
  virtual void observe_relay_publish(std::size_t /*events*/, Duration) {}

  // Logger counters.
  virtual void increment_logger_sent(std::uint64_t /*events*/) {}
  virtual void increment_logger_spilled(std::uint64_t /*events*/) {}
  virtual void increment_logger_replayed(std::uint64_t /*events*/) {}
  virtual void increment_logger_dead(std::uint64_t /*events*/) {}
  virtual void increment_logger_lost(LossReason, std::uint64_t /*events*/) {}

  /// Logger gauges: queue depth, circuit, backlog, and all counters. At each replay interval and at the end.
  virtual void record_logger(const LoggerStats&) {}

  /// Counts nothing. Lives for ever.
  [[nodiscard]] static MetricsExporter& none() noexcept;
};

}  // namespace postrider
