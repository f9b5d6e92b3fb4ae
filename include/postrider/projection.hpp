// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/event_log.hpp"
#include "postrider/log.hpp"
#include "postrider/metrics.hpp"
#include "postrider/retry_policy.hpp"
#include "postrider/service.hpp"
#include "postrider/storage.hpp"
#include "postrider/transaction.hpp"

namespace postrider {

/// What to do with an entry that a projection cannot digest after `max_failures` tries.
enum class PoisonPolicy : std::uint8_t {
  stop,  ///< the projection is FAILED at that entry until `ProjectionAdmin::resume`
  skip,  ///< the entry is noted in table event_projection_skipped, and the projection goes on behind it
};

struct ProjectionOptions {
  std::string name{};  ///< 1 to 128 characters
  /// Raise it when the view changes its form: the new version is built from the beginning of the log, beside
  /// the one that is live. Its tables should be others, for example `totals_v2`.
  int version = 1;
  /// Which entries are wanted. Empty: those with errors and failed ones too.
  std::vector<QueueStatus> statuses{};
  std::vector<std::string> types{};  ///< empty: all
  /// Entries per transaction at most, 1 to 10,000.
  std::size_t batch_size = 200;
  PoisonPolicy poison = PoisonPolicy::stop;
  /// How many times one entry may fail. Failures that are the database's (Error::retryable) don't count.
  int max_failures = 10;
  std::shared_ptr<const RetryPolicy> retry_policy{};  ///< default: exponential, 200 ms to 60 s
  /// Goes live by itself once it has caught up with the version that is, see `ProjectionAdmin::switch_to`.
  bool switch_when_caught_up = false;
};

/// A view made of the event log. `handle` writes it through `tx`; the place in the log that was reached is
/// stored in the same transaction, so every entry counts exactly once in the view, whatever crashes. Over all
/// nodes one at a time runs it, on one thread at a time.
///
///     struct Totals : Projection {
///       Totals() : Projection({.name = "totals", .types = {"OrderPlaced"}}) {}
///       void handle(Tx& tx, const LogEntry& entry) override {
///         tx.execute("update totals set orders = orders + 1");
///       }
///     };
class Projection {
 public:
  /// Throws Error(invalid_argument) for an option out of bounds, naming it.
  explicit Projection(ProjectionOptions options);
  virtual ~Projection() = default;
  Projection(const Projection&) = delete;
  Projection& operator=(const Projection&) = delete;

  /// Adds one entry to the view. What it throws undoes the batch; the entry is tried again later.
  ///
  /// It must not end `tx`. Effects that are not written through `tx` may happen again.
  virtual void handle(Tx& tx, const LogEntry& entry) = 0;
  /// Empties the view, for `ProjectionRunner::reset`. By default there is none to empty: refused.
  virtual void clear(Tx& tx);

  [[nodiscard]] const ProjectionOptions& options() const noexcept { return options_; }

 private:
  const ProjectionOptions options_;
};

/// A projection of two functions.
[[nodiscard]] std::shared_ptr<Projection> make_projection(ProjectionOptions options,
                                                          std::function<void(Tx&, const LogEntry&)> handle,
                                                          std::function<void(Tx&)> clear = nullptr);

enum class ProjectionState : std::int16_t { active = 0, paused = 1, failed = 2 };
/// ACTIVE, PAUSED, FAILED.
[[nodiscard]] std::string_view to_string(ProjectionState state) noexcept;

/// Where a version of a projection stands.
struct ProjectionStatus {
  std::string name{};
  int version = 0;
  ProjectionState state = ProjectionState::active;
  bool live = false;
  LogSeq position{};            ///< all entries up to here are in the view
  LogSeq head{};                ///< the end of the log
  std::int64_t lag_events = 0;  ///< entries behind `position`, unwanted ones included; at most so many
  Duration lag_time{};          ///< for how long the first of them has been finished
  std::string owner{};          ///< the node that runs it; empty when none does
  std::int32_t failures = 0;    ///< of the entry behind `position`
  std::string last_error{};     ///< names the entry that failed
  std::int64_t skipped = 0;     ///< entries in event_projection_skipped
  std::int64_t epoch = 0;       ///< how many times it changed hands
  TimePoint created_at{};
  TimePoint updated_at{};
};

struct SkippedEntry {
  LogSeq seq{};
  std::string error{};
  TimePoint skipped_at{};
};

/// What an operator does with projections. Thread-safe; works from any process, by name. `version` 0 means
/// the one that is live. Verbs throw Error(invalid_argument) when there is no such projection.
class ProjectionAdmin {
 public:
  /// `clock` is what `wait_until` waits by; default: Clock::system().
  explicit ProjectionAdmin(Storage& storage, Clock* clock = nullptr) noexcept;

  /// By name and version.
  [[nodiscard]] std::vector<ProjectionStatus> list();
  [[nodiscard]] ProjectionStatus status(std::string_view name, int version = 0);
  /// Which version readers should look at; nothing when none is live.
  [[nodiscard]] std::optional<int> live_version(std::string_view name);

  /// When it returns, the view stands still until `resume`.
  void pause(std::string_view name, int version = 0);
  /// Goes on, also after FAILED: with the entry that failed, and no failures counted.
  void resume(std::string_view name, int version = 0);

  /// Makes this version live, and no other, if it has read at least as far as the one that is live now:
  /// readers never see an older view. False, and nothing changed, when it has not.
  bool switch_to(std::string_view name, int version);
  /// Deletes what is stored about a version that is not live; its tables are yours to drop. Until then
  /// `QueueAdmin::purge_log` keeps what it has not read. Throws Error(conflict) while a node runs it: take it
  /// out of the program first, or pause it. Runners that still have it leave it alone from then on; one that
  /// is made later begins at the start of the log.
  void forget(std::string_view name, int version);
  [[nodiscard]] std::vector<SkippedEntry> skipped(std::string_view name, int version = 0, LogSeq after = {},
                                                  std::size_t limit = 100);

  /// Waits until all entries up to `seq` are in the view, also for a projection that nobody has run yet.
  /// False when `timeout` passed before.
  [[nodiscard]] bool wait_until(std::string_view name, LogSeq seq, Duration timeout, int version = 0)
      POSTRIDER_EXCLUDES(mutex_);
  /// A view has moved on: those who wait look now.
  void wake() noexcept POSTRIDER_EXCLUDES(mutex_);

 private:
  Storage& storage_;
  Clock& clock_;
  Mutex mutex_;
  CondVar woken_;
  std::uint64_t wakes_ POSTRIDER_GUARDED_BY(mutex_) = 0;
};

struct ProjectionRunnerOptions {
  /// Projections that run at the same time on this node, 1 to 64. One thread more keeps their leases.
  std::size_t workers = 2;
  /// How long a node's right to run a projection lasts without renewal: a crashed node's projections are
  /// taken over after this time. Living nodes renew, also while `handle` runs for longer.
  Duration lease = std::chrono::seconds{30};
  /// The pause after a look that found nothing; doubles up to the second one. `wake` ends it.
  Duration poll_interval = std::chrono::milliseconds{100};
  Duration poll_interval_max = std::chrono::seconds{1};
  /// Names this node in the `owner` column (at most 48 characters; a random tail is added). Default: host
  /// name and process id.
  std::string node_name{};
  Clock* clock = nullptr;              ///< default: Clock::system(); must outlive the runner
  MetricsExporter* metrics = nullptr;  ///< default: none; must outlive the runner
  LogCallback log = log_to_stderr();
};

/// What ProjectionRunner::run_once has done.
struct ProjectionRun {
  struct Failure {
    std::string name{};
    int version = 0;
    std::string error{};  ///< names the entry, when it was one's fault
  };
  std::size_t handled = 0;  ///< entries that are in views now
  /// All of them, in the order in which they happened. The projections that failed are tried again by a later
  /// call, once their delay is over; those that still wait are not in here.
  std::vector<Failure> failures{};
};

/// Runs projections. Give every node the same ones: one of them runs each, another takes over when it is
/// gone. Thread-safe.
class ProjectionRunner final : public Service {
 public:
  explicit ProjectionRunner(Storage& storage, ProjectionRunnerOptions options = {});
  ~ProjectionRunner() override;
  ProjectionRunner(const ProjectionRunner&) = delete;
  ProjectionRunner& operator=(const ProjectionRunner&) = delete;

  /// May be called at any time. Throws Error(conflict) when this name and version is here already. The first
  /// version of a name is live at once; later ones when they are switched to. It is in the database when this
  /// returns, for `ProjectionAdmin::status`, unless the database is away or has no tables yet: then `start`
  /// puts it there.
  ProjectionRunner& add(std::shared_ptr<Projection> projection);
  ProjectionRunner& add(ProjectionOptions options, std::function<void(Tx&, const LogEntry&)> handle,
                        std::function<void(Tx&)> clear = nullptr) {
    return add(make_projection(std::move(options), std::move(handle), std::move(clear)));
  }

  /// Throws when the tables are not there or the database is away; nothing runs then.
  void start() override;
  /// Waits for batches that run, then gives the projections back to other nodes. Throws
  /// Error(invalid_argument) inside `handle`.
  void stop() override;
  [[nodiscard]] bool running() const noexcept override;

  /// There may be new entries. Finalisations through the same Storage object do it by themselves; call it
  /// when a transaction of your own, or another object, has finalised events. Cheap.
  void wake() noexcept;
  /// One batch of each projection of this node that is due, on this thread. One that fails keeps no other
  /// from its turn. A batch that fails is tried entry by entry at once, so when no entry was handled there is
  /// nothing to do but to wait. For tests and for programs with a schedule of their own; not while started.
  ProjectionRun run_once();

  /// Empties the view with `Projection::clear` and begins again at the start of the log. When it throws, view
  /// and projection are as they were: one that was running goes on, one that was paused or FAILED stays so.
  void reset(std::string_view name, int version);

  /// Verbs by name, for all projections of the database. `wait_until` is woken by this node's batches.
  [[nodiscard]] ProjectionAdmin& admin() noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace postrider
