// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <thread>

#include "core/stop_signal.hpp"
#include "postrider/clock.hpp"
#include "postrider/log.hpp"
#include "storage/wake_channel.hpp"

namespace postrider {

/// The thread of a subscription: listens, and does it again when that has failed, after 100 ms to 10 s.
class WakeThread final : public WakeChannel::Subscription {
 public:
  /// Connects, calls `connected()`, listens, calls `wake()` for what it hears, and returns true (or throws)
  /// when that has broken, or as soon as `stopping()`. False: there is nothing to hear, and never will be.
  using Session = std::function<bool(WakeThread&)>;

  /// `name` is for the log.
  WakeThread(std::string name, std::function<void()> on_wake, LogCallback log, Session session);
  ~WakeThread() override;

  // For the session:
  [[nodiscard]] bool stopping() const noexcept { return thread_stop_.stop_requested(); }
  void connected() noexcept;
  void wake() noexcept;
  /// Waits for the descriptor (none: -1), the end or the time (for ever: negative). True when the descriptor
  /// has something.
  [[nodiscard]] bool poll_for(int fd, Duration longest) const;
  /// Once per outage: whoever listens polls as well.
  void complain(const std::string& why);
  void say(LogLevel level, const std::string& what) const;

 private:
  void run();

  const std::string name_;
  const std::function<void()> on_wake_;
  const LogCallback log_;
  const Session session_;
  StopSignal signal_;
  // The thread's own:
  std::stop_token thread_stop_;
  Duration pause_;
  bool complained_ = false;
  std::jthread thread_;  // last: it uses all of the above, and its destructor waits for it
};

}  // namespace postrider
