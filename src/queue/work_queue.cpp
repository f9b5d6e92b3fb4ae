// SPDX-License-Identifier: Apache-2.0
#include "queue/work_queue.hpp"

#include <algorithm>
#include <utility>

namespace postrider {

void WorkQueue::open() {
  const MutexLock lock(mutex_);
  closed_ = false;
  woken_ = false;
  taken_ = 0;
}

void WorkQueue::close() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  not_empty_.notify_all();
  fetcher_.notify_all();
}

void WorkQueue::push(std::vector<WorkItem> items) {
  const bool several = items.size() > 1;
  {
    const MutexLock lock(mutex_);
    for (WorkItem& item : items) {
      events_ += item.size();
      items_.push_back(std::move(item));
    }
  }
  several ? not_empty_.notify_all() : not_empty_.notify_one();
}

std::optional<WorkItem> WorkQueue::pop() {
  std::optional<WorkItem> item;
  bool low = false;
  {
    const MutexLock lock(mutex_);
    while (items_.empty() && !closed_) not_empty_.wait(mutex_);
    if (items_.empty()) return item;
    item = std::move(items_.front());
    items_.pop_front();
    low = events_ > low_ && events_ - item->size() <= low_;
    events_ -= item->size();
    taken_ += item->size();
  }
  if (low) fetcher_.notify_all();
  return item;
}

std::deque<WorkItem> WorkQueue::take_all() {
  const MutexLock lock(mutex_);
  events_ = 0;
  return std::exchange(items_, {});
}

void WorkQueue::await_at_most(std::size_t events) {
  const MutexLock lock(mutex_);
  low_ = events;
  while (!closed_ && events_ > events) fetcher_.wait(mutex_);
}

void WorkQueue::wake() noexcept {
  {
    const MutexLock lock(mutex_);
    woken_ = true;
  }
  fetcher_.notify_all();
}

void WorkQueue::wake_at(SteadyPoint when) {
  {
    const MutexLock lock(mutex_);
    wake_times_.add(when);
  }
  fetcher_.notify_all();
}

bool WorkQueue::await_wake(Duration pause) {
  const MutexLock lock(mutex_);
  const SteadyPoint until = clock_.steady_now() + pause;
  SteadyPoint now = clock_.steady_now();
  while (!closed_ && !woken_ && now < std::min(until, wake_times_.next())) {
    clock_.wait_until(fetcher_, mutex_, std::min(until, wake_times_.next()));
    now = clock_.steady_now();
  }
  const bool due = wake_times_.next() <= now;
  wake_times_.forget_until(now);
  return std::exchange(woken_, false) || due;
}

void WorkQueue::forget_wake() {
  const MutexLock lock(mutex_);
  woken_ = false;
}

bool WorkQueue::closed() const {
  const MutexLock lock(mutex_);
  return closed_;
}

std::size_t WorkQueue::taken_since() {
  const MutexLock lock(mutex_);
  return std::exchange(taken_, 0);
}

}  // namespace postrider
