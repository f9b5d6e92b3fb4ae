// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "postrider/detail/sync.hpp"
#include "storage/stream_store.hpp"

namespace postrider {

struct AppendBatcherOptions {
  std::size_t events = 2'000;  ///< of one flush; a larger request has its own
  std::size_t bytes = 8U << 20U;
};

/// Group commit: requests of many threads become one flush. There is no thread of its own: the first caller
/// flushes what has gathered while others wait, then hands over to the first of those that came meanwhile.
/// Thread-safe.
class AppendBatcher {
 public:
  using Flush = std::function<std::vector<AppendVerdict>(std::span<const AppendRequest>)>;

  /// `flush` is called by one thread at a time. What it throws is the verdict of all its requests.
  AppendBatcher(AppendBatcherOptions options, Flush flush);
  /// As `close`.
  ~AppendBatcher();
  AppendBatcher(const AppendBatcher&) = delete;
  AppendBatcher& operator=(const AppendBatcher&) = delete;

  /// Waits for the verdict. What the request refers to must live as long as the call. Throws Error(closed)
  /// after `close`, or when `cancel` was asked to stop before the request was part of a flush; then nothing
  /// was written.
  AppendVerdict append(const AppendRequest& request, const std::stop_token& cancel)
      POSTRIDER_EXCLUDES(mutex_);

  /// Lets the flush that is under way end, and tells everybody else that he came too late.
  void close() noexcept POSTRIDER_EXCLUDES(mutex_);

  /// Requests that wait for their flush.
  [[nodiscard]] std::size_t waiting() const POSTRIDER_EXCLUDES(mutex_);

 private:
  struct Waiter;
  using Waiters = std::vector<std::shared_ptr<Waiter>>;

  /// Flushes the first ones, among them the caller's own, and hands over.
  void lead() POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] Waiters take() POSTRIDER_REQUIRES(mutex_);
  void run(const Waiters& batch) noexcept;
  /// The next in line leads, or nobody.
  void hand_over() POSTRIDER_EXCLUDES(mutex_);
  /// False when it is part of a flush already.
  [[nodiscard]] bool withdraw(const std::shared_ptr<Waiter>& waiter) POSTRIDER_EXCLUDES(mutex_);

  const AppendBatcherOptions options_;
  const Flush flush_;
  mutable Mutex mutex_;
  CondVar idle_;
  std::deque<std::shared_ptr<Waiter>> queue_ POSTRIDER_GUARDED_BY(mutex_);
  bool led_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool closed_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

}  // namespace postrider
