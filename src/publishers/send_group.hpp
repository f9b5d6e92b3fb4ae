// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "postrider/detail/sync.hpp"
#include "postrider/sink.hpp"

namespace postrider {

/// Messages of many threads become one batch: the first caller sends what has gathered, then hands over to
/// the first of those that came meanwhile. When the receiver was away, those are told the same without a try
/// of their own. No thread of its own. Thread-safe.
class SendGroup {
 public:
  /// Called by one thread at a time; must not throw.
  using Send = std::function<PublishResult(std::span<const SinkMessage>)>;

  SendGroup(std::size_t most, Send send) : most_(most), send_(std::move(send)) {}

  [[nodiscard]] PublishResult send(std::span<const SinkMessage> messages) POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t waiting() const POSTRIDER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return queue_.size();
  }

 private:
  struct Waiter {
    std::span<const SinkMessage> messages;
    PublishResult result = PublishResult::all();
    bool done = false;
    bool leads = false;
    CondVar woken{};
  };
  void lead() POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] std::vector<Waiter*> take() POSTRIDER_REQUIRES(mutex_);
  void settle(const std::vector<Waiter*>& batch, const PublishResult& result, std::size_t size)
      POSTRIDER_REQUIRES(mutex_);
  static void end_with(Waiter& one, PublishResult result);
  void hand_over() POSTRIDER_REQUIRES(mutex_);

  const std::size_t most_;
  const Send send_;
  mutable Mutex mutex_;
  std::deque<Waiter*> queue_ POSTRIDER_GUARDED_BY(mutex_);
  bool led_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::vector<SinkMessage> joined_;  // the leader's
};

}  // namespace postrider
