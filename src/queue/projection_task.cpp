// SPDX-License-Identifier: Apache-2.0
#include "queue/projection_task.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/failpoint.hpp"
#include "core/what_of.hpp"
#include "postrider/error.hpp"
#include "storage/queue_store.hpp"

namespace postrider {
namespace {

struct Caught {
  std::string why;
  bool retryable = false;  ///< not the fault of what was being handled
};

Caught describe(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return {e.what(), e.retryable() || e.in_doubt() || e.connection_lost()};
  } catch (const std::exception& e) {
    return {what_of(e)};
  } catch (...) {
    return {"an exception that is not a std::exception"};
  }
}

/// A user's policy may do what it likes, but not end the worker.
Duration delay_of(const RetryPolicy& policy, std::int32_t failures, double random) noexcept {
  constexpr Duration longest = std::chrono::hours{24};
  try {
    return std::clamp(policy.delay(Attempt{failures}, random), Duration::zero(), longest);
  } catch (...) {
    return std::chrono::seconds{1};
  }
}

/// In the options of a projection an empty list means all.
LogFilter wanted_by(const ProjectionOptions& options) {
  LogFilter filter;
  if (!options.statuses.empty()) filter.statuses = options.statuses;
  if (!options.types.empty()) filter.types = options.types;
  return filter;
}

}  // namespace

FailureDecision decide_failure(const FailureFacts& facts, const ProjectionOptions& options, double random) {
  using Kind = FailureDecision::Kind;
  if (facts.retryable) {
    return {.kind = Kind::again, .delay = delay_of(*options.retry_policy, facts.troubles, random)};
  }
  if (facts.entries > 1) return {.kind = Kind::one_by_one};
  const std::int32_t failures = facts.before + 1;
  if (failures < options.max_failures) {
    return {.kind = Kind::again, .counted = true, .delay = delay_of(*options.retry_policy, failures, random)};
  }
  return {.kind = options.poison == PoisonPolicy::stop ? Kind::stop : Kind::skip, .counted = true};
}

ProjectionTask::ProjectionTask(Storage& storage, std::shared_ptr<Projection> projection,
                               ProjectionTaskOptions options)
    : storage_(storage),
      store_(storage.projection_store()),
      log_store_(storage.log_store()),
      projection_(std::move(projection)),
      options_(std::move(options)),
      wanted_(wanted_by(projection_->options())) {}

std::string ProjectionTask::title() const {
  return "postrider: projection '" + name() + "' version " + std::to_string(version());
}

bool ProjectionTask::held() const {
  const MutexLock lock(mutex_);
  return held_epoch_.has_value();
}

bool ProjectionTask::acquire() {
  // Measured before the database is asked: what we believe must never last longer than what is in the row.
  const SteadyPoint asked = options_.clock->steady_now();
  const std::optional<ProjectionLease> lease =
      store_.acquire(name(), version(), options_.owner, options_.lease);
  if (!lease.has_value()) return false;
  lease_ = *lease;
  // Where it failed before, only the first entry is to blame; those behind it need not suffer.
  one_by_one_until_ = {};
  const MutexLock lock(mutex_);
  held_epoch_ = lease_.epoch;
  renewed_ = asked;
  return true;
}

void ProjectionTask::enroll() {
  if (enrolled_) return;
  (void)store_.change(name(), version(), ProjectionChange::enroll);
  enrolled_ = true;
}

StepResult ProjectionTask::step() noexcept {
  try {
    enroll();
    if (!held() && !acquire()) return {};
    storage_.queue_store().sequence_log();
    const bool one_by_one = lease_.failures > 0 || lease_.position < one_by_one_until_;
    const LogPage page =
        log_store_.read(lease_.position, one_by_one ? 1 : projection_->options().batch_size, wanted_);
    if (page.scanned_to == lease_.position) {
      go_live_if_wanted();
      troubles_ = 0;
      return {.kind = StepResult::Kind::idle};
    }
    return handle(page);
  } catch (...) {
    return trouble(describe(std::current_exception()).why);
  }
}

StepResult ProjectionTask::handle(const LogPage& page) {
  failpoint("projection.read.after");
  Transaction tx = storage_.begin();
  const LogEntry* failing = nullptr;
  {
    const MutexLock lock(mutex_);
    in_batch_ = true;
  }
  std::exception_ptr error;
  bool committed = false;
  try {
    committed = commit(tx, page, failing);
  } catch (...) {
    error = std::current_exception();
  }
  tx.rollback();  // unless it is committed: what follows needs SQLite's one writer
  {
    const MutexLock lock(mutex_);
    in_batch_ = false;
  }
  if (error != nullptr) {
    const Caught caught = describe(error);
    return failed(page, failing, caught.why, caught.retryable);
  }
  if (!committed) {
    options_.log(LogLevel::info, title() + " has gone to somebody else, or was paused or forgotten");
    forget_lease();
    return {};
  }
  moved_to(page.scanned_to);
  options_.metrics->increment_projection_handled(page.entries.size());
  return {.kind = StepResult::Kind::moved, .handled = page.entries.size()};
}

bool ProjectionTask::commit(Transaction& tx, const LogPage& page, const LogEntry*& failing) {
  for (const LogEntry& entry : page.entries) {
    failing = &entry;
    projection_->handle(tx, entry);
  }
  if (page.entries.size() > 1) failing = nullptr;  // from here on it may be any of them
  failpoint("projection.handle.after");
  const SteadyPoint asked = options_.clock->steady_now();
  if (!store_.advance(tx, fence(),
                      {.from = lease_.position, .to = page.scanned_to, .lease = options_.lease})) {
    return false;
  }
  failpoint("projection.commit.before");
  tx.commit();
  failpoint("projection.commit.after");
  const MutexLock lock(mutex_);
  renewed_ = asked;
  return true;
}

void ProjectionTask::moved_to(LogSeq seq) {
  lease_.position = seq;
  lease_.failures = 0;
  troubles_ = 0;
}

StepResult ProjectionTask::failed(const LogPage& page, const LogEntry* entry, const std::string& why,
                                  bool retryable) {
  using Kind = FailureDecision::Kind;
  if (retryable || page.entries.empty()) return trouble(why);
  options_.metrics->increment_projection_failures();
  const FailureDecision decision = decide_failure({.entries = page.entries.size(), .before = lease_.failures},
                                                  projection_->options(), options_.random());
  const LogSeq seq = entry != nullptr ? entry->seq : page.scanned_to;
  std::string error = "entry " + std::to_string(static_cast<std::int64_t>(seq));
  if (entry != nullptr && entry->event.has_value()) {
    error += " (" + entry->event->type() + ", event " + entry->event->id().str() + ")";
  }
  error += ": " + why;
  if (decision.kind == Kind::one_by_one) {
    one_by_one_until_ = page.entries.back().seq;
    options_.log(LogLevel::warning, title() + " failed, going on entry by entry: " + error);
    return {.kind = StepResult::Kind::moved, .error = error};
  }
  if (decision.kind == Kind::skip) {
    if (skip(seq, error)) {
      options_.log(LogLevel::error, title() + " has skipped " + error);
      options_.metrics->increment_projection_skipped();
      moved_to(seq);
      return {.kind = StepResult::Kind::moved, .error = error};
    }
    forget_lease();
    return {.error = error};
  }
  const bool stop = decision.kind == Kind::stop;
  const bool ours = store_.fail(fence(), {.error = error, .counted = decision.counted, .stop = stop});
  ++lease_.failures;
  options_.log(stop ? LogLevel::error : LogLevel::warning,
               title() + (stop ? " is stopped at " : " failed at ") + error);
  if (stop || !ours) {
    forget_lease();
    return {.error = error};
  }
  return {.kind = StepResult::Kind::failed, .delay = decision.delay, .error = error};
}

/// The database is away, busy, or has left a commit in doubt: nobody's entry is to blame. The lease is taken
/// anew, which also tells where the projection stands.
StepResult ProjectionTask::trouble(const std::string& why) {
  options_.metrics->increment_projection_failures();
  troubles_ = std::min(troubles_ + 1, 1'000'000);
  const FailureDecision decision = decide_failure({.retryable = true, .before = 0, .troubles = troubles_},
                                                  projection_->options(), options_.random());
  options_.log(LogLevel::warning, title() + " cannot go on, trying again: " + why);
  if (held()) {
    try {
      (void)store_.fail(fence(), {.error = why, .counted = false});
    } catch (const std::exception&) {
      // Told already; the row can wait.
    }
    forget_lease();
  }
  return {.kind = StepResult::Kind::failed, .delay = decision.delay, .error = why};
}

bool ProjectionTask::skip(LogSeq seq, const std::string& why) {
  Transaction tx = storage_.begin();
  ProjectionAdvance step{.from = lease_.position, .to = seq, .lease = options_.lease};
  step.skip_error = why;
  if (!store_.advance(tx, fence(), step)) return false;
  failpoint("projection.skip.before_commit");
  tx.commit();
  return true;
}

void ProjectionTask::go_live_if_wanted() {
  if (lease_.live || !projection_->options().switch_when_caught_up) return;
  if (store_.change(name(), version(), ProjectionChange::switch_to) == ProjectionChanged::done) {
    lease_.live = true;
    options_.log(LogLevel::info, title() + " has caught up and is live");
  }
}

void ProjectionTask::keep() {
  ProjectionFence mine{name(), version(), 0};
  const SteadyPoint now = options_.clock->steady_now();
  {
    const MutexLock lock(mutex_);
    if (!held_epoch_.has_value() || now < renewed_ + options_.lease / 3) return;
    // SQLite has one writer, and our batch is it: nobody can take the projection before it ends, and it
    // renews by itself when it commits.
    if (in_batch_ && storage_.kind() == BackendKind::sqlite) return;
    mine.epoch = *held_epoch_;
  }
  const bool renewed = store_.renew(mine, options_.lease);
  const MutexLock lock(mutex_);
  if (held_epoch_ != mine.epoch) return;
  if (renewed) {
    renewed_ = now;
  } else {
    held_epoch_.reset();
  }
}

void ProjectionTask::give_back() noexcept {
  if (lease_.epoch == 0) return;  // never had
  forget_lease();
  try {
    (void)store_.renew(fence(), Duration::zero());
  } catch (const std::exception& e) {
    options_.log(LogLevel::warning,
                 title() + " could not be given back, others wait for its lease: " + e.what());
  }
}

void ProjectionTask::forget_lease() {
  const MutexLock lock(mutex_);
  held_epoch_.reset();
}

}  // namespace postrider
