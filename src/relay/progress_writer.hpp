// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <thread>
#include <unordered_map>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/log.hpp"
#include "postrider/metrics.hpp"
#include "storage/progress_store.hpp"

namespace postrider {

/// Writes how far pairs are, on one thread: whatever came together during one write goes into the next, one
/// step per pair. So publishing goes on while the disk works, and a thousand pairs cost as many commits as
/// one. Thread-safe.
class ProgressWriter {
 public:
  struct Options {
    Duration stop_timeout{};
    Clock* clock = nullptr;
    MetricsExporter* metrics = nullptr;
    LogCallback log{};
  };
  /// What became of the steps of one pair that were put together.
  struct Written {
    std::size_t pair = 0;
    Epoch epoch{};
    Position to{};
    std::size_t steps = 0;
    bool failure = false;  ///< not a step: a failure was written
    bool done = false;     ///< false: refused, the pair has another epoch or stands elsewhere
  };
  /// Called without a lock, on the writer's thread or on that of `flush`.
  using OnWritten = std::function<void(const std::vector<Written>&)>;

  ProgressWriter(ProgressStore& store, Options options, OnWritten on_written);
  ~ProgressWriter() { stop(); }
  ProgressWriter(const ProgressWriter&) = delete;
  ProgressWriter& operator=(const ProgressWriter&) = delete;

  void start() POSTRIDER_EXCLUDES(mutex_);
  /// Writes what is there. A database that is away is waited for no longer than the stop timeout; what is not
  /// written by then will be published again.
  void stop() POSTRIDER_EXCLUDES(mutex_);

  /// `pair` is the pair's number, and has one step after the other. Never blocks.
  void submit(std::size_t pair, ProgressStep step) POSTRIDER_EXCLUDES(mutex_);
  /// Written behind the pair's steps; forgotten when it moves on before.
  void submit(std::size_t pair, PairFailure failure) POSTRIDER_EXCLUDES(mutex_);
  /// Writes on this thread what is there now; throws what the database throws. While not started.
  void flush() POSTRIDER_EXCLUDES(mutex_);

 private:
  struct Item {
    std::size_t pair = 0;
    std::size_t steps = 1;
    ProgressStep step{};
  };
  struct Work {
    std::vector<Item> items{};
    std::unordered_map<std::size_t, std::size_t> last_item{};  // of a pair
    std::map<std::size_t, PairFailure> failures{};
    [[nodiscard]] bool empty() const noexcept { return items.empty() && failures.empty(); }
  };
  void run() POSTRIDER_EXCLUDES(mutex_);
  void write(const Work& work);
  [[nodiscard]] bool pause_before_retry(int failures) POSTRIDER_EXCLUDES(mutex_);

  ProgressStore& store_;
  const Options options_;
  const OnWritten on_written_;
  Mutex mutex_;
  CondVar changed_;
  Work waiting_ POSTRIDER_GUARDED_BY(mutex_);
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;
  SteadyPoint give_up_at_ POSTRIDER_GUARDED_BY(mutex_){};
  std::thread thread_;
};

}  // namespace postrider
