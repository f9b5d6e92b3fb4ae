// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "postrider/detail/sync.hpp"
#include "postrider/metrics.hpp"
#include "postrider/outbox_admin.hpp"
#include "postrider/relay_admin.hpp"

namespace postrider::metrics {

/// Rows that the daemon has removed, because they were old or of no use any more.
struct Removed {
  std::int64_t outbox = 0;
  std::int64_t queue_log = 0;
  std::int64_t handler_states = 0;
};

/// What the engines count, for Prometheus. Thread-safe; counting takes no lock but the library's own.
class PrometheusMetrics final : public MetricsExporter {
 public:
  PrometheusMetrics();
  ~PrometheusMetrics() override;

  /// All of it, in the text format 0.0.4.
  [[nodiscard]] std::string text() const;
  static constexpr const char* content_type = "text/plain; version=0.0.4; charset=utf-8";

  void increment_hot_enqueued() override;
  void increment_hot_dropped() override;
  void increment_cold_enqueued() override;
  void increment_dispatch_success() override;
  void increment_dispatch_failure() override;
  void increment_dispatch_dead() override;
  void increment_stale_completions(std::size_t events) override;
  void increment_flush_failures() override;
  void increment_poll_failures() override;
  void record_queue_depths(std::size_t hot, std::size_t cold) override;
  void record_oldest_lag(Duration lag) override;
  void record_in_flight(std::size_t events) override;
  void observe_queue_wait(Duration time) override;
  void observe_listener_time(Duration time) override;
  void observe_flush(std::size_t events, Duration time) override;
  void observe_claim(std::size_t events, Duration time) override;

  void increment_stream_appended(std::size_t events) override;
  void increment_stream_conflicts() override;
  void observe_stream_flush(std::size_t appends, Duration time) override;
  void observe_stream_read(std::size_t events, Duration time) override;

  void increment_relay_published(std::size_t events) override;
  void increment_relay_failures() override;
  void increment_relay_dead_letters() override;
  void increment_relay_refused_writes(std::size_t pairs) override;
  void increment_relay_leader_changes() override;
  void record_relay_led(std::size_t pairs) override;
  void observe_relay_read(std::size_t events, bool tail, Duration time) override;
  void observe_relay_publish(std::size_t events, Duration time) override;

  // What is not counted but looked at; see daemon/figures.
  void record_outbox(const OutboxCounts& counts);
  /// How often, since the start, the database did not take what engines had to write: results, claims, what
  /// maintenance does.
  [[nodiscard]] std::uint64_t failed_writes() const;
  void record_queue(std::int64_t pending, std::int64_t delayed, std::int64_t processing,
                    std::int64_t abandoned, std::int64_t quarantined, Duration oldest);
  /// All that there are: what was recorded of others is gone.
  void record_pairs(std::span<const PairStatus> pairs) POSTRIDER_EXCLUDES(pairs_);
  void record_database(bool reachable);
  /// `failures` counts since the start, and never falls.
  void record_sink(const std::string& name, const std::string& type, bool up, bool circuit_open,
                   std::uint64_t failures) POSTRIDER_EXCLUDES(sinks_);
  // What the daemon does by itself; see daemon/maintenance.
  void count_removed(const Removed& removed);
  void count_maintenance_failure();

 private:
  struct Families;
  std::unique_ptr<Families> families_;
  Mutex pairs_;  // one may look while another one does
  Mutex sinks_;  // two scrapes at once would count the same failures
};

}  // namespace postrider::metrics
