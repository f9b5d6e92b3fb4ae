// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "app/config/daemon_config.hpp"
#include "app/metrics/prometheus_metrics.hpp"
#include "core/periodic_task.hpp"
#include "postrider/clock.hpp"
#include "postrider/log.hpp"
#include "postrider/storage.hpp"

namespace postrider::daemon {

/// Looks after the tables at `queue.cleanup-interval-ms`, in small transactions: removes finished rows of the
/// outbox and entries of the queue's log that are old enough, and what handlers have stored about events that
/// are finished; tells of events that their workers have abandoned and that nobody takes. These stay as they
/// are: the next worker that claims one counts the crash, which a daemon that gave them back would hide. Any
/// number of nodes may do it. A database that is away is told once, and tried again.
class Maintenance {
 public:
  /// `storage` and `metrics` outlive it.
  Maintenance(Storage& storage, const config::DaemonConfig& config, metrics::PrometheusMetrics& metrics,
              Clock& clock, LogCallback log);
  ~Maintenance() { stop(); }
  Maintenance(const Maintenance&) = delete;
  Maintenance& operator=(const Maintenance&) = delete;

  void start();
  /// After the transaction that is under way.
  void stop();

 private:
  void run() noexcept;
  /// Returns whether something was removed.
  bool purge_some();
  void look_for_abandoned();

  Storage& storage_;
  metrics::PrometheusMetrics& metrics_;
  const config::DaemonConfig::Outbox outbox_;
  const config::DaemonConfig::Queue queue_;
  const LogCallback log_;
  std::atomic<bool> stopping_{false};
  // The task's thread only.
  bool failing_ = false;
  bool told_of_abandoned_ = false;
  PeriodicTask task_;
};

}  // namespace postrider::daemon
