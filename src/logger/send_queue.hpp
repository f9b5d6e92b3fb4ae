// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "logger/lane.hpp"
#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider::logger {

/// Events that wait for a sender, and those that wait for the time of their retry. Thread-safe.
class SendQueue {
 public:
  SendQueue(std::size_t capacity, std::size_t batch_size, Duration max_batch_wait, Clock& clock)
      : capacity_(capacity), batch_size_(batch_size), max_batch_wait_(max_batch_wait), clock_(clock) {}

  /// Called whenever there is more room. Before any thread uses the queue.
  void on_room(std::function<void()> callback) { on_room_ = std::move(callback); }
  /// Under the lock: who looks after he has said that he waits for room, misses none.
  [[nodiscard]] std::size_t room() const POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return capacity_ - std::min(capacity_, ready_.size());
  }
  /// Returns how many there was room for, from the first.
  [[nodiscard]] std::size_t push(std::span<const EventRef> events) POSTRIDER_EXCLUDES(mutex_);
  /// Takes it again when `due`. False when closed for retries: the event stays the caller's.
  [[nodiscard]] bool push_retry(const EventRef& event, SteadyPoint due) POSTRIDER_EXCLUDES(mutex_);
  /// To the front; there is always room for what was taken from here.
  void give_back(std::span<const EventRef> events) POSTRIDER_EXCLUDES(mutex_);

  /// Waits for a full batch, or for as long as a first event may wait. `homeless` gets retries for which the
  /// queue has no room. False when it is closed and nothing is left.
  [[nodiscard]] bool take(std::vector<EventRef>& batch, std::vector<EventRef>& homeless)
      POSTRIDER_EXCLUDES(mutex_) {
    const bool more = take_locked(batch, homeless);
    if (!batch.empty()) on_room_();
    return more;
  }

  /// While it is on, nobody waits for batches to fill.
  void hurry(bool on) POSTRIDER_EXCLUDES(mutex_);
  /// Returns what was waiting for a retry, and takes no more of that.
  [[nodiscard]] std::vector<EventRef> close_retries() POSTRIDER_EXCLUDES(mutex_);
  /// `take` returns what is there, then false.
  void close() POSTRIDER_EXCLUDES(mutex_);
  /// What is left.
  [[nodiscard]] std::vector<EventRef> drain() POSTRIDER_EXCLUDES(mutex_);
  /// Waits until less than a batch is waiting, or it is closed. False when `deadline` passed before.
  bool await_low(SteadyPoint deadline) POSTRIDER_EXCLUDES(mutex_);
  /// Waits until nothing is waiting. False when `deadline` passed before.
  [[nodiscard]] bool await_empty(SteadyPoint deadline) POSTRIDER_EXCLUDES(mutex_);

  [[nodiscard]] std::size_t depth() const noexcept { return depth_.load(std::memory_order_relaxed); }

 private:
  struct Retry {
    SteadyPoint due;
    EventRef event;
  };
  static bool later(const Retry& a, const Retry& b) noexcept { return a.due > b.due; }
  [[nodiscard]] bool take_locked(std::vector<EventRef>& batch, std::vector<EventRef>& homeless)
      POSTRIDER_EXCLUDES(mutex_);
  void requeue_due(SteadyPoint now, std::vector<EventRef>& homeless) POSTRIDER_REQUIRES(mutex_);
  void recount() POSTRIDER_REQUIRES(mutex_);

  const std::size_t capacity_;
  const std::size_t batch_size_;
  const Duration max_batch_wait_;
  Clock& clock_;
  std::function<void()> on_room_ = [] {};

  mutable Mutex mutex_;
  CondVar arrived_;
  CondVar taken_;
  std::deque<EventRef> ready_ POSTRIDER_GUARDED_BY(mutex_);
  SteadyPoint ready_since_ POSTRIDER_GUARDED_BY(mutex_){};
  std::vector<Retry> retries_ POSTRIDER_GUARDED_BY(mutex_);  // a heap
  int hurries_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  bool closed_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool no_retries_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::atomic<std::size_t> depth_{0};
};

}  // namespace postrider::logger
