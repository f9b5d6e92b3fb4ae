// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/bounded_queue.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"
#include "postrider/log.hpp"

namespace postrider {

struct BatchWriterOptions {
  std::size_t batch_size = 512;
  Duration linger = std::chrono::milliseconds{2};
  std::size_t queue_capacity = 4096;
  /// After `stop`, how long a database that is away is waited for.
  Duration stop_timeout = std::chrono::seconds{10};
  Clock* clock = nullptr;
  LogCallback log{};
};

/// Writes results of events in batches, on one thread. A failed write is tried again until it succeeds; it
/// never looks like a failed delivery: the row stays leased to this node meanwhile, and whoever submits slows
/// down when the queue is full. T has `std::string name() const`, for messages.
template <class T>
class BatchWriter {
 public:
  /// Writes one batch, all or nothing.
  using Write = std::function<void(std::span<const T>)>;
  /// Called on the writer's thread after a batch is in the database, or was given up (`written` is false).
  using OnFlushed = std::function<void(std::span<const T>, bool written)>;
  /// Called for each failed write.
  using OnFailure = std::function<void()>;

  BatchWriter(BatchWriterOptions options, Write write, OnFlushed on_flushed, OnFailure on_failure)
      : options_(std::move(options)),
        write_(std::move(write)),
        on_flushed_(std::move(on_flushed)),
        on_failure_(std::move(on_failure)),
        queue_(options_.queue_capacity, *options_.clock) {
    queue_.close();
  }
  ~BatchWriter() { stop(); }
  BatchWriter(const BatchWriter&) = delete;
  BatchWriter& operator=(const BatchWriter&) = delete;

  void start() {
    {
      const MutexLock lock(mutex_);
      give_up_at_.reset();
    }
    queue_.reopen();
    thread_ = std::thread([this] { run(); });
  }
  /// From this moment on, a database that is away is no longer waited for: each batch is tried once. `stop`
  /// without it waits for the stop timeout.
  void give_up_at(SteadyPoint when) {
    {
      const MutexLock lock(mutex_);
      if (!give_up_at_) give_up_at_ = when;
    }
    stop_asked_.notify_all();
  }
  /// Writes what is queued, then ends the thread. Results that could not be written by then are logged: their
  /// rows come free when the lease ends, and the events are delivered again.
  void stop() {
    if (!thread_.joinable()) return;
    give_up_at(options_.clock->steady_now() + options_.stop_timeout);
    queue_.close();
    thread_.join();
  }

  /// Waits while the queue is full. Before `start` and after `stop` the result is dropped, with the same
  /// consequence as above.
  void submit(T result) {
    std::string name = result.name();
    if (!queue_.push(std::move(result))) {
      options_.log(LogLevel::warning, "postrider: the result of event " + name +
                                          " came after everything was stopped; it will be delivered again");
    }
  }
  /// False when the queue is full or closed. Never blocks.
  [[nodiscard]] bool try_submit(T result) { return queue_.try_push(std::move(result)); }
  /// From `on_flushed` only: written right after, without a place in the queue.
  void write_again(T result) { again_.push_back(std::move(result)); }

 private:
  void run() {
    std::vector<T> batch;
    while (queue_.pop_batch(batch, options_.batch_size, options_.linger)) {
      for (;;) {
        const bool written = flush(batch);
        on_flushed_(batch, written);
        batch.clear();
        if (again_.empty()) break;
        batch.swap(again_);
      }
    }
  }

  bool flush(std::span<const T> batch) {
    for (int failures = 0;; ++failures) {
      try {
        // A refusal is not a matter of waiting: something in the batch is wrong. Find it, and let its
        // neighbours through.
        return try_write(batch) || write_one_by_one(batch);
      } catch (const std::exception& error) {
        on_failure_();
        options_.log(LogLevel::error, "postrider: cannot write " + counted(batch.size(), "result") +
                                          ", trying again: " + what_of(error));
      }
      if (!pause_before_retry(failures)) {
        options_.log(LogLevel::error, "postrider: gave up writing " + counted(batch.size(), "result") +
                                          " while stopping; delivery will be repeated");
        return false;
      }
    }
  }
  /// False when the database refused the batch for good. Throws when it is worth trying again.
  bool try_write(std::span<const T> batch) {
    try {
      write_(batch);
      return true;
    } catch (const Error& error) {
      if (error.retryable() || error.connection_lost() || error.in_doubt() ||
          error.code() == ErrorCode::schema)
        throw;
      on_failure_();
      options_.log(LogLevel::error, "postrider: a batch of results was refused: " + what_of(error));
      return false;
    }
  }
  bool write_one_by_one(std::span<const T> batch) {
    for (const T& one : batch) {
      if (!try_write({&one, 1})) {
        options_.log(LogLevel::error,
                     "postrider: the result of event " + one.name() +
                         " cannot be written; it will be delivered again when its lease ends");
      }
    }
    return true;
  }
  [[nodiscard]] bool pause_before_retry(int failures) POSTRIDER_EXCLUDES(mutex_) {
    constexpr Duration first_pause = std::chrono::milliseconds{20};
    constexpr Duration longest_pause = std::chrono::seconds{2};
    const Duration pause = std::min(longest_pause, first_pause * (std::int64_t{1} << std::min(failures, 10)));
    const MutexLock lock(mutex_);
    const SteadyPoint until = options_.clock->steady_now() + pause;
    while (options_.clock->steady_now() < until) {
      if (give_up_at_ && options_.clock->steady_now() >= *give_up_at_) return false;
      options_.clock->wait_until(stop_asked_, mutex_, give_up_at_ ? std::min(until, *give_up_at_) : until);
    }
    return !give_up_at_ || options_.clock->steady_now() < *give_up_at_;
  }

  BatchWriterOptions options_;
  Write write_;
  OnFlushed on_flushed_;
  OnFailure on_failure_;
  BoundedQueue<T> queue_;
  std::vector<T> again_;  // writer's thread only
  Mutex mutex_;
  CondVar stop_asked_;
  std::optional<SteadyPoint> give_up_at_ POSTRIDER_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace postrider
