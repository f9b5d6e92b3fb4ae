// SPDX-License-Identifier: Apache-2.0
#include "queue/manager_core.hpp"

#include <algorithm>
#include <random>
#include <unordered_map>
#include <utility>

#include "core/failpoint.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"

namespace postrider {
namespace {

constexpr std::size_t most_types_left_alone = 100;
constexpr Duration delay_after_store_failure = std::chrono::seconds{1};

double random_unit() {
  thread_local std::minstd_rand engine{std::random_device{}()};
  return std::generate_canonical<double, 32>(engine);
}

std::string id_text(QueueId id) {
  return std::to_string(static_cast<std::int64_t>(id));
}

Duration since(SteadyPoint begin, Clock& clock) {
  return std::chrono::duration_cast<Duration>(clock.steady_now() - begin);
}

}  // namespace

ManagerCore::ManagerCore(detail::QueueParts& queue, const EventManagerOptions& options)
    : held(queue.store, queue.options.abandoned_timeout, *queue.options.clock, queue.options.log),
      queue_(queue),
      options_(options) {}

ManagerCore::Fetched ManagerCore::fetch(std::size_t limit) {
  const QueueOptions& queue = queue_.options;
  const SteadyPoint asked = queue.clock->steady_now();
  std::size_t suspects = 0;
  {
    const MutexLock lock(mutex_);
    if (suspect_ && (asked >= suspect_->alone_until || !held.safe(suspect_->claim))) suspect_.reset();
    suspects = suspect_ ? 0 : 1;
  }
  const std::vector<std::string> not_ours = types_left_alone();
  QueueClaimResult claimed = queue_.store.claim({.owner = queue.node_name,
                                                 .lease = queue.abandoned_timeout,
                                                 .limit = limit,
                                                 .suspect_limit = suspects,
                                                 .suspect_crashes = suspect_crashes(),
                                                 .max_crashes = queue.max_crashes,
                                                 .run_limit = options_.run_size,
                                                 .without_types = not_ours});
  failpoint("queue.claimed");
  held.add(claimed.events, asked);
  queue.metrics->observe_queue_claim(claimed.events.size(), since(asked, *queue.clock));
  for (const QueueId id : claimed.quarantined) {
    queue.log(LogLevel::error, "postrider: event " + id_text(id) +
                                   " is in quarantine: it was in progress when its worker died, " +
                                   std::to_string(queue.max_crashes) + " times");
  }
  if (!claimed.quarantined.empty()) queue.metrics->increment_queue_quarantined(claimed.quarantined.size());

  // Only what has been claimed before can have anything stored.
  std::vector<QueueId> returned;
  for (const QueuedEvent& event : claimed.events) {
    if (came_back(event)) returned.push_back(event.claim.id);
    if (suspects > 0 && event.crashes >= suspect_crashes()) {
      const MutexLock lock(mutex_);
      suspect_ = {event.claim, asked + queue.abandoned_timeout};
    }
  }
  std::unordered_map<std::int64_t, StoredStates> states;
  if (!returned.empty()) {
    for (QueueStore::EventState& state : load_states(claimed.events, returned)) {
      std::string handler = state.result.handler;
      states[static_cast<std::int64_t>(state.id)].insert_or_assign(std::move(handler),
                                                                   std::move(state.result));
    }
  }
  Fetched fetched;
  fetched.events = claimed.events.size();
  fetched.more = claimed.more;
  for (QueuedEvent& event : claimed.events) {
    Work work;
    if (const auto found = states.find(static_cast<std::int64_t>(event.claim.id)); found != states.end()) {
      work.states = std::move(found->second);
    }
    const bool continues = !event.ordering_key.empty() && !fetched.items.empty() &&
                           fetched.items.back().front().event.ordering_key == event.ordering_key;
    work.event = std::move(event);
    if (!continues) fetched.items.emplace_back();
    fetched.items.back().push_back(std::move(work));
  }
  return fetched;
}

std::vector<QueueStore::EventState> ManagerCore::load_states(std::span<const QueuedEvent> claimed,
                                                             std::span<const QueueId> ids) {
  try {
    failpoint("queue.states.load");
    return queue_.store.load_states(ids);
  } catch (...) {
    forget(claimed);  // nobody will handle them here: their leases must not be renewed
    throw;
  }
}

void ManagerCore::forget(std::span<const QueuedEvent> events) noexcept {
  std::vector<Settlement> releases;
  for (const QueuedEvent& event : events) releases.push_back(release_of(event));
  try {
    (void)queue_.store.settle(releases);
  } catch (const std::exception& error) {
    queue_.options.log(LogLevel::warning,
                       "postrider: " + counted(events.size(), "event") +
                           " could not be given back and will be taken for abandoned: " + what_of(error));
  }
  (void)settled(releases);
}

Settlement ManagerCore::release_of(const QueuedEvent& event) {
  return {.claim = event.claim, .kind = Settlement::Kind::release};
}

void ManagerCore::handle(WorkItem item, const std::function<void(Settlement)>& settle) {
  for (std::size_t i = 0; i < item.size(); ++i) {
    std::optional<Settlement> settlement = handle_one(item[i]);
    const bool finished = settlement && settlement->kind == Settlement::Kind::finalize;
    if (settlement) settle(std::move(*settlement));
    if (finished) continue;
    // The key waits for this event, and so do those behind it.
    for (std::size_t next = i + 1; next < item.size(); ++next) settle(release_of(item[next].event));
    return;
  }
}

std::optional<Settlement> ManagerCore::handle_one(Work& work) {
  QueuedEvent& event = work.event;
  MetricsExporter& metrics = *queue_.options.metrics;
  // The process was stopped, or the database away, for longer than the lease: somebody else has it by now.
  if (!held.safe(event.claim)) {
    drop(event);
    return std::nullopt;
  }
  if (!event.event) {
    return Settlement{
        .claim = event.claim,
        .status = QueueStatus::failed,
        .results = {{.verdict = HandlerVerdict::unrecoverable_error, .error = event.decode_error}}};
  }
  const auto handlers = registry.find(event.event->type());
  if (handlers->empty()) return unhandled(event);
  Clock& clock = *queue_.options.clock;
  const SteadyPoint begin = clock.steady_now();
  EventRun run(queue_.store, metrics, event, std::move(work.states));
  std::optional<Settlement> settlement;
  try {
    settlement = run.run(*handlers, options_.max_attempts, random_unit());
  } catch (const std::exception& error) {
    // What is stored about its handlers could not be read: whoever comes next has to know it.
    queue_.options.log(LogLevel::error, "postrider: event " + id_text(event.claim.id) +
                                            " goes back to the queue: " + what_of(error));
    settlement = release_of(event);
    settlement->delay = delay_after_store_failure;
  }
  metrics.observe_handler_time(since(begin, clock));
  if (!settlement) drop(event);
  return settlement;
}

Settlement ManagerCore::unhandled(const QueuedEvent& event) {
  queue_.options.metrics->increment_queue_unhandled();
  const std::string& type = event.event->type();
  bool first = false;
  bool left_alone = false;
  {
    const MutexLock lock(mutex_);
    auto known = unhandled_types_.find(type);
    first = known == unhandled_types_.end() && unhandled_types_.size() < most_types_left_alone;
    if (first) known = unhandled_types_.emplace(type, SteadyPoint{}).first;
    left_alone = known != unhandled_types_.end();
    if (left_alone) known->second = queue_.options.clock->steady_now() + options_.unhandled_delay;
  }
  if (first) {
    queue_.options.log(LogLevel::warning, "postrider: no handler for events of type " + type +
                                              "; they stay in the queue (said once per type)");
  }
  Settlement settlement = release_of(event);
  // With too many types to remember, the event itself has to stay out of the way, also of other nodes.
  if (!left_alone) settlement.delay = options_.unhandled_delay;
  return settlement;
}

std::vector<std::string> ManagerCore::types_left_alone() {
  std::vector<std::string> types;
  const SteadyPoint now = queue_.options.clock->steady_now();
  const MutexLock lock(mutex_);
  for (const auto& [type, until] : unhandled_types_) {
    // A handler may have been registered since.
    if (now < until && registry.find(type)->empty()) types.push_back(type);
  }
  return types;
}

std::int32_t ManagerCore::suspect_crashes() const noexcept {
  // A first crash makes suspects of all that were in progress; alone they are worth the time only when the
  // next one would put them into quarantine.
  constexpr std::int32_t without_quarantine = 2;
  const std::int32_t most = queue_.options.max_crashes;
  return most == 0 ? without_quarantine : std::max(1, most - 1);
}

void ManagerCore::drop(const QueuedEvent& event) {
  queue_.options.metrics->increment_queue_stale(1);
  queue_.options.log(LogLevel::warning, "postrider: the claim on event " + id_text(event.claim.id) +
                                            " ended before it was handled; it goes to another worker");
  const Settlement gone{.claim = event.claim};
  (void)settled({&gone, 1});
}

std::vector<Settlement> ManagerCore::write(std::span<const Settlement> settlements) {
  const QueueOptions& queue = queue_.options;
  const SteadyPoint begin = queue.clock->steady_now();
  failpoint("queue.settle.before");
  const std::vector<Settled> answers = queue_.store.settle(settlements);
  failpoint("queue.settle.after");
  queue.metrics->observe_queue_settle(settlements.size(), since(begin, *queue.clock));
  std::vector<Settlement> busy;
  std::size_t stale = 0;
  bool logged = false;
  for (std::size_t i = 0; i < settlements.size(); ++i) {
    const Settlement& one = settlements[i];
    if (answers[i] == Settled::busy) {
      busy.push_back(one);
    } else if (answers[i] == Settled::stale || answers[i] == Settled::unknown) {
      ++stale;
    } else if (one.kind == Settlement::Kind::retry) {
      queue.metrics->increment_queue_retried();
    } else if (one.kind == Settlement::Kind::finalize) {
      logged = true;
      one.status == QueueStatus::completed ? queue.metrics->increment_queue_completed()
                                           : queue.metrics->increment_queue_completed_with_errors();
    }
  }
  if (stale > 0) queue.metrics->increment_queue_stale(stale);
  if (logged) queue_.storage.log_grown()->notify();
  return busy;
}

bool ManagerCore::settled(std::span<const Settlement> settlements) {
  const bool ordered = held.remove(settlements);
  const MutexLock lock(mutex_);
  for (const Settlement& one : settlements) {
    if (!suspect_ || suspect_->claim != one.claim) continue;
    suspect_.reset();
    return true;
  }
  return ordered;
}

}  // namespace postrider
