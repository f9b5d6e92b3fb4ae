// SPDX-License-Identifier: Apache-2.0
// The threads that run projections: workers take whichever is due, a keeper renews leases meanwhile.
#include <algorithm>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "core/failpoint.hpp"
#include "core/option_check.hpp"
#include "core/what_of.hpp"
#include "postrider/error.hpp"
#include "postrider/projection.hpp"
#include "queue/projection_task.hpp"
#include "storage/queue_store.hpp"

namespace postrider {
namespace {

constexpr Duration far_away = std::chrono::hours{1};
constexpr std::size_t most_name_chars = 48;
// How long a reset may take to empty the view on a database with several writers. It ends by itself, so that
// a reset that crashes holds the projection up no longer than this.
constexpr Duration reset_lease = std::chrono::minutes{10};

ProjectionRunnerOptions checked(ProjectionRunnerOptions options) {
  using namespace std::chrono_literals;
  const OptionCheck check("ProjectionRunnerOptions");
  check.count("workers", options.workers, 1, 64);
  check.time("lease", options.lease, 100ms, 24h);
  check.time("poll_interval", options.poll_interval, 1ms, 24h);
  check.time("poll_interval_max", options.poll_interval_max, options.poll_interval, 24h);
  check.text("node_name", options.node_name, most_name_chars);
  if (options.clock == nullptr) options.clock = &Clock::system();
  if (options.metrics == nullptr) options.metrics = &MetricsExporter::none();
  options.log = guarded(std::move(options.log));
  return options;
}

/// Unlike any other runner's, of this process too: whoever has this name is this very object.
std::string unique_owner(const std::string& node_name) {
  if (node_name.empty()) return default_node_name();
  return node_name + "/" + new_event_id().str().substr(16);
}

}  // namespace

struct ProjectionRunner::Parts {
  Parts(Storage& the_storage, ProjectionRunnerOptions given)
      : storage(the_storage),
        options(checked(std::move(given))),
        owner(unique_owner(options.node_name)),
        admin(storage, options.clock),
        engine(std::random_device{}()) {}

  struct Slot {
    explicit Slot(std::shared_ptr<ProjectionTask> the_task) : task(std::move(the_task)) {}
    const std::shared_ptr<ProjectionTask> task;
    // Protected by the runner's mutex.
    SteadyPoint next{};
    Duration pause{};
    bool running = false;
    bool backing_off = false;
    bool poked = false;  ///< while it was running
  };

  double random() POSTRIDER_EXCLUDES(random_mutex) {
    const MutexLock lock(random_mutex);
    return std::uniform_real_distribution<double>(0.0, 1.0)(engine);
  }

  void work() POSTRIDER_EXCLUDES(mutex);
  void keep() POSTRIDER_EXCLUDES(mutex);
  void keep_leases();
  void record_gauges();
  /// Ends what `start` has begun.
  void halt() POSTRIDER_REQUIRES(lifecycle) POSTRIDER_EXCLUDES(mutex);
  [[nodiscard]] Slot* due_slot(SteadyPoint now) POSTRIDER_REQUIRES(mutex);
  [[nodiscard]] SteadyPoint next_due(SteadyPoint now) POSTRIDER_REQUIRES(mutex);
  /// Runs one step of a slot that is marked as running.
  StepResult run(Slot& slot) POSTRIDER_EXCLUDES(mutex);
  void plan(Slot& slot, const StepResult& result) POSTRIDER_REQUIRES(mutex);
  [[nodiscard]] std::vector<std::shared_ptr<Slot>> all_slots() POSTRIDER_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    return slots;
  }

  Storage& storage;
  const ProjectionRunnerOptions options;
  const std::string owner;
  ProjectionAdmin admin;

  Mutex random_mutex;
  std::mt19937_64 engine POSTRIDER_GUARDED_BY(random_mutex);

  Mutex mutex;
  CondVar changed;
  std::vector<std::shared_ptr<Slot>> slots POSTRIDER_GUARDED_BY(mutex);
  bool stopping POSTRIDER_GUARDED_BY(mutex) = false;

  Mutex lifecycle;  // held while starting and stopping
  std::vector<std::thread> threads POSTRIDER_GUARDED_BY(lifecycle);
  std::uint64_t subscription POSTRIDER_GUARDED_BY(lifecycle) = 0;
  std::atomic<bool> running = false;
};

namespace {
/// The runner whose step this thread is in.
thread_local const void* running_here = nullptr;

/// They would wait for the step that calls them.
void refuse_inside(const void* runner, std::string_view what, std::string_view call, std::string_view hint) {
  if (running_here != runner) return;
  throw Error(ErrorCode::invalid_argument, what, std::string(call) + " was called from one of them", hint);
}
}  // namespace

ProjectionRunner::Parts::Slot* ProjectionRunner::Parts::due_slot(SteadyPoint now) {
  Slot* first = nullptr;
  for (const std::shared_ptr<Slot>& slot : slots) {
    if (slot->running || slot->next > now) continue;
    if (first == nullptr || slot->next < first->next) first = slot.get();
  }
  return first;
}

SteadyPoint ProjectionRunner::Parts::next_due(SteadyPoint now) {
  SteadyPoint next = now + far_away;
  for (const std::shared_ptr<Slot>& slot : slots) {
    if (!slot->running) next = std::min(next, slot->next);
  }
  return next;
}

StepResult ProjectionRunner::Parts::run(Slot& slot) {
  const void* const before = std::exchange(running_here, this);
  StepResult result = slot.task->step();
  running_here = before;
  {
    const MutexLock lock(mutex);
    plan(slot, result);
    changed.notify_all();
  }
  if (result.kind == StepResult::Kind::moved) admin.wake();
  return result;
}

void ProjectionRunner::Parts::plan(Slot& slot, const StepResult& result) {
  slot.running = false;
  slot.backing_off = result.kind == StepResult::Kind::failed;
  switch (result.kind) {
    case StepResult::Kind::moved:
      slot.pause = Duration::zero();
      break;
    case StepResult::Kind::failed:
      slot.pause = result.delay;
      break;
    case StepResult::Kind::idle:
      slot.pause = slot.poked ? Duration::zero()
                              : std::clamp(slot.pause * 2, options.poll_interval, options.poll_interval_max);
      break;
    case StepResult::Kind::standby:
      slot.pause = std::min(options.poll_interval_max, options.lease / 3);
      break;
  }
  slot.poked = false;
  slot.next = options.clock->steady_now() + slot.pause;
}

void ProjectionRunner::Parts::work() {
  mutex.lock();
  while (!stopping) {
    const SteadyPoint now = options.clock->steady_now();
    Slot* const found = due_slot(now);
    if (found == nullptr) {
      options.clock->wait_until(changed, mutex, next_due(now));
      continue;
    }
    found->running = true;  // slots are never taken away, so it stays where it is
    mutex.unlock();
    (void)run(*found);
    mutex.lock();
  }
  mutex.unlock();
}

void ProjectionRunner::Parts::keep() {
  const Duration round = options.lease / 6;  // renewed when a third is over; a round may come a little early
  for (;;) {
    {
      const MutexLock lock(mutex);
      const SteadyPoint until = options.clock->steady_now() + round;
      while (!stopping && options.clock->steady_now() < until) {
        options.clock->wait_until(changed, mutex, until);
      }
      if (stopping) return;
    }
    keep_leases();
    record_gauges();
  }
}

void ProjectionRunner::Parts::keep_leases() {
  for (const std::shared_ptr<Slot>& slot : all_slots()) {
    try {
      slot->task->keep();
    } catch (const std::exception& error) {
      options.log(LogLevel::warning,
                  std::string("postrider: cannot renew a projection's lease, trying again: ") + error.what());
    }
  }
}

void ProjectionRunner::Parts::record_gauges() {
  if (options.metrics == &MetricsExporter::none()) return;
  try {
    const std::vector<std::shared_ptr<Slot>> mine = all_slots();
    for (const ProjectionStatus& status : storage.projection_store().list({})) {
      const bool here = std::any_of(mine.begin(), mine.end(), [&](const std::shared_ptr<Slot>& slot) {
        return slot->task->name() == status.name && slot->task->version() == status.version;
      });
      if (here) options.metrics->record_projection(status);
    }
  } catch (const std::exception& error) {
    options.log(LogLevel::warning,
                "postrider: cannot tell where projections stand, trying again: " + what_of(error));
  }
}

void ProjectionRunner::Parts::halt() {
  {
    const MutexLock lock(mutex);
    stopping = true;
    changed.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  threads.clear();
  for (const std::shared_ptr<Slot>& slot : all_slots()) slot->task->give_back();
}

ProjectionRunner::ProjectionRunner(Storage& storage, ProjectionRunnerOptions options)
    : parts_(std::make_unique<Parts>(storage, std::move(options))) {}

ProjectionRunner::~ProjectionRunner() {
  stop();
}

ProjectionRunner& ProjectionRunner::add(std::shared_ptr<Projection> projection) {
  Parts& parts = *parts_;
  if (projection == nullptr) throw Error(ErrorCode::invalid_argument, "cannot add a projection that is null");
  auto task =
      std::make_shared<ProjectionTask>(parts.storage, std::move(projection),
                                       ProjectionTaskOptions{.owner = parts.owner,
                                                             .lease = parts.options.lease,
                                                             .clock = parts.options.clock,
                                                             .metrics = parts.options.metrics,
                                                             .log = parts.options.log,
                                                             .random = [&parts] { return parts.random(); }});
  {
    const MutexLock lock(parts.mutex);
    for (const std::shared_ptr<Parts::Slot>& slot : parts.slots) {
      if (slot->task->name() == task->name() && slot->task->version() == task->version()) {
        throw Error(ErrorCode::conflict,
                    "cannot add projection '" + task->name() + "' version " + std::to_string(task->version()),
                    "this runner has it already", "give it another name or version");
      }
    }
    parts.slots.push_back(std::make_shared<Parts::Slot>(task));
    parts.changed.notify_all();
  }
  if (running_here != nullptr) return *this;  // inside a batch, which may have SQLite's one writer
  try {
    task->enroll();
  } catch (const std::exception&) {
    // Not an error yet: `start` and the first step do it again, and say why it cannot be done.
  }
  return *this;
}

void ProjectionRunner::start() {
  Parts& parts = *parts_;
  refuse_inside(&parts, "cannot start the projections", "start()", "start them from outside");
  const MutexLock lifecycle(parts.lifecycle);
  if (parts.running) return;
  parts.storage.queue_store().check_schema();
  for (const std::shared_ptr<Parts::Slot>& slot : parts.all_slots()) slot->task->enroll();
  {
    const MutexLock lock(parts.mutex);
    parts.stopping = false;
    for (const std::shared_ptr<Parts::Slot>& slot : parts.slots) {
      if (!slot->backing_off) slot->next = {};
    }
  }
  try {
    parts.threads.emplace_back([&parts] { parts.keep(); });
    for (std::size_t i = 0; i < parts.options.workers; ++i) {
      parts.threads.emplace_back([&parts] { parts.work(); });
    }
    failpoint("projection.start");
    parts.subscription = parts.storage.log_grown()->subscribe([this] { wake(); });
  } catch (...) {
    parts.halt();
    throw;
  }
  parts.running = true;
}

void ProjectionRunner::stop() {
  Parts& parts = *parts_;
  refuse_inside(&parts, "cannot stop the projections", "stop()", "signal another thread to stop them");
  const MutexLock lifecycle(parts.lifecycle);
  if (parts.running) parts.storage.log_grown()->unsubscribe(parts.subscription);
  parts.halt();
  parts.running = false;
}

bool ProjectionRunner::running() const noexcept {
  return parts_->running;
}

void ProjectionRunner::wake() noexcept {
  Parts& parts = *parts_;
  const MutexLock lock(parts.mutex);
  for (const std::shared_ptr<Parts::Slot>& slot : parts.slots) {
    if (slot->running) {
      slot->poked = true;
    } else if (!slot->backing_off && slot->task->held()) {
      slot->next = {};
    }
  }
  parts.changed.notify_all();
}

ProjectionRun ProjectionRunner::run_once() {
  Parts& parts = *parts_;
  refuse_inside(&parts, "cannot run the projections", "run_once()", "run them from outside");
  const MutexLock lifecycle(parts.lifecycle);
  if (parts.running) {
    throw Error(ErrorCode::invalid_argument, "cannot run projections on this thread",
                "the runner is started and does it by itself", "call wake() instead");
  }
  parts.keep_leases();
  ProjectionRun done;
  for (const std::shared_ptr<Parts::Slot>& slot : parts.all_slots()) {
    StepResult step{.kind = StepResult::Kind::moved};
    // Again after a batch that failed as a whole, or had nothing that is wanted: whoever calls this until
    // nothing was handled must not end there.
    while (step.kind == StepResult::Kind::moved && step.handled == 0) {
      {
        const MutexLock lock(parts.mutex);
        if (slot->backing_off && slot->next > parts.options.clock->steady_now()) break;
        slot->running = true;
      }
      step = parts.run(*slot);
      done.handled += step.handled;
      if (step.error.empty()) continue;
      done.failures.push_back({slot->task->name(), slot->task->version(), step.error});
    }
  }
  parts.record_gauges();
  return done;
}

void ProjectionRunner::reset(std::string_view name, int version) {
  Parts& parts = *parts_;
  std::shared_ptr<Parts::Slot> found;
  for (const std::shared_ptr<Parts::Slot>& slot : parts.all_slots()) {
    if (slot->task->name() == name && slot->task->version() == version) found = slot;
  }
  if (found == nullptr) {
    throw Error(ErrorCode::invalid_argument,
                "cannot reset projection '" + std::string(name) + "' version " + std::to_string(version),
                "this runner does not have it",
                "call it on a node that does: it knows how to empty the view");
  }
  // First whoever runs it is shut out, in a transaction of its own: then a batch that has rows of the view
  // under lock ends without waiting for us, while we wait for those rows. The position goes back last, for
  // the same reason.
  ProjectionStore& store = parts.storage.projection_store();
  const std::optional<ProjectionLease> lease =
      store.acquire(name, version, parts.owner + " (reset)", reset_lease, ProjectionTake::anyway);
  if (!lease.has_value()) {
    throw Error(ErrorCode::conflict, "cannot reset projection '" + std::string(name) + "'",
                "it was forgotten, or somebody else takes it at this moment",
                "look at postrider projections list (ProjectionAdmin::list())");
  }
  const ProjectionFence mine{name, version, lease->epoch};
  try {
    Transaction tx = parts.storage.begin();
    found->task->projection().clear(tx);
    if (store.restart(tx, mine) != ProjectionChanged::done) {
      throw Error(ErrorCode::conflict, "cannot reset projection '" + std::string(name) + "'",
                  "it was paused, reset or forgotten meanwhile, or emptying it took longer than ten minutes");
    }
    tx.commit();
  } catch (...) {
    try {
      (void)store.renew(mine, Duration::zero());
    } catch (const std::exception& error) {
      parts.options.log(LogLevel::warning, "postrider: projection '" + std::string(name) +
                                               "' goes on in ten minutes only: " + what_of(error));
    }
    found->task->forget_lease();
    throw;
  }
  found->task->forget_lease();
  const MutexLock lock(parts.mutex);
  found->backing_off = false;
  found->next = {};
  parts.changed.notify_all();
}

ProjectionAdmin& ProjectionRunner::admin() noexcept {
  return parts_->admin;
}

}  // namespace postrider
