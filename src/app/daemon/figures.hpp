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
  /// It answers, but what this node has to write fails, since the look before: a full disk, for example.
  bool refuses_writes = false;
  OutboxCounts outbox{};
  QueueCounts queue{};
  Position head{};
  std::vector<PairStatus> pairs{};
  std::vector<LeaderStatus> leaders{};
  /// Also when its tables do not answer: then the database is there, and this is what keeps it from
  /// answering.
  std::optional<Blocker> blocker{};
};

/// Looks at the database now and then, for whoever asks: so asking costs the database nothing. What takes
/// long is looked at more rarely, so that looking takes no more than a twentieth of the time; whether the
/// database answers is asked each second, as /readyz does.
class FigureBoard {
 public:
  /// `storage` and `metrics` outlive it.
  FigureBoard(Storage& storage, const Identifier& schema, metrics::PrometheusMetrics& metrics, Clock& clock);
  ~FigureBoard() { stop(); }
  FigureBoard(const FigureBoard&) = delete;
  FigureBoard& operator=(const FigureBoard&) = delete;

  void start();
  void stop() { task_.stop(); }
  /// Null before the first look. While the database leaves a question unanswered for seconds it counts as
  /// away, whatever it has said before: one that hangs does not fail until its I/O timeout is over.
  [[nodiscard]] std::shared_ptr<const Figures> latest() const POSTRIDER_EXCLUDES(mutex_);
  /// One look, now, on this thread.
  void look() noexcept POSTRIDER_EXCLUDES(mutex_);
  /// What is done each second: a look when one is due, else only the question whether the database answers.
  void look_if_due() noexcept POSTRIDER_EXCLUDES(mutex_);
  /// Tells the metrics whether the database answers. For whoever is about to read them: a silence makes no
  /// event of its own.
  void record_database() const { metrics_.record_database(is_up()); }

 private:
  /// A question that is under way.
  class Asking {
   public:
    Asking(FigureBoard& board, Duration patience);
    ~Asking();
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

   private:
    FigureBoard& board_;
  };

  /// Whether it answers. What keeps it from that is published.
  [[nodiscard]] bool ping() noexcept POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] std::optional<Blocker> look_for_blocker() POSTRIDER_EXCLUDES(mutex_);
  void publish(Figures figures) POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] bool is_up() const POSTRIDER_EXCLUDES(mutex_);

  Storage& storage_;
  const Identifier schema_;
  metrics::PrometheusMetrics& metrics_;
  Clock& clock_;
  SteadyPoint next_look_{};                 // the task's thread only
  SteadyPoint::duration last_look_took_{};  // one looks at a time
  std::uint64_t failed_writes_ = 0;         // as the last look saw them
  bool writes_failed_ = false;              // between the two last looks
  mutable Mutex mutex_;
  std::shared_ptr<const Figures> latest_ POSTRIDER_GUARDED_BY(mutex_);
  std::optional<Blocker> blocker_ POSTRIDER_GUARDED_BY(mutex_);  // as the look that is under way has seen it
  std::optional<SteadyPoint> asked_at_ POSTRIDER_GUARDED_BY(mutex_);
  SteadyPoint::duration patience_ POSTRIDER_GUARDED_BY(mutex_){};
  PeriodicTask task_;
};

}  // namespace postrider::daemon
