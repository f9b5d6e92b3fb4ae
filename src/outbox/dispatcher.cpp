// SPDX-License-Identifier: Apache-2.0
#include "outbox/dispatcher.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "core/failpoint.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"
#include "storage/next_token.hpp"

namespace postrider {

namespace {

/// Whose events this thread is running, innermost last: inline, a listener's commit runs listeners.
class Running {
 public:
  explicit Running(const OutboxDispatcher& whose) noexcept : whose_(whose), outer_(innermost) {
    innermost = this;
  }
  ~Running() { innermost = outer_; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  static bool any_of(const OutboxDispatcher& dispatcher) noexcept {
    const Running* running = innermost;
    while (running != nullptr && &running->whose_ != &dispatcher) running = running->outer_;
    return running != nullptr;
  }

 private:
  static thread_local const Running* innermost;
  const OutboxDispatcher& whose_;
  const Running* outer_;
};

thread_local const Running* Running::innermost = nullptr;

FinishedEvent release_of(const OutboxItem& event) {
  return {Completion{LeaseRef{event.id(), event.token}, Completion::Kind::release, event.failed, {}, {}},
          event.ordering_key};
}

}  // namespace

OutboxDispatcher::OutboxDispatcher(OutboxStore& store, ListenerRegistry& listeners, Completer& completer,
                                   InFlightTracker& in_flight, DispatcherOptions options)
    : store_(store),
      listeners_(listeners),
      completer_(completer),
      in_flight_(in_flight),
      options_(std::move(options)),
      deaths_(options_.log, *options_.clock),
      queues_{Ring<OutboxItem>(options_.hot_capacity), Ring<OutboxItem>(options_.cold_capacity)},
      copies_(in_flight),
      hot_room_(options_.hot_capacity, options_.hot_bytes),
      cold_room_(options_.cold_capacity, options_.cold_bytes) {}

OutboxDispatcher::~OutboxDispatcher() {
  stop();
}

void OutboxDispatcher::start() {
  {
    const MutexLock lock(mutex_);
    accepting_ = true;
    stopping_ = false;
  }
  if (options_.run_inline) return;
  for (std::size_t i = workers_.size(); i < options_.workers; ++i) workers_.emplace_back([this] { work(); });
}

void OutboxDispatcher::stop() {
  std::vector<OutboxItem> left;
  {
    const MutexLock lock(mutex_);
    accepting_ = false;
    // They use what may be gone after this call, and they are quick.
    while (entrants_ > 0) drained_.wait(mutex_);
    const SteadyPoint deadline = options_.clock->steady_now() + options_.drain_timeout;
    while (queued_ + running_ > 0 && !workers_.empty() && options_.clock->steady_now() < deadline) {
      options_.clock->wait_until(drained_, mutex_, deadline);
    }
    stopping_ = true;
    // What is still in the rings will not be run. Those waiting in lanes are given back by the lanes' running
    // events.
    while (!queues_.hot.empty()) left.push_back(queues_.hot.pop());
    while (!queues_.cold.empty()) left.push_back(queues_.cold.pop());
    for (const OutboxItem& event : left) room_of(event.source).leave(1);
    queued_ -= left.size();
    if (running_ > 0) {
      options_.log(LogLevel::warning, "postrider: the drain timeout is over; waiting for " +
                                          counted(running_, "listener") + " to return");
    }
  }
  ready_.notify_all();
  if (!left.empty()) {
    options_.log(LogLevel::warning, "postrider: gives " + counted(left.size(), "undelivered event") +
                                        " back to the database while stopping");
    for (const OutboxItem& event : left) leave_lane(event, false);
    give_back(left);
  }
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

bool OutboxDispatcher::runs_on_this_thread() const noexcept {
  return Running::any_of(*this);
}

bool OutboxDispatcher::accepting() const {
  const MutexLock lock(mutex_);
  return accepting_;
}

bool OutboxDispatcher::enqueue_hot(std::vector<OutboxItem>& events, HotPlaces places) {
  {
    const MutexLock lock(mutex_);
    // What was published may have been rolled back in part: the rest of the places goes back.
    std::size_t bytes = 0;
    for (const OutboxItem& event : events) bytes += event.bytes;
    if (!accepting_) return false;
    places.reserved_.places -= events.size();
    places.reserved_.bytes -= bytes;
    ++entrants_;
  }
  enqueue(events, true);
  run_inline();
  return true;
}

bool OutboxDispatcher::enqueue_cold(std::vector<OutboxItem>& events) {
  {
    const MutexLock lock(mutex_);
    if (!accepting_) return false;
    cold_room_.enter(events.size());
    ++entrants_;
  }
  enqueue(events, false);
  return true;
}

void OutboxDispatcher::enqueue(std::vector<OutboxItem>& events, bool hot) {
  const SteadyPoint now = options_.clock->steady_now();
  std::vector<OutboxItem> given_back;
  std::vector<FinishedEvent> to_write_again;
  std::unordered_set<std::string> held_back;  // keys of which an earlier event has to wait
  std::size_t accepted = 0;
  {
    const MutexLock lock(mutex_);
    for (OutboxItem& event : events) {
      event.enqueued = now;
      if (hot) hot_room_.unreserve(event.bytes);  // from here on they are in memory, or not at all
      InFlightCopies::Arrival arrival = copies_.arrive(event);
      if (arrival.write_again) to_write_again.push_back({std::move(*arrival.write_again), {}});
      if (!arrival.queue) {
        room_of(event.source).leave(1);
        if (event.ordered()) held_back.insert(event.ordering_key);
        continue;
      }
      if (event.ordered() && held_back.contains(event.ordering_key)) {
        room_of(event.source).leave(1);
        event.ordering_key.clear();  // its way back to the database is not the lane's business
        given_back.push_back(std::move(event));
        continue;
      }
      ++accepted;
      admit(std::move(event), given_back);
    }
    options_.metrics->record_queue_depths(queues_.hot.size(), queues_.cold.size());
  }
  for (std::size_t i = 0; i < std::min(accepted, options_.workers); ++i) ready_.notify_one();
  for (std::size_t i = 0; i < accepted; ++i) {
    hot ? options_.metrics->increment_hot_enqueued() : options_.metrics->increment_cold_enqueued();
  }
  for (FinishedEvent& result : to_write_again) submit(std::move(result));
  // Not worth waiting for on the publisher's thread: what the completer cannot take comes free with its
  // lease.
  for (const OutboxItem& event : given_back) {
    if (!options_.run_inline && completer_.try_submit(release_of(event))) continue;
    const MutexLock lock(mutex_);
    copies_.let_go(event.id());
  }
  leave();
}

void OutboxDispatcher::leave() {
  const MutexLock lock(mutex_);
  poll_if_room();
  --entrants_;
  // Under the lock: once it is let go, `stop` may return and all but this object be gone.
  drained_.notify_all();
}

void OutboxDispatcher::admit(OutboxItem event, std::vector<OutboxItem>& given_back) {
  if (event.ordered()) {
    const Source source = event.source;
    switch (lanes_.arrive(event)) {
      case KeyLanes::Arrival::runs:
        break;
      case KeyLanes::Arrival::waits:
        ++queued_;
        return;
      case KeyLanes::Arrival::turned_away:
        room_of(source).leave(1);
        // Its way back to the database is not the lane's business.
        event.ordering_key.clear();
        given_back.push_back(std::move(event));
        return;
    }
  }
  ++queued_;
  make_ready(std::move(event));
}

void OutboxDispatcher::make_ready(OutboxItem event) {
  (event.source == Source::hot ? queues_.hot : queues_.cold).push(std::move(event));
}

bool OutboxDispatcher::cold_has_room_for(const OutboxItem& event) const {
  const MutexLock lock(mutex_);
  return cold_room_.free_places() > 0 && cold_room_.fits(event.bytes, copies_.bytes(Source::cold));
}

void OutboxDispatcher::poll_if_room() {
  if (accepting_ && on_poll_wanted_ && cold_room_.has_more(copies_.bytes(Source::cold))) on_poll_wanted_({});
}

void OutboxDispatcher::request_poll(std::optional<SteadyPoint> when) {
  // Under the lock, so that it cannot happen after `stop`, when the poller may be gone.
  const MutexLock lock(mutex_);
  if (accepting_ && on_poll_wanted_) on_poll_wanted_(when);
}

void OutboxDispatcher::doubt(std::span<const OutboxItem> events) {
  const MutexLock lock(mutex_);
  if (accepting_ && on_doubt_) on_doubt_(events);
}

OutboxItem OutboxDispatcher::take() {
  bool hot = !queues_.hot.empty();
  if (hot && !queues_.cold.empty()) {
    hot = turn_ < 2;
    turn_ = (turn_ + 1) % 3;
  }
  OutboxItem event = hot ? queues_.hot.pop() : queues_.cold.pop();
  room_of(event.source).leave(1);
  --queued_;
  ++running_;
  // Otherwise the last that were queued would be seen until more come.
  if (queues_.hot.empty() && queues_.cold.empty()) options_.metrics->record_queue_depths(0, 0);
  return event;
}

void OutboxDispatcher::work() {
  const Running running(*this);
  for (;;) {
    OutboxItem event;
    {
      const MutexLock lock(mutex_);
      while (!stopping_ && queues_.hot.empty() && queues_.cold.empty()) ready_.wait(mutex_);
      if (stopping_) return;
      event = take();
      poll_if_room();
    }
    process(std::move(event));
    bool idle = false;
    {
      const MutexLock lock(mutex_);
      --running_;
      idle = queued_ + running_ == 0;
    }
    if (idle) drained_.notify_all();
  }
}

void OutboxDispatcher::run_inline() {
  if (!options_.run_inline) return;
  const Running running(*this);
  for (;;) {
    OutboxItem event;
    {
      const MutexLock lock(mutex_);
      if (queues_.hot.empty() && queues_.cold.empty()) return;
      event = take();
      ++entrants_;
    }
    process(std::move(event));
    {
      const MutexLock lock(mutex_);
      --running_;
    }
    leave();
  }
}

void OutboxDispatcher::process(OutboxItem event) {
  failpoint("outbox.process.before");
  try {
    if (!still_held(event)) {
      drop(event);
      return;
    }
    if (event.ordered() && event.source == Source::hot && !first_of_its_key(event)) {
      finish(event, release_of(event).completion);
      return;
    }
  } catch (const std::exception& error) {
    // The database could not be asked. The event is safe in it: let go, the poller brings it when the lease
    // has ended.
    options_.log(LogLevel::warning, "postrider: cannot check the lease of event " + event.id().str() +
                                        ", it will be delivered later: " + what_of(error));
    drop(event);
    return;
  }

  const SteadyPoint begin = options_.clock->steady_now();
  options_.metrics->observe_queue_wait(std::chrono::duration_cast<Duration>(begin - event.enqueued));
  const Outcome outcome = run_listeners(event);
  options_.metrics->observe_listener_time(
      std::chrono::duration_cast<Duration>(options_.clock->steady_now() - begin));
  failpoint("outbox.process.after");

  // The claim may have been renewed under a newer token while the listener ran.
  const auto hold = in_flight_.find(event.id());
  if (hold && hold->lost) {
    options_.metrics->increment_stale_completions(1);
    drop(event);
    return;
  }
  const LeaseRef lease{event.id(), hold ? Token{hold->token} : event.token};
  Completion completion = decide(lease, event.failed, outcome, options_.retry, random());
  switch (completion.kind) {
    case Completion::Kind::done:
      options_.metrics->increment_dispatch_success();
      break;
    case Completion::Kind::dead:
      options_.metrics->increment_dispatch_dead();
      deaths_.died(*event.event, completion.error);
      break;
    default:
      options_.metrics->increment_dispatch_failure();
      break;
  }
  finish(event, std::move(completion));
}

/// Checks the fence before anything is run: a lease that may have ended is asked for again, by its token.
bool OutboxDispatcher::still_held(OutboxItem& event) {
  const auto hold = in_flight_.find(event.id());
  if (!hold) return false;
  event.token = Token{hold->token};
  const SteadyPoint now = options_.clock->steady_now();
  if (!hold->lost && now < hold->lease_end) return true;
  const LeaseRef lease{event.id(), event.token};
  if (hold->lost || store_.renew({&lease, 1}, options_.lease).empty()) {
    options_.metrics->increment_stale_completions(1);
    return false;
  }
  in_flight_.extend(event.id(), hold->token, now + options_.lease);
  return true;
}

/// A hot event of a key must not overtake one that another node, or a retry, still has to deliver. What this
/// process has delivered itself may still look pending while its result is on the way to the database.
bool OutboxDispatcher::first_of_its_key(const OutboxItem& event) {
  // Taken before the database is asked: a result that is flushed meanwhile may still look pending to the
  // question. No other event of the key can end here meanwhile, this one has the lane.
  std::unordered_set<EventId> finished;
  {
    const MutexLock lock(mutex_);
    finished = lanes_.finished(event.ordering_key);
  }
  const std::vector<EventId> before =
      store_.predecessors(event.ordering_key, event.id(), finished.size() + 1);
  return std::all_of(before.begin(), before.end(), [&](const EventId& id) { return finished.contains(id); });
}

Outcome OutboxDispatcher::run_listeners(const OutboxItem& event) {
  const auto listeners = listeners_.listeners_for(event.event->type());
  if (listeners->empty()) {
    return Outcome::failed("no listener is registered for event type '" + event.event->type() +
                           "' on this node. Hint: outbox.on(type, …) or outbox.on_all(…) before start()");
  }
  const Delivery delivery{event.failed, event.source, life_of(event.token)};
  try {
    for (const auto& listener : *listeners) {
      Outcome outcome = (*listener)(*event.event, delivery);
      if (outcome.kind() != Outcome::Kind::done) return outcome;
    }
    return Outcome::done();
  } catch (const std::exception& error) {
    return Outcome::failed(what_of(error));
  } catch (...) {
    return Outcome::failed("the listener threw something that is not a std::exception");
  }
}

void OutboxDispatcher::finish(const OutboxItem& event, Completion completion) {
  // The lane learns first: once the result is submitted, `flushed` may come at any moment.
  if (event.ordered()) leave_lane(event, for_good(completion));
  submit({std::move(completion), event.ordering_key});
}

void OutboxDispatcher::leave_lane(const OutboxItem& event, bool may_be_followed) {
  if (!event.ordered()) return;
  KeyLanes::Ended ended;
  bool next_ready = false;
  {
    const MutexLock lock(mutex_);
    ended = lanes_.ended(event, may_be_followed && !stopping_);
    for (const OutboxItem& waiting : ended.given_back) {
      --queued_;
      room_of(waiting.source).leave(1);
    }
    if (ended.next) {
      make_ready(std::move(*ended.next));
      next_ready = true;
    }
  }
  if (next_ready) ready_.notify_one();
  give_back(ended.given_back);
}

/// Lets go of an event without writing anything about it.
void OutboxDispatcher::drop(const OutboxItem& event) {
  leave_lane(event, false);
  const FinishedEvent gone = release_of(event);
  flushed({&gone, 1});
}

void OutboxDispatcher::give_back(std::span<const OutboxItem> events) {
  for (const OutboxItem& event : events) submit(release_of(event));
}

void OutboxDispatcher::submit(FinishedEvent result) {
  if (!options_.run_inline) {
    completer_.submit(std::move(result));
    return;
  }
  try {
    completer_.write_now({&result, 1});
  } catch (const std::exception& error) {
    options_.log(LogLevel::error, "postrider: cannot write a result inline: " + what_of(error));
  }
  flushed({&result, 1});
}

std::vector<std::string> OutboxDispatcher::flushed(std::span<const FinishedEvent> results) {
  std::vector<std::string> keys;
  std::vector<OutboxItem> again;
  for (const FinishedEvent& result : results) {
    InFlightCopies::Ended ended;
    {
      const MutexLock lock(mutex_);
      ended = copies_.ended(result.completion);
      // Written again, the result still has its place in the lane. Else the key may have more, once its lane
      // is gone.
      if (!ended.write_again && !result.ordering_key.empty() &&
          lanes_.flushed(result.ordering_key, result.completion.lease.id)) {
        keys.push_back(result.ordering_key);
      }
      poll_if_room();
    }
    if (ended.write_again) {
      FinishedEvent rewritten{std::move(*ended.write_again), result.ordering_key};
      options_.run_inline ? submit(std::move(rewritten)) : completer_.write_again(std::move(rewritten));
    }
    if (ended.requeue) again.push_back(std::move(*ended.requeue));
  }
  for (OutboxItem& copy : again) requeue(std::move(copy));
  return keys;
}

/// Queues a copy whose row came to a new life (a retry, a replay) while the last result was being written, or
/// while the old life was still in a listener.
void OutboxDispatcher::requeue(OutboxItem copy) {
  std::vector<OutboxItem> events;
  copy.source = Source::cold;  // its place in the hot queue, if it had one, was given up when it had to wait
  events.push_back(std::move(copy));
  // One with a key goes back instead: those that were claimed before it, if any, are no longer here.
  if (!events.front().ordered() && cold_has_room_for(events.front()) && enqueue_cold(events)) return;
  events.front().ordering_key.clear();
  // No room, or stopping. What the completer cannot take comes free with its lease.
  if (options_.run_inline) {
    submit(release_of(events.front()));
  } else {
    (void)completer_.try_submit(release_of(events.front()));
  }
}

double OutboxDispatcher::random() {
  const MutexLock lock(random_mutex_);
  return std::uniform_real_distribution<double>(0.0, 1.0)(random_engine_);
}

}  // namespace postrider
