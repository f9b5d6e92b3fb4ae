// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <postrider/metrics.hpp>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <stdexcept>

namespace postrider::bench {

/// Counts what has reached the database as finished, and lets a benchmark wait for a number of them.
/// Thread-safe.
class DrainMetrics final : public MetricsExporter {
 public:
  void increment_hot_dropped() override { ++dropped_; }
  void increment_stale_completions(std::size_t events) override { stale_ += events; }
  void observe_claim(std::size_t events, Duration time) override {
    const std::lock_guard lock(mutex_);
    claimed_ += events;
    claim_time_ += time;
  }
  void observe_flush(std::size_t events, Duration time) override {
    {
      const std::lock_guard lock(mutex_);
      flush_time_ += time;
      flushed_ += events;
      ++flushes_;
      if (flushed_ < awaited_) return;
    }
    reached_.notify_all();
  }

  // The queue's, by the same names.
  void observe_queue_claim(std::size_t events, Duration time) override { observe_claim(events, time); }
  void observe_queue_settle(std::size_t events, Duration time) override { observe_flush(events, time); }
  void increment_queue_stale(std::size_t events) override { stale_ += events; }

  /// Throws when nothing at all was finished for a minute.
  void await_flushed(std::size_t events) {
    std::unique_lock lock(mutex_);
    awaited_ = events;
    while (flushed_ < events) {
      const std::size_t before = flushed_;
      if (!reached_.wait_for(lock, std::chrono::seconds{60}, [&] { return flushed_ >= events; }) &&
          flushed_ == before) {
        throw std::runtime_error("nothing finished for a minute: " + std::to_string(flushed_) + " of " +
                                 std::to_string(events) + " events");
      }
    }
  }

  [[nodiscard]] std::size_t dropped() const noexcept { return dropped_; }
  [[nodiscard]] std::size_t stale() const noexcept { return stale_; }
  [[nodiscard]] double events_per_flush() const {
    const std::lock_guard lock(mutex_);
    return flushes_ == 0 ? 0 : static_cast<double>(flushed_) / static_cast<double>(flushes_);
  }
  /// Spent in the store, per event.
  [[nodiscard]] double claim_micros() const {
    const std::lock_guard lock(mutex_);
    return claimed_ == 0 ? 0 : static_cast<double>(claim_time_.count()) / static_cast<double>(claimed_);
  }
  [[nodiscard]] double flush_micros() const {
    const std::lock_guard lock(mutex_);
    return flushed_ == 0 ? 0 : static_cast<double>(flush_time_.count()) / static_cast<double>(flushed_);
  }

 private:
  std::atomic<std::size_t> dropped_{0};
  std::atomic<std::size_t> stale_{0};
  mutable std::mutex mutex_;
  std::condition_variable reached_;
  std::size_t flushed_ = 0;
  std::size_t flushes_ = 0;
  std::size_t awaited_ = 0;
  std::size_t claimed_ = 0;
  Duration claim_time_{};
  Duration flush_time_{};
};

}  // namespace postrider::bench
