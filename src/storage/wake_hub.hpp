// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <thread>

#include "postrider/clock.hpp"
#include "postrider/detail/signal.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/log.hpp"

namespace postrider {

class WakeChannel;

/// Tells this node at once, and other nodes through the database, that there are new events. Many
/// signals become one message: NOTIFY costs a lock over the whole server, so it is sent outside any user's
/// transaction, by one thread, at most once per interval. Thread-safe.
class WakeHub {
 public:
  /// `channel` may be null: then only this node is told. The thread begins with the first signal. `topic` is
  /// one of wake_topic's and outlives the hub.
  WakeHub(std::shared_ptr<detail::Signal> here, WakeChannel* channel, std::string_view topic,
          Duration interval, LogCallback log);
  /// Sends what is still to be sent.
  ~WakeHub();
  WakeHub(const WakeHub&) = delete;
  WakeHub& operator=(const WakeHub&) = delete;

  void wake() noexcept POSTRIDER_EXCLUDES(mutex_);

  /// What is called on this node.
  [[nodiscard]] detail::Signal& here() noexcept { return *here_; }

 private:
  void run() POSTRIDER_EXCLUDES(mutex_);
  void tell_others() noexcept;

  const std::shared_ptr<detail::Signal> here_;
  WakeChannel* const channel_;
  const std::string_view topic_;
  const Duration interval_;
  const LogCallback log_;
  Mutex mutex_;
  CondVar changed_;
  bool pending_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool failing_ = false;  // the thread's own
  std::thread thread_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider
