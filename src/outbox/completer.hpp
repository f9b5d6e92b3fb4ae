// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/bounded_queue.hpp"
#include "postrider/log.hpp"
#include "postrider/metrics.hpp"
#include "storage/outbox_store.hpp"

namespace postrider {

struct CompleterOptions {
  std::size_t batch_size = 512;
  Duration linger = std::chrono::milliseconds{2};
  std::size_t queue_capacity = 4096;
  /// After `stop`, how long a database that is away is waited for.
  Duration stop_timeout = std::chrono::seconds{10};
  Clock* clock = nullptr;
  MetricsExporter* metrics = nullptr;
  LogCallback log;
};

/// A result on its way to the database.
struct FinishedEvent {
  Completion completion{};
  std::string ordering_key{};
};

/// Writes results in batches, on one thread. A failed write is tried again until it succeeds; it never looks
/// like a failed delivery: the row stays leased to this node meanwhile, and the workers slow down when the
/// queue is full.
class Completer {
 public:
  /// Called on the completer's thread after a batch is in the database, or was given up.
  using OnFlushed = std::function<void(std::span<const FinishedEvent>)>;

  Completer(OutboxStore& store, CompleterOptions options, OnFlushed on_flushed);
  ~Completer();

  void start();
  /// From this moment on, a database that is away is no longer waited for: each batch is tried once. `stop`
  /// without it waits for the stop timeout.
  void give_up_at(SteadyPoint when);
  /// Writes what is queued, then ends the thread. Results that could not be written by then are logged: their
  /// rows come free when the lease ends, and the events are delivered again.
  void stop();

  /// Waits while the queue is full. After `stop` the result is dropped, with the same consequence as above.
  void submit(FinishedEvent result);
  /// False when the queue is full or closed. Never blocks.
  [[nodiscard]] bool try_submit(FinishedEvent result);
  /// From `on_flushed` only: written right after, without a place in the queue.
  void write_again(FinishedEvent result) { again_.push_back(std::move(result)); }
  /// Writes one batch on the calling thread; for inline dispatch. Throws what the store throws.
  void write_now(std::span<const FinishedEvent> batch);

 private:
  void run();
  void flush(std::vector<FinishedEvent>& batch);
  bool try_write(std::span<const FinishedEvent> batch);
  void write_one_by_one(std::span<const FinishedEvent> batch);
  [[nodiscard]] bool pause_before_retry(int failures) POSTRIDER_EXCLUDES(mutex_);

  OutboxStore& store_;
  CompleterOptions options_;
  OnFlushed on_flushed_;
  std::unique_ptr<BoundedQueue<FinishedEvent>> queue_;
  std::vector<FinishedEvent> again_;  // completer's thread only
  std::vector<Completion> scratch_;   // completer's thread only

  Mutex mutex_;
  CondVar stop_asked_;
  std::optional<SteadyPoint> give_up_at_ POSTRIDER_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace postrider
