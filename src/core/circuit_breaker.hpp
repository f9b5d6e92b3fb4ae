// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>

#include "postrider/clock.hpp"

namespace postrider {

struct CircuitBreakerOptions {
  int threshold = 5;  ///< failures that open it …
  Duration window =
      std::chrono::seconds{30};  ///< … within this time, when they are half of the requests or more
  Duration reset = std::chrono::seconds{30};  ///< how long it stays open
};

/// Keeps requests away from a receiver that fails. Pure: time comes with the calls. Not synchronised.
///
/// closed → (failures) → open → (reset) → half open: one probe → ramp: twice as many at once with each
/// success → closed. A failure before that opens it again.
class CircuitBreaker {
 public:
  enum class State { closed, open, half_open, ramp };
  enum class Permit {
    granted,  ///< to be given back by one of the calls below
    open,     ///< not before `reopens_at`
    busy,     ///< others are on their way; ask again when one of them is back
  };

  explicit CircuitBreaker(CircuitBreakerOptions options) : options_(options) {}

  [[nodiscard]] Permit try_acquire(SteadyPoint now);
  /// The receiver has answered sensibly, be it with a refusal.
  void on_success(SteadyPoint now);
  void on_failure(SteadyPoint now);
  /// Says nothing about the receiver.
  void on_neutral() noexcept;

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] SteadyPoint reopens_at() const noexcept { return reopens_at_; }

 private:
  struct Result {
    SteadyPoint when;
    bool failed;
  };
  void remember(SteadyPoint now, bool failed);
  void open(SteadyPoint now);

  CircuitBreakerOptions options_;
  State state_ = State::closed;
  std::deque<Result> results_;
  SteadyPoint reopens_at_{};
  std::size_t out_ = 0;    // permits
  std::size_t limit_ = 0;  // of them, while half open or in the ramp
};

}  // namespace postrider
