// SPDX-License-Identifier: Apache-2.0
#include "postrider/testing.hpp"

#include <deque>
#include <utility>

#include "postrider/projection.hpp"

namespace postrider::testing {
namespace {

SteadyPoint end_of(Duration timeout) {
  return std::chrono::steady_clock::now() + timeout;
}

}  // namespace

void Signal::set() {
  const MutexLock lock(mutex_);
  set_ = true;
  changed_.notify_all();  // under the lock: whoever awaited us may destroy us as soon as it is free
}

void Signal::reset() {
  const MutexLock lock(mutex_);
  set_ = false;
}

bool Signal::is_set() const {
  const MutexLock lock(mutex_);
  return set_;
}

bool Signal::await(Duration timeout) const {
  const SteadyPoint deadline = end_of(timeout);
  const MutexLock lock(mutex_);
  while (!set_) {
    if (!changed_.wait_until(mutex_, deadline)) return set_;
  }
  return true;
}

struct RecordingListener::State {
  struct Plan {
    std::size_t calls;
    Outcome outcome;
  };
  Mutex mutex;
  CondVar changed;
  std::vector<Received> received POSTRIDER_GUARDED_BY(mutex);
  std::deque<Plan> plans POSTRIDER_GUARDED_BY(mutex);
  Outcome otherwise POSTRIDER_GUARDED_BY(mutex) = Outcome::done();
};

RecordingListener::RecordingListener() : state_(std::make_shared<State>()) {}

Outcome RecordingListener::operator()(const Event& event, const Delivery& delivery) const {
  const MutexLock lock(state_->mutex);
  state_->received.push_back(Received{event, delivery});
  state_->changed.notify_all();
  if (state_->plans.empty()) return state_->otherwise;
  State::Plan& plan = state_->plans.front();
  Outcome outcome = plan.outcome;
  if (--plan.calls == 0) state_->plans.pop_front();
  return outcome;
}

std::size_t RecordingListener::count() const {
  const MutexLock lock(state_->mutex);
  return state_->received.size();
}

std::vector<Event> RecordingListener::events() const {
  const MutexLock lock(state_->mutex);
  std::vector<Event> events;
  events.reserve(state_->received.size());
  for (const Received& one : state_->received) events.push_back(one.event);
  return events;
}

std::vector<RecordingListener::Received> RecordingListener::received() const {
  const MutexLock lock(state_->mutex);
  return state_->received;
}

bool RecordingListener::await(std::size_t calls, Duration timeout) const {
  const SteadyPoint deadline = end_of(timeout);
  const MutexLock lock(state_->mutex);
  while (state_->received.size() < calls) {
    if (!state_->changed.wait_until(state_->mutex, deadline)) return state_->received.size() >= calls;
  }
  return true;
}

void RecordingListener::answer_next(std::size_t calls, Outcome outcome) {
  if (calls == 0) return;
  const MutexLock lock(state_->mutex);
  state_->plans.push_back(State::Plan{calls, std::move(outcome)});
}

void RecordingListener::fail_next(std::size_t calls, std::string reason) {
  answer_next(calls, Outcome::failed(std::move(reason)));
}

void RecordingListener::answer(Outcome outcome) {
  const MutexLock lock(state_->mutex);
  state_->otherwise = std::move(outcome);
}

std::uint64_t RecordingMetrics::get(Counter counter) const noexcept {
  return counts_[static_cast<std::size_t>(counter)].load();
}

bool RecordingMetrics::await(Counter counter, std::uint64_t value, Duration timeout) const {
  const SteadyPoint deadline = end_of(timeout);
  const MutexLock lock(mutex_);
  ++awaiting_;  // before the look at the counter; `add` does both the other way round, so one of us sees the
                // other
  bool reached = get(counter) >= value;
  while (!reached) {
    const bool in_time = changed_.wait_until(mutex_, deadline);
    reached = get(counter) >= value;
    if (!in_time) break;
  }
  --awaiting_;
  return reached;
}

void RecordingMetrics::add(Counter counter, std::uint64_t by) {
  counts_[static_cast<std::size_t>(counter)] += by;
  if (awaiting_ == 0) return;
  const MutexLock lock(mutex_);  // an awaiter that has looked is asleep by now, not on the way there
  changed_.notify_all();
}

void RecordingMetrics::record_queue_depths(std::size_t hot, std::size_t cold) {
  hot_depth_ = hot;
  cold_depth_ = cold;
}

void RecordingMetrics::observe_flush(std::size_t events, Duration) {
  add(Counter::flushed_events, events);
  add(Counter::flushes);
}

void RecordingMetrics::observe_queue_claim(std::size_t events, Duration) {
  add(Counter::queue_claimed_events, events);
  add(Counter::queue_claims);
}

void RecordingMetrics::observe_queue_settle(std::size_t events, Duration) {
  add(Counter::queue_settled_events, events);
  add(Counter::queue_settles);
}

void RecordingMetrics::record_projection(const ProjectionStatus& status) {
  projection_lag_ = status.lag_events;
  add(Counter::projection_records);
}

void RecordingMetrics::observe_claim(std::size_t events, Duration) {
  add(Counter::claimed_events, events);
  add(Counter::claims);
}

PublishResult Latch::publish_batch(std::span<const StoredEvent> events, const PublishContext& context) {
  Answer answer;
  {
    const MutexLock lock(mutex_);
    answer = answer_;
    ++batches_;
  }
  PublishResult result = answer ? answer(events) : PublishResult::all();
  const MutexLock lock(mutex_);
  for (const StoredEvent& event : events.first(result.count(events.size()))) {
    received_.push_back({event, std::string(context.topic), context.epoch});
  }
  changed_.notify_all();
  return result;
}

std::vector<Latch::Received> Latch::received() const {
  const MutexLock lock(mutex_);
  return received_;
}

std::vector<Position> Latch::positions() const {
  const MutexLock lock(mutex_);
  std::vector<Position> positions;
  positions.reserve(received_.size());
  for (const Received& one : received_) positions.push_back(one.event.position());
  return positions;
}

std::size_t Latch::batches() const {
  const MutexLock lock(mutex_);
  return batches_;
}

bool Latch::await(std::size_t events, Duration timeout) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const MutexLock lock(mutex_);
  while (received_.size() < events) {
    if (!changed_.wait_until(mutex_, deadline) && received_.size() < events) return false;
  }
  return true;
}

void Latch::answer(Answer answer) {
  const MutexLock lock(mutex_);
  answer_ = std::move(answer);
}

}  // namespace postrider::testing
