// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "core/wake_times.hpp"
#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "queue/event_run.hpp"

namespace postrider {

/// An event with what is stored about it.
struct Work {
  QueuedEvent event{};
  StoredStates states{};
};

/// Events of one ordering key, or a single one without: run by one worker, one after the other.
using WorkItem = std::vector<Work>;

/// Between the fetcher and the workers. Holds what one or two claims have brought, so it is bounded by them.
/// Thread-safe.
class WorkQueue {
 public:
  explicit WorkQueue(Clock& clock) : clock_(clock) {}

  void open() POSTRIDER_EXCLUDES(mutex_);
  /// Workers get what is left, then nothing.
  void close() POSTRIDER_EXCLUDES(mutex_);

  void push(std::vector<WorkItem> items) POSTRIDER_EXCLUDES(mutex_);
  /// Waits for the next item; nothing when closed and empty.
  [[nodiscard]] std::optional<WorkItem> pop() POSTRIDER_EXCLUDES(mutex_);
  /// Takes everything, for giving it back.
  [[nodiscard]] std::deque<WorkItem> take_all() POSTRIDER_EXCLUDES(mutex_);

  /// Waits until at most `events` are waiting, or until it is closed.
  void await_at_most(std::size_t events) POSTRIDER_EXCLUDES(mutex_);
  /// Wakes a fetcher that waits for new events.
  void wake() noexcept POSTRIDER_EXCLUDES(mutex_);
  /// The same at this time: a retry falls due then.
  void wake_at(SteadyPoint when) POSTRIDER_EXCLUDES(mutex_);
  /// Waits for `wake` (or its time), for `close`, or until the pause has passed. True when it was woken; a
  /// `wake` since the last call counts.
  bool await_wake(Duration pause) POSTRIDER_EXCLUDES(mutex_);
  /// A signal from before is no news any more.
  void forget_wake() POSTRIDER_EXCLUDES(mutex_);

  [[nodiscard]] bool closed() const POSTRIDER_EXCLUDES(mutex_);
  /// How many events workers have taken since the last call.
  [[nodiscard]] std::size_t taken_since() POSTRIDER_EXCLUDES(mutex_);

 private:
  Clock& clock_;
  mutable Mutex mutex_;
  CondVar not_empty_;
  CondVar fetcher_;
  std::deque<WorkItem> items_ POSTRIDER_GUARDED_BY(mutex_);
  std::size_t events_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::size_t low_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::size_t taken_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  bool closed_ POSTRIDER_GUARDED_BY(mutex_) = true;
  bool woken_ POSTRIDER_GUARDED_BY(mutex_) = false;
  WakeTimes wake_times_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider
