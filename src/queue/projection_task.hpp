// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/detail/sync.hpp"
#include "postrider/projection.hpp"
#include "storage/log_store.hpp"
#include "storage/projection_store.hpp"

namespace postrider {

/// What a failure of a batch means; pure, so that it can be tested without a database.
struct FailureDecision {
  enum class Kind : std::uint8_t {
    one_by_one,  ///< try at once again, entry by entry, to find the one that fails
    again,       ///< try again after `delay`
    stop,        ///< FAILED
    skip,        ///< note the entry as skipped, go on behind it
  };
  Kind kind = Kind::again;
  bool counted = false;
  Duration delay{};
};
struct FailureFacts {
  std::size_t entries = 1;    ///< of the batch that failed
  bool retryable = false;     ///< the database's fault, not the entry's
  std::int32_t before = 0;    ///< counted failures of this entry
  std::int32_t troubles = 0;  ///< retryable failures in a row, this one included
};
[[nodiscard]] FailureDecision decide_failure(const FailureFacts& facts, const ProjectionOptions& options,
                                             double random);

/// What a step wants to happen next.
struct StepResult {
  enum class Kind : std::uint8_t {
    standby,  ///< somebody else runs it, or it is paused or FAILED
    idle,     ///< at the end of the log
    moved,    ///< there may be more
    failed,   ///< not before `delay`
  };
  Kind kind = Kind::standby;
  std::size_t handled = 0;
  Duration delay{};
  std::string error{};  ///< what went wrong, if something did
};

struct ProjectionTaskOptions {
  std::string owner{};
  Duration lease{};
  Clock* clock = nullptr;
  MetricsExporter* metrics = nullptr;
  LogCallback log{};
  std::function<double()> random{};  ///< uniform in [0, 1); thread-safe
};

/// One projection on one node. `step` is called by one thread at a time; the rest from any.
class ProjectionTask {
 public:
  ProjectionTask(Storage& storage, std::shared_ptr<Projection> projection, ProjectionTaskOptions options);

  /// Puts it into the database, once in the life of this object: what is forgotten afterwards is not ours to
  /// bring back, because its view is still there. Throws what the store throws.
  void enroll();
  /// Takes the projection if it can be had, reads a page, handles it, commits view and position. Never
  /// throws.
  [[nodiscard]] StepResult step() noexcept POSTRIDER_EXCLUDES(mutex_);

  /// Renews the lease when a third of it is over. Throws what the store throws.
  void keep() POSTRIDER_EXCLUDES(mutex_);
  /// Lets others run it. Not while a step runs.
  void give_back() noexcept POSTRIDER_EXCLUDES(mutex_);
  /// Somebody has changed the row: the next step takes it anew.
  void forget_lease() POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] bool held() const POSTRIDER_EXCLUDES(mutex_);

  [[nodiscard]] Projection& projection() noexcept { return *projection_; }
  [[nodiscard]] const std::string& name() const noexcept { return projection_->options().name; }
  [[nodiscard]] int version() const noexcept { return projection_->options().version; }

 private:
  [[nodiscard]] bool acquire() POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] StepResult handle(const LogPage& page) POSTRIDER_EXCLUDES(mutex_);
  /// False when the epoch is over: nothing was committed.
  [[nodiscard]] bool commit(Transaction& tx, const LogPage& page, const LogEntry*& failing)
      POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] StepResult failed(const LogPage& page, const LogEntry* entry, const std::string& why,
                                  bool retryable) POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] StepResult trouble(const std::string& why) POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] bool skip(LogSeq seq, const std::string& why);
  void moved_to(LogSeq seq) POSTRIDER_EXCLUDES(mutex_);
  void go_live_if_wanted();
  [[nodiscard]] ProjectionFence fence() const noexcept { return {name(), version(), lease_.epoch}; }
  [[nodiscard]] std::string title() const;

  Storage& storage_;
  ProjectionStore& store_;
  LogStore& log_store_;
  const std::shared_ptr<Projection> projection_;
  const ProjectionTaskOptions options_;
  const LogFilter wanted_;

  std::atomic<bool> enrolled_{false};

  // The step's own.
  ProjectionLease lease_;
  LogSeq one_by_one_until_{};
  std::int32_t troubles_ = 0;

  /// What the lease's keeper needs to know.
  mutable Mutex mutex_;
  std::optional<std::int64_t> held_epoch_ POSTRIDER_GUARDED_BY(mutex_);
  SteadyPoint renewed_ POSTRIDER_GUARDED_BY(mutex_){};
  bool in_batch_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

}  // namespace postrider
