// SPDX-License-Identifier: Apache-2.0
#include "core/circuit_breaker.hpp"

#include <algorithm>

namespace postrider {
namespace {

constexpr std::size_t ramp_ends_at = 64;

}  // namespace

CircuitBreaker::Permit CircuitBreaker::try_acquire(SteadyPoint now) {
  if (state_ == State::open) {
    if (now < reopens_at_) return Permit::open;
    state_ = State::half_open;
    limit_ = out_ + 1;  // requests from before it opened may still be out
  }
  if (state_ != State::closed && out_ >= limit_) return Permit::busy;
  ++out_;
  return Permit::granted;
}

void CircuitBreaker::on_success(SteadyPoint now) {
  out_ -= std::min<std::size_t>(out_, 1);
  if (state_ == State::open) return;  // sent before it opened
  remember(now, false);
  if (state_ == State::half_open) {
    state_ = State::ramp;
    limit_ = 1;
  }
  if (state_ == State::ramp) {
    limit_ *= 2;
    if (limit_ >= ramp_ends_at) state_ = State::closed;
  }
}

void CircuitBreaker::on_failure(SteadyPoint now) {
  out_ -= std::min<std::size_t>(out_, 1);
  if (state_ == State::open) return;
  if (state_ != State::closed) return open(now);
  remember(now, true);
  const auto failures =
      std::count_if(results_.begin(), results_.end(), [](const Result& r) { return r.failed; });
  if (failures >= options_.threshold && failures * 2 >= static_cast<std::ptrdiff_t>(results_.size()))
    open(now);
}

void CircuitBreaker::on_neutral() noexcept {
  out_ -= std::min<std::size_t>(out_, 1);
}

void CircuitBreaker::remember(SteadyPoint now, bool failed) {
  results_.push_back({now, failed});
  const auto most = static_cast<std::size_t>(options_.threshold) * 2;
  while (results_.size() > most || results_.front().when + options_.window < now) results_.pop_front();
}

void CircuitBreaker::open(SteadyPoint now) {
  state_ = State::open;
  reopens_at_ = now + options_.reset;
  results_.clear();
}

}  // namespace postrider
