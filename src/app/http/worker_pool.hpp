// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "core/bounded_queue.hpp"

namespace postrider::http {

/// A few threads and a bounded queue before them. Thread-safe, except for `stop`.
class WorkerPool {
 public:
  /// Does not throw.
  using Job = std::function<void()>;

  WorkerPool(std::size_t threads, std::size_t capacity) : queue_(capacity) {
    threads_.reserve(threads);
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
  }
  ~WorkerPool() { stop(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// False when the queue is full or the pool is stopped. Never blocks.
  [[nodiscard]] bool submit(Job job) { return queue_.try_push(std::move(job)); }
  /// Forgets what is queued.
  void drop() {
    std::vector<Job> dropped;
    queue_.drain(dropped);
  }
  /// Does what is queued, then ends the threads.
  void stop() {
    queue_.close();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  void run() {
    std::vector<Job> jobs;
    while (queue_.pop_batch(jobs, 1, Duration::zero())) {
      jobs.front()();
      jobs.clear();
    }
  }

  BoundedQueue<Job> queue_;
  std::vector<std::thread> threads_;
};

}  // namespace postrider::http
