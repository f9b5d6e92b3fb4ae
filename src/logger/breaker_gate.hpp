// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/circuit_breaker.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/event_log_client.hpp"

namespace postrider::logger {

/// Lets requests through to the receiver: the circuit breaker, the pauses that the receiver asks for, and the
/// budget for retries. Thread-safe.
class BreakerGate {
 public:
  BreakerGate(CircuitBreakerOptions options, double retry_budget, Clock& clock)
      : clock_(clock), budget_(retry_budget), breaker_(options) {}

  /// Waits for others that probe or ramp up, and for the end of a pause. False when the circuit is open, or
  /// the gate closed: nothing may be sent.
  [[nodiscard]] bool enter() POSTRIDER_EXCLUDES(mutex_);
  /// Ends what `enter` began, with what came of it.
  void leave(const SendResult& result) POSTRIDER_EXCLUDES(mutex_);
  /// Ends what `enter` began, with nothing to be said of the receiver.
  void leave() POSTRIDER_EXCLUDES(mutex_);
  /// Waits until `enter` may let somebody in, or the gate is closed. For those who have nowhere else to go.
  void await_reset() POSTRIDER_EXCLUDES(mutex_);

  /// Whether another retry may be spent. First attempts earn them.
  [[nodiscard]] bool spend_retry() POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] bool is_open() const POSTRIDER_EXCLUDES(mutex_);
  /// Whether the last thing heard of the receiver was good.
  [[nodiscard]] bool is_closed() const POSTRIDER_EXCLUDES(mutex_);
  /// How often the receiver has answered sensibly so far.
  [[nodiscard]] std::uint64_t successes() const POSTRIDER_EXCLUDES(mutex_);
  /// Nobody waits any more, and nobody is let in.
  void close() POSTRIDER_EXCLUDES(mutex_);

 private:
  Clock& clock_;
  const double budget_;
  mutable Mutex mutex_;
  CondVar changed_;
  CircuitBreaker breaker_ POSTRIDER_GUARDED_BY(mutex_);
  SteadyPoint paused_until_ POSTRIDER_GUARDED_BY(mutex_){};
  double retries_ POSTRIDER_GUARDED_BY(mutex_) = 10;  // to begin with
  std::uint64_t successes_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  bool closed_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

}  // namespace postrider::logger
