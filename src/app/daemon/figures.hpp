// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/daemon/blocker.hpp"
#include "app/metrics/prometheus_metrics.hpp"
#include "core/periodic_task.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/outbox_admin.hpp"
#include "postrider/queue_admin.hpp"
#include "postrider/relay_admin.hpp"

namespace postrider::daemon {

/// How things stand, all read within one moment.
struct Figures {
  TimePoint at{};
  bool database_up = false;
  std::string trouble{};  ///< why the database is not
  OutboxCounts outbox{};
  QueueCounts queue{};
  Position head{};
  std::vector<PairStatus> pairs{};
  std::vector<LeaderStatus> leaders{};
  std::optional<Blocker> blocker{};
};

/// Looks at the database now and then, for whoever asks: so asking costs the database nothing. What takes
/// long is looked at more rarely, so that looking takes no more than a twentieth of the time.
class FigureBoard {
 public:
  /// `storage` and `metrics` outlive it.
  FigureBoard(Storage& storage, metrics::PrometheusMetrics& metrics, Clock& clock);
  ~FigureBoard() { stop(); }
  FigureBoard(const FigureBoard&) = delete;
  FigureBoard& operator=(const FigureBoard&) = delete;

  void start();
  void stop() { task_.stop(); }
  /// Null before the first look.
  [[nodiscard]] std::shared_ptr<const Figures> latest() const POSTRIDER_EXCLUDES(mutex_);
  /// One look, now, on this thread.
  void look() noexcept POSTRIDER_EXCLUDES(mutex_);

 private:
  void look_if_due() noexcept;

  Storage& storage_;
  metrics::PrometheusMetrics& metrics_;
  Clock& clock_;
  SteadyPoint next_look_{};  // the task's thread only
  mutable Mutex mutex_;
  std::shared_ptr<const Figures> latest_ POSTRIDER_GUARDED_BY(mutex_);
  PeriodicTask task_;
};

}  // namespace postrider::daemon
