// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "app/config/daemon_config.hpp"
#include "app/daemon/maintenance.hpp"
#include "app/daemon/recaller.hpp"
#include "app/daemon/routes.hpp"
#include "app/daemon/sink_set.hpp"
#include "app/metrics/prometheus_metrics.hpp"
#include "postrider/outbox.hpp"
#include "postrider/relay.hpp"

namespace postrider::daemon {

/// What a configuration switches on, on one database.
class Engines {
 public:
  /// All outlive it.
  Engines(Storage& storage, const config::DaemonConfig& config, SinkSet& sinks,
          metrics::PrometheusMetrics& metrics, const LogCallback& log);
  ~Engines();
  Engines(const Engines&) = delete;
  Engines& operator=(const Engines&) = delete;

  void start();
  /// Delivers what has begun, hands leadership over. Idempotent.
  void stop();
  /// Events that wait for sinks are tried again now.
  void revive();

  /// Null when it is not switched on.
  [[nodiscard]] Relay* relay() noexcept { return relay_.get(); }
  [[nodiscard]] Outbox* outbox() noexcept { return outbox_.get(); }

 private:
  std::unique_ptr<Relay> relay_;
  std::unique_ptr<Routes> routes_;  // of the outbox
  std::unique_ptr<Outbox> outbox_;
  std::unique_ptr<Recaller> recaller_;  // of the outbox
  Maintenance maintenance_;
};

}  // namespace postrider::daemon
