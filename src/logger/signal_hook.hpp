// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <thread>

namespace postrider::logger {

/// Runs something when SIGTERM or SIGINT comes, on a thread of its own, and then raises the signal again with
/// what it did before. One at a time in a process: a second one leaves the signals alone.
class SignalHook {
 public:
  explicit SignalHook(std::function<void()> run);
  ~SignalHook();
  SignalHook(const SignalHook&) = delete;
  SignalHook& operator=(const SignalHook&) = delete;

 private:
  std::function<void()> run_;
  std::thread thread_;
  bool installed_ = false;
};

}  // namespace postrider::logger
