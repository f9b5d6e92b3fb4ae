// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <boost/json/object.hpp>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/api/access.hpp"
#include "app/api/event_log_api.hpp"
#include "app/api/retention.hpp"
#include "app/api/routes.hpp"
#include "app/api/token_file.hpp"
#include "app/api/write_trouble.hpp"
#include "app/config/daemon_config.hpp"
#include "app/daemon/engines.hpp"
#include "app/daemon/figures.hpp"
#include "app/daemon/live_feed.hpp"
#include "app/daemon/sink_set.hpp"
#include "app/daemon/spill_api.hpp"
#include "app/daemon/storage_starter.hpp"
#include "app/daemon/vitals.hpp"
#include "app/http/server.hpp"
#include "app/metrics/prometheus_metrics.hpp"
#include "postrider/event_store.hpp"

namespace postrider::daemon {

/// Everything that `postrider serve` runs. It listens at once, and waits for a database that is away.
class Daemon {
 public:
  /// Throws Error for options that do not fit together. Touches neither database nor brokers.
  Daemon(config::DaemonConfig config, LogCallback log);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Listens from its return on; the engines start when the database is there.
  void start();
  /// Finishes what has begun within the drain timeout, and hands leadership over. False when something was
  /// cut.
  bool stop();

  /// Waits until the first attempt to reach the database has ended, or the time is over.
  void await_first_attempt(Duration timeout) const { (void)starter_.load()->await_first(timeout); }
  /// The engines run.
  [[nodiscard]] bool ready() const;
  /// The database did not answer when it was last asked, a second ago at most.
  [[nodiscard]] bool known_away() const;
  /// Set when waiting is of no use, for example because the database is newer than this program.
  [[nodiscard]] std::exception_ptr failure() const;
  /// What it waits for, or does, in a line.
  [[nodiscard]] std::string phase_text() const;
  /// What keeps its first attempt at the database, while that is under way: the log tells it afterwards.
  [[nodiscard]] std::string untold_trouble() const;
  /// See Vitals. One thread asks, from `start` to `stop`.
  [[nodiscard]] std::string hanging(SteadyPoint now, Duration patience) {
    return vitals_->hanging(now, patience);
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return server_->port(); }
  [[nodiscard]] std::string url() const;
  [[nodiscard]] const Storage& storage() const noexcept { return *storage_; }
  /// Of the Event Log API: taken, and nobody was told yet whether they are stored.
  [[nodiscard]] std::size_t unfinished_entries() const noexcept;
  [[nodiscard]] std::size_t connections() const { return server_->stats().connections; }
  [[nodiscard]] const config::DaemonConfig& config() const noexcept { return config_; }

  /// Takes over what can be changed while running: tokens, certificate and key. Sinks that were switched off
  /// by their receivers are tried again. Throws Error for what is none of these: then all stays as it is.
  void reload(const config::DaemonConfig& config);

 private:
  void add_routes(http::Router& router);
  /// Those of the file. Without a single good one everybody is refused, and the log says so.
  [[nodiscard]] std::vector<api::TokenRecord> read_tokens(const config::DaemonConfig& config) const;
  /// What works on the tables.
  void begin_work();
  void stop_engines();
  [[nodiscard]] std::string metrics_text();
  [[nodiscard]] boost::json::object overview();
  [[nodiscard]] http::Response ready_response(const http::Request& request);

  const config::DaemonConfig config_;
  const LogCallback log_;
  metrics::PrometheusMetrics metrics_;
  std::unique_ptr<Storage> storage_;
  SinkSet sinks_;
  Engines engines_;
  FigureBoard figures_;
  api::Access access_;
  EventStore store_;
  api::WriteTrouble write_trouble_;
  LiveFeed live_;
  SpillBoard spill_;
  const SteadyPoint started_ = Clock::system().steady_now();
  std::optional<api::EventLogApi> event_log_;
  std::optional<api::Retention> retention_;
  std::unique_ptr<http::Server> server_;
  std::optional<Vitals> vitals_;
  std::atomic<bool> stopping_{false};
  std::optional<StorageStarter> owned_starter_;
  std::atomic<StorageStarter*> starter_{nullptr};  // requests are answered before it is there
};

}  // namespace postrider::daemon
