// SPDX-License-Identifier: Apache-2.0
#include "postrider/event_manager.hpp"

#include <algorithm>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "core/batch_writer.hpp"
#include "core/failpoint.hpp"
#include "core/option_check.hpp"
#include "core/periodic_task.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"
#include "queue/manager_core.hpp"
#include "queue/postponed_results.hpp"
#include "storage/wake_channel.hpp"

namespace postrider {
namespace {

constexpr Duration first_failure_pause = std::chrono::milliseconds{100};
constexpr Duration longest_failure_pause = std::chrono::seconds{5};
constexpr std::size_t states_per_cleanup = 1000;
constexpr int attempts_at_locked_rows = 3;
/// What falls due later than this is left to the poll: adding any delay to now could overflow.
constexpr Duration longest_known_delay = std::chrono::hours{1};

/// Of which manager this thread is running handlers; null outside of them.
thread_local const void* handling_for = nullptr;

class HandlingScope {
 public:
  explicit HandlingScope(const void* manager) noexcept : before_(std::exchange(handling_for, manager)) {}
  ~HandlingScope() { handling_for = before_; }
  HandlingScope(const HandlingScope&) = delete;
  HandlingScope& operator=(const HandlingScope&) = delete;

 private:
  const void* before_;
};

EventManagerOptions checked(EventManagerOptions options) {
  using namespace std::chrono_literals;
  constexpr Duration day = 24h;
  const OptionCheck check("EventManagerOptions");
  check.count("workers", options.workers, 1, 1024);
  check.count("batch_size", options.batch_size, 1, 10'000);
  check.count("run_size", options.run_size, 1, 1000);
  check.number("max_attempts", options.max_attempts, 1, 1'000'000);
  check.time("unhandled_delay", options.unhandled_delay, 1ms, 365 * day);
  check.time("poll_interval", options.poll_interval, 1ms, day);
  check.time("poll_interval_max", options.poll_interval_max, options.poll_interval, day);
  check.count("settle_batch_size", options.settle_batch_size, 1, 10'000);
  check.time("settle_linger", options.settle_linger, 0ms, 1s);
  check.time("drain_timeout", options.drain_timeout, 0ms, day);
  check.time("cleanup_interval", options.cleanup_interval, 1ms, 365 * day);
  if (!options.retry_policy) {
    check.time("retry_base_delay", options.retry_base_delay, 1us, 365 * day);
    check.time("retry_max_delay", options.retry_max_delay, options.retry_base_delay, 365 * day);
    options.retry_policy = std::make_shared<const ExponentialBackoffRetryPolicy>(options.retry_base_delay,
                                                                                 options.retry_max_delay);
  }
  return options;
}

}  // namespace

struct EventManager::Parts {
  Parts(detail::QueueParts& queue_in, EventManagerOptions options_in)
      : queue(queue_in),
        options(checked(std::move(options_in))),
        clock(*queue.options.clock),
        core(queue, options),
        work(clock),
        postponed(clock),
        writer(
            {.batch_size = options.settle_batch_size,
             .linger = options.settle_linger,
             .queue_capacity = 2 * options.settle_batch_size + options.workers,
             .stop_timeout = options.drain_timeout,
             .clock = queue.options.clock,
             .log = queue.options.log},
            [this](std::span<const Settlement> batch) {
              std::vector<Settlement> busy = core.write(batch);
              std::move(busy.begin(), busy.end(), std::back_inserter(locked));
            },
            [this](std::span<const Settlement> batch, bool) { written(batch); },
            [this] { queue.options.metrics->increment_queue_settle_failures(); }),
        cleaner(options.cleanup_interval, clock, [this] { clean_and_tell(); }) {}

  /// After a batch, on the writer's thread.
  void written(std::span<const Settlement> batch);
  /// Not held any more: others take them when their leases end.
  void give_up(std::span<const Settlement> settlements);

  void fetch_loop();
  [[nodiscard]] std::size_t next_limit();
  void work_loop();
  void start_all();
  /// Ends whatever of it has been started.
  void halt();
  std::size_t clean();
  void clean_and_tell() noexcept;
  void give_back(const std::deque<WorkItem>& items);

  detail::QueueParts& queue;
  const EventManagerOptions options;
  Clock& clock;
  ManagerCore core;
  WorkQueue work;
  PostponedResults postponed;
  std::vector<Settlement> locked;  // of the batch that is being written; the writer's own
  BatchWriter<Settlement> writer;

  Mutex lifecycle;  // start and stop, one at a time
  std::atomic<bool> running{false};
  std::atomic<std::int64_t> drain_until{0};  // steady time; workers give back what they find later
  std::uint64_t subscription = 0;
  std::unique_ptr<WakeChannel::Subscription> other_nodes;
  std::thread fetcher;
  std::vector<std::thread> workers;
  PeriodicTask cleaner;
  std::size_t limit = 0;  // the fetcher's own

  Mutex wait_mutex;
  CondVar stopped;  // running became false
  bool stopping POSTRIDER_GUARDED_BY(wait_mutex) = false;
};

void EventManager::Parts::written(std::span<const Settlement> batch) {
  const SteadyPoint now = clock.steady_now();
  for (const Settlement& one : batch) {
    if (one.delay > Duration::zero() && one.delay <= longest_known_delay) work.wake_at(now + one.delay);
  }
  if (locked.empty()) {
    postponed.add({});
    if (core.settled(batch)) work.wake();
    return;
  }
  std::vector<Settlement> done;
  for (const Settlement& one : batch) {
    const bool waits = std::any_of(locked.begin(), locked.end(),
                                   [&](const Settlement& other) { return other.claim == one.claim; });
    if (!waits) done.push_back(one);
  }
  queue.options.metrics->increment_queue_settle_failures();
  queue.options.log(LogLevel::warning, "postrider: the rows of " + counted(locked.size(), "event") +
                                           " are locked by somebody's open transaction; the results wait");
  postponed.add(std::exchange(locked, {}));
  if (core.settled(done)) work.wake();
}

void EventManager::Parts::give_up(std::span<const Settlement> settlements) {
  if (settlements.empty()) return;
  queue.options.log(LogLevel::warning, "postrider: the results of " + counted(settlements.size(), "event") +
                                           " could not be written, somebody's open transaction has locked "
                                           "the rows; they will be handled again");
  (void)core.settled(settlements);
}

/// Twice of what the workers have taken since the last claim: fast handlers reach the whole batch in a few
/// rounds, slow ones leave the rest to other nodes.
std::size_t EventManager::Parts::next_limit() {
  const std::size_t least = std::min(options.batch_size, 4 * options.workers);
  return std::clamp(2 * work.taken_since(), least, options.batch_size);
}

void EventManager::Parts::fetch_loop() {
  Duration pause = options.poll_interval;
  int failures = 0;
  while (!work.closed()) {
    for (Settlement& one : postponed.take_due()) writer.submit(std::move(one));
    limit = next_limit();
    work.await_at_most(limit / 2);
    if (work.closed()) return;
    work.forget_wake();
    try {
      ManagerCore::Fetched fetched = core.fetch(limit);
      failures = 0;
      const bool more = fetched.events >= limit || fetched.more;
      if (fetched.events > 0) pause = options.poll_interval;
      work.push(std::move(fetched.items));
      if (more) continue;
      if (work.await_wake(pause)) {
        pause = options.poll_interval;
      } else {
        pause = std::min(2 * pause, options.poll_interval_max);
      }
    } catch (const std::exception& error) {
      queue.options.metrics->increment_queue_claim_failures();
      queue.options.log(LogLevel::error, "postrider: cannot claim events, trying again: " + what_of(error));
      const Duration wait = std::min(longest_failure_pause,
                                     first_failure_pause * (std::int64_t{1} << std::min(failures++, 10)));
      // A signal about new events must not make it hammer a database that is away.
      const SteadyPoint until = clock.steady_now() + wait;
      while (!work.closed() && clock.steady_now() < until) {
        (void)work.await_wake(std::chrono::duration_cast<Duration>(until - clock.steady_now()));
      }
    }
  }
}

void EventManager::Parts::work_loop() {
  const HandlingScope handling(this);
  while (std::optional<WorkItem> item = work.pop()) {
    if (!running.load() && clock.steady_now().time_since_epoch().count() >= drain_until.load()) {
      std::deque<WorkItem> rest = work.take_all();
      rest.push_front(std::move(*item));
      give_back(rest);
      return;
    }
    core.handle(std::move(*item), [&](Settlement settlement) { writer.submit(std::move(settlement)); });
  }
}

void EventManager::Parts::give_back(const std::deque<WorkItem>& items) {
  for (const WorkItem& item : items) {
    for (const Work& one : item) writer.submit(ManagerCore::release_of(one.event));
  }
}

std::size_t EventManager::Parts::clean() {
  std::size_t cleaned = 0;
  for (;;) {
    const std::size_t some = queue.store.clean_states(states_per_cleanup);
    cleaned += some;
    if (some < states_per_cleanup) return cleaned;
  }
}

void EventManager::Parts::clean_and_tell() noexcept {
  try {
    (void)clean();
  } catch (const std::exception& error) {
    queue.options.log(LogLevel::warning, "postrider: cannot clean up handler states: " + what_of(error));
  }
}

void EventManager::Parts::start_all() {
  {
    const MutexLock waiting(wait_mutex);
    stopping = false;
  }
  work.open();
  running = true;
  writer.start();
  core.held.start();
  subscription = queue.hub->here().subscribe([this] { work.wake(); });
  if (WakeChannel* const channel = queue.storage.wake_channel(); channel != nullptr && options.listen) {
    other_nodes = channel->listen(wake_topic::queue, [this] { work.wake(); });
  }
  for (std::size_t i = 0; i < options.workers; ++i) workers.emplace_back([this] { work_loop(); });
  fetcher = std::thread([this] { fetch_loop(); });
  failpoint("queue.start");
  cleaner.start();
}

void EventManager::Parts::halt() {
  const SteadyPoint deadline = clock.steady_now() + options.drain_timeout;
  drain_until = deadline.time_since_epoch().count();
  running = false;
  work.close();
  other_nodes.reset();
  queue.hub->here().unsubscribe(std::exchange(subscription, 0));
  writer.give_up_at(deadline);  // before the joins: workers may be waiting for the writer
  if (fetcher.joinable()) fetcher.join();
  for (std::thread& worker : workers) worker.join();
  workers.clear();
  give_back(work.take_all());
  for (Settlement& one : postponed.take_all()) writer.submit(std::move(one));
  writer.stop();
  give_up(postponed.take_all());
  core.held.stop();
  {
    const MutexLock waiting(wait_mutex);
    stopping = true;
  }
  stopped.notify_all();
  cleaner.stop();
}

EventManager::EventManager(EventQueue& queue, EventManagerOptions options)
    : parts_(std::make_unique<Parts>(*queue.parts_, std::move(options))) {}

EventManager::~EventManager() {
  stop();
}

EventManager& EventManager::add(const std::string& id, std::optional<std::string> type,
                                HandlerFunction function, const HandlerOptions& options) {
  const OptionCheck check("HandlerOptions");
  check.number("max_attempts", options.max_attempts, 0, 1'000'000);
  const EventManagerOptions& defaults = parts_->options;
  parts_->core.registry.add(
      std::move(type),
      {.id = id,
       .function = std::move(function),
       .max_attempts = options.max_attempts == 0 ? defaults.max_attempts : options.max_attempts,
       .retry_policy = options.retry_policy ? options.retry_policy : defaults.retry_policy});
  return *this;
}

void EventManager::start() {
  Parts& parts = *parts_;
  if (handling_for == parts_.get()) {
    throw Error(ErrorCode::invalid_argument, "cannot start the event manager", "this is one of its handlers",
                "start it from another thread");
  }
  const MutexLock lock(parts.lifecycle);
  if (parts.running) return;
  parts.queue.store.check_schema();
  try {
    parts.start_all();
  } catch (...) {
    parts.halt();
    throw;
  }
}

void EventManager::stop() {
  Parts& parts = *parts_;
  if (handling_for == parts_.get()) {
    throw Error(ErrorCode::invalid_argument, "cannot stop the event manager", "this is one of its handlers",
                "let the handler return first, stop from another thread");
  }
  const MutexLock lock(parts.lifecycle);
  if (parts.running) parts.halt();
}

bool EventManager::running() const noexcept {
  return parts_->running;
}

void EventManager::run_process_loop(const std::stop_token& token) {
  Parts& parts = *parts_;
  start();
  {
    const std::stop_callback asked(token, [&parts] {
      const MutexLock lock(parts.wait_mutex);
      parts.stopped.notify_all();
    });
    const MutexLock lock(parts.wait_mutex);
    while (!parts.stopping && !token.stop_requested()) parts.stopped.wait(parts.wait_mutex);
  }
  stop();
}

std::size_t EventManager::process_available(std::size_t limit) {
  Parts& parts = *parts_;
  if (handling_for == parts_.get()) {
    throw Error(ErrorCode::invalid_argument, "cannot process events here", "this is one of its handlers",
                "let the handler return first");
  }
  const MutexLock lock(parts.lifecycle);
  if (parts.running) {
    throw Error(ErrorCode::invalid_argument, "cannot process events here", "the manager is running",
                "its workers do that; stop() it first");
  }
  struct Heartbeats {
    explicit Heartbeats(HeldClaims& the_held) : held(the_held) { held.start(); }
    ~Heartbeats() { held.stop(); }
    Heartbeats(const Heartbeats&) = delete;
    Heartbeats& operator=(const Heartbeats&) = delete;
    HeldClaims& held;
  } const heartbeats(parts.core.held);
  std::size_t handled = 0;
  while (handled < limit) {
    ManagerCore::Fetched fetched = parts.core.fetch(std::min(parts.options.batch_size, limit - handled));
    if (fetched.events == 0 && !fetched.more) break;
    handled += fetched.events;
    std::vector<Settlement> settlements;
    {
      const HandlingScope handling(&parts);
      for (WorkItem& item : fetched.items) {
        parts.core.handle(std::move(item),
                          [&](Settlement settlement) { settlements.push_back(std::move(settlement)); });
      }
    }
    try {
      std::vector<Settlement> left = parts.core.write(settlements);
      for (int attempt = 1; !left.empty() && attempt < attempts_at_locked_rows; ++attempt) {
        left = parts.core.write(left);
      }
      parts.give_up(left);
    } catch (...) {
      (void)parts.core.settled(settlements);  // not held any more: others take them when their leases end
      throw;
    }
    (void)parts.core.settled(settlements);
  }
  return handled;
}

std::size_t EventManager::cleanup_finalized_events() {
  return parts_->clean();
}

const EventManagerOptions& EventManager::options() const noexcept {
  return parts_->options;
}

}  // namespace postrider
