// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace postrider::logger {

/// Runs something when SIGTERM or SIGINT comes, on a thread of its own, and then raises the signal again with
/// what it did before. Of several in a process each runs, in the order in which they were made, before that.
/// A child of the process, made by fork(), has the signals as they were before.
class SignalHook {
 public:
  explicit SignalHook(std::function<void()> run);
  /// When it is running, waits for its end.
  ~SignalHook();
  SignalHook(const SignalHook&) = delete;
  SignalHook& operator=(const SignalHook&) = delete;

  void run() const { run_(); }

 private:
  const std::function<void()> run_;
};

}  // namespace postrider::logger
