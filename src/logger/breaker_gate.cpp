// SPDX-License-Identifier: Apache-2.0
#include "logger/breaker_gate.hpp"

#include <algorithm>

namespace postrider::logger {

bool BreakerGate::enter() {
  constexpr double most_retries = 100;
  const MutexLock lock(mutex_);
  while (!closed_) {
    const SteadyPoint now = clock_.steady_now();
    if (now < paused_until_) {
      clock_.wait_until(changed_, mutex_, paused_until_);
      continue;
    }
    switch (breaker_.try_acquire(now)) {
      case CircuitBreaker::Permit::granted:
        retries_ = std::min(most_retries, retries_ + budget_);
        return true;
      case CircuitBreaker::Permit::open:
        return false;
      case CircuitBreaker::Permit::busy:
        changed_.wait(mutex_);
        break;
    }
  }
  return false;
}

void BreakerGate::leave(const SendResult& result) {
  // A receiver that asks for an hour is still asked again before.
  constexpr Duration longest_pause = std::chrono::minutes{5};
  {
    const MutexLock lock(mutex_);
    const SteadyPoint now = clock_.steady_now();
    if (result.items.empty() && result.verdict == SendVerdict::transient) {
      breaker_.on_failure(now);
    } else if (result.verdict == SendVerdict::throttled) {
      breaker_.on_neutral();
    } else {
      breaker_.on_success(now);
      ++successes_;
    }
    const bool taken = result.items.empty() && result.verdict == SendVerdict::delivered;
    if (result.retry_after && !taken) {
      paused_until_ = std::max(paused_until_, now + std::min(*result.retry_after, longest_pause));
    }
  }
  changed_.notify_all();
}

void BreakerGate::leave() {
  {
    const MutexLock lock(mutex_);
    breaker_.on_neutral();
  }
  changed_.notify_all();
}

void BreakerGate::await_reset() {
  const MutexLock lock(mutex_);
  while (!closed_ && breaker_.state() == CircuitBreaker::State::open &&
         clock_.steady_now() < breaker_.reopens_at()) {
    clock_.wait_until(changed_, mutex_, breaker_.reopens_at());
  }
}

bool BreakerGate::spend_retry() {
  const MutexLock lock(mutex_);
  if (retries_ < 1) return false;
  retries_ -= 1;
  return true;
}

bool BreakerGate::is_open() const {
  const MutexLock lock(mutex_);
  return breaker_.state() == CircuitBreaker::State::open;
}

bool BreakerGate::is_closed() const {
  const MutexLock lock(mutex_);
  return breaker_.state() == CircuitBreaker::State::closed;
}

std::uint64_t BreakerGate::successes() const {
  const MutexLock lock(mutex_);
  return successes_;
}

void BreakerGate::close() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace postrider::logger
