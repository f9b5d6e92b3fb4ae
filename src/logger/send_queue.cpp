// SPDX-License-Identifier: Apache-2.0
#include "logger/send_queue.hpp"

#include <algorithm>

namespace postrider::logger {

void SendQueue::recount() {
  depth_.store(ready_.size(), std::memory_order_relaxed);
}

std::size_t SendQueue::push(std::span<const EventRef> events) {
  std::size_t count = 0;
  {
    const MutexLock lock(mutex_);
    count = std::min(events.size(), capacity_ - std::min(capacity_, ready_.size()));
    if (count == 0) return 0;
    if (ready_.empty()) ready_since_ = clock_.steady_now();
    ready_.insert(ready_.end(), events.begin(), events.begin() + static_cast<std::ptrdiff_t>(count));
    recount();
  }
  arrived_.notify_all();
  return count;
}

bool SendQueue::push_retry(const EventRef& event, SteadyPoint due) {
  {
    const MutexLock lock(mutex_);
    if (no_retries_) return false;
    retries_.push_back({due, event});
    std::push_heap(retries_.begin(), retries_.end(), later);
  }
  arrived_.notify_all();
  return true;
}

void SendQueue::give_back(std::span<const EventRef> events) {
  {
    const MutexLock lock(mutex_);
    ready_.insert(ready_.begin(), events.begin(), events.end());
    recount();
  }
  arrived_.notify_all();
}

void SendQueue::requeue_due(SteadyPoint now, std::vector<EventRef>& homeless) {
  while (!retries_.empty() && retries_.front().due <= now) {
    std::pop_heap(retries_.begin(), retries_.end(), later);
    const EventRef event = retries_.back().event;
    retries_.pop_back();
    if (ready_.size() >= capacity_) {
      homeless.push_back(event);
      continue;
    }
    if (ready_.empty()) ready_since_ = now;
    ready_.push_back(event);
  }
  recount();
}

bool SendQueue::take_locked(std::vector<EventRef>& batch, std::vector<EventRef>& homeless) {
  const MutexLock lock(mutex_);
  for (;;) {
    const SteadyPoint now = clock_.steady_now();
    requeue_due(now, homeless);
    const SteadyPoint full_at = ready_since_ + max_batch_wait_;
    if (ready_.size() >= batch_size_ || (!ready_.empty() && (closed_ || hurries_ > 0 || now >= full_at))) {
      const std::size_t count = std::min(batch_size_, ready_.size());
      batch.insert(batch.end(), ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
      ready_.erase(ready_.begin(), ready_.begin() + static_cast<std::ptrdiff_t>(count));
      ready_since_ = now;
      recount();
      taken_.notify_all();
      return true;
    }
    if (!homeless.empty()) return true;
    if (closed_ && ready_.empty() && (no_retries_ || retries_.empty())) return false;
    SteadyPoint wake = SteadyPoint::max();
    if (!ready_.empty()) wake = full_at;
    if (!retries_.empty()) wake = std::min(wake, retries_.front().due);
    if (wake == SteadyPoint::max()) {
      arrived_.wait(mutex_);
    } else {
      clock_.wait_until(arrived_, mutex_, wake);
    }
  }
}

void SendQueue::hurry(bool on) {
  {
    const MutexLock lock(mutex_);
    hurries_ += on ? 1 : -1;
  }
  arrived_.notify_all();
}

std::vector<EventRef> SendQueue::close_retries() {
  std::vector<EventRef> waiting;
  {
    const MutexLock lock(mutex_);
    no_retries_ = true;
    for (const Retry& retry : retries_) waiting.push_back(retry.event);
    retries_.clear();
  }
  arrived_.notify_all();
  return waiting;
}

void SendQueue::close() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  arrived_.notify_all();
  taken_.notify_all();
}

std::vector<EventRef> SendQueue::drain() {
  const MutexLock lock(mutex_);
  std::vector<EventRef> rest(ready_.begin(), ready_.end());
  ready_.clear();
  recount();
  taken_.notify_all();
  return rest;
}

bool SendQueue::await_low(SteadyPoint deadline) {
  const MutexLock lock(mutex_);
  while (ready_.size() >= batch_size_ && !closed_) {
    if (clock_.steady_now() >= deadline) return false;
    clock_.wait_until(taken_, mutex_, deadline);
  }
  return true;
}

bool SendQueue::await_empty(SteadyPoint deadline) {
  const MutexLock lock(mutex_);
  while (!ready_.empty()) {
    if (clock_.steady_now() >= deadline) return false;
    clock_.wait_until(taken_, mutex_, deadline);
  }
  return true;
}

}  // namespace postrider::logger
