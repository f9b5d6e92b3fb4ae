// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider {

/// A first-in-first-out ring of fixed capacity; all memory is taken at construction. Not synchronised: the
/// building block for queues that share a mutex with other state.
template <class T>
class Ring {
 public:
  explicit Ring(std::size_t capacity) : slots_(capacity) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t capacity() const noexcept { return slots_.size(); }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] bool full() const noexcept { return size_ == slots_.size(); }

  /// Precondition: not full.
  void push(T value) {
    slots_[(head_ + size_) % slots_.size()] = std::move(value);
    ++size_;
  }
  /// Precondition: not empty. Leaves a default-made value behind, so that what the element owned is let go.
  T pop() {
    T value = std::exchange(slots_[head_], T{});
    head_ = (head_ + 1) % slots_.size();
    --size_;
    return value;
  }

 private:
  std::vector<T> slots_;
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

/// A bounded queue between threads. Thread-safe. Closing wakes everybody: pushes fail from then on, pops
/// drain what is left.
template <class T>
class BoundedQueue {
 public:
  explicit BoundedQueue(std::size_t capacity, Clock& clock = Clock::system())
      : clock_(clock), ring_(capacity) {}

  /// False when full or closed. Never blocks.
  [[nodiscard]] bool try_push(T value) POSTRIDER_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      if (closed_ || ring_.full()) return false;
      ring_.push(std::move(value));
    }
    not_empty_.notify_one();
    return true;
  }

  /// Waits for room. False when closed.
  [[nodiscard]] bool push(T value) POSTRIDER_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      while (!closed_ && ring_.full()) not_full_.wait(mutex_);
      if (closed_) return false;
      ring_.push(std::move(value));
    }
    not_empty_.notify_one();
    return true;
  }

  /// Waits for a first element, then collects more until `max` are there, or `linger` has passed since the
  /// first was taken, or the queue is closed. Appends to `out`. Returns false when closed and empty.
  bool pop_batch(std::vector<T>& out, std::size_t max, Duration linger) POSTRIDER_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      while (!closed_ && ring_.empty()) not_empty_.wait(mutex_);
      if (ring_.empty()) return false;
      const SteadyPoint deadline = clock_.steady_now() + linger;
      std::size_t taken = take(out, max);
      while (taken < max && !closed_ && clock_.steady_now() < deadline) {
        not_full_.notify_all();
        clock_.wait_until(not_empty_, mutex_, deadline);
        taken += take(out, max - taken);
      }
    }
    not_full_.notify_all();
    return true;
  }

  /// Takes what is there now, without waiting.
  std::size_t drain(std::vector<T>& out) POSTRIDER_EXCLUDES(mutex_) {
    std::size_t taken = 0;
    {
      const MutexLock lock(mutex_);
      taken = take(out, ring_.size());
    }
    not_full_.notify_all();
    return taken;
  }

  void close() POSTRIDER_EXCLUDES(mutex_) {
    {
      const MutexLock lock(mutex_);
      closed_ = true;
    }
    not_empty_.notify_all();
    not_full_.notify_all();
  }
  /// Takes elements again.
  void reopen() POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    closed_ = false;
  }
  [[nodiscard]] std::size_t size() const POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return ring_.size();
  }

 private:
  std::size_t take(std::vector<T>& out, std::size_t max) POSTRIDER_REQUIRES(mutex_) {
    std::size_t taken = 0;
    for (; taken < max && !ring_.empty(); ++taken) out.push_back(ring_.pop());
    return taken;
  }

  Clock& clock_;
  mutable Mutex mutex_;
  CondVar not_empty_;
  CondVar not_full_;
  Ring<T> ring_ POSTRIDER_GUARDED_BY(mutex_);
  bool closed_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

}  // namespace postrider
