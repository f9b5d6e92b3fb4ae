// SPDX-License-Identifier: Apache-2.0
#include "publishers/guarded_sink.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/age.hpp"
#include "core/option_check.hpp"
#include "core/what_of.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

SinkLimits checked(SinkLimits limits) {
  const OptionCheck check("SinkLimits");
  check.count("rate", limits.rate, 0, 10'000'000);
  check.time("patience", limits.patience, Duration{0}, std::chrono::minutes{1});
  check.number("breaker_threshold", limits.breaker_threshold, 0, 1000);
  check.time("breaker_window", limits.breaker_window, std::chrono::milliseconds{1}, std::chrono::hours{24});
  check.time("breaker_reset", limits.breaker_reset, std::chrono::milliseconds{1}, std::chrono::hours{24});
  check.count("batch", limits.batch, 1, 100'000);
  if (limits.clock == nullptr) limits.clock = &Clock::system();
  limits.log = guarded(std::move(limits.log));
  return limits;
}

std::shared_ptr<Sink> not_null(std::shared_ptr<Sink> sink) {
  if (sink == nullptr) {
    throw Error(ErrorCode::invalid_argument, "cannot use a sink", "it is null",
                "make one, for example with file_sink");
  }
  return sink;
}

std::optional<CircuitBreaker> breaker_of(const SinkLimits& limits) {
  if (limits.breaker_threshold == 0) return std::nullopt;
  return CircuitBreaker({.threshold = limits.breaker_threshold,
                         .window = limits.breaker_window,
                         .reset = limits.breaker_reset});
}

/// What came before a failure is part of the result.
PublishResult behind_first(std::size_t first, const PublishResult& result, std::size_t size) {
  std::vector<std::size_t> behind = result.behind();
  for (std::size_t& number : behind) number += first;
  return result.with_count(first + result.count(size)).with_behind(std::move(behind));
}

/// Of an event that the receiver fails with, and nobody knows why.
Duration pause_after(std::uint32_t times) {
  constexpr std::uint32_t doublings = 6;
  constexpr Duration longest = std::chrono::minutes{1};
  return std::min<Duration>(std::chrono::seconds{1U << std::min(times - 1, doublings)}, longest);
}

/// For people, who want to know whether to wait.
std::string rounded(SteadyPoint::duration wait) {
  return wait > std::chrono::minutes{2} ? format_age(std::chrono::ceil<std::chrono::minutes>(wait))
                                        : format_age(std::chrono::ceil<std::chrono::seconds>(wait));
}

/// Callers wait for as long as the result says, whatever the receiver asks for. And who names events that
/// there are not is not believed.
PublishResult bounded(PublishResult result, std::size_t size) {
  std::vector<std::size_t> behind = result.behind();
  const bool ascends =
      std::adjacent_find(behind.begin(), behind.end(), std::greater_equal<>()) == behind.end();
  const bool counts =
      ascends && (behind.empty() || (behind.front() > result.count(size) && behind.back() < size));
  if (!counts) behind.clear();
  if (counts && result.retry_after() <= longest_asked_pause) return result;
  if (result.retry_after() > longest_asked_pause) {
    result = PublishResult::unavailable(result.count(size), result.reason(), longest_asked_pause);
  }
  return result.with_behind(std::move(behind));
}

}  // namespace

GuardedSink::GuardedSink(std::shared_ptr<Sink> behind, SinkLimits limits)
    : behind_(not_null(std::move(behind))),
      limits_(checked(std::move(limits))),
      breaker_(breaker_of(limits_)),
      rate_(limits_.rate, limits_.clock->steady_now()),
      group_(limits_.batch, [this](std::span<const SinkMessage> messages) { return pace(messages); }) {}

GuardedSink::~GuardedSink() {
  close();
}

PublishResult GuardedSink::send(std::span<const SinkMessage> messages) {
  return group_.send(messages);
}

bool GuardedSink::healthy() const {
  {
    const MutexLock lock(mutex_);
    const SteadyPoint here = now();
    if (closed_ || here < paused_until_) return false;
    if (breaker_ && breaker_->state() == CircuitBreaker::State::open && here < breaker_->reopens_at())
      return false;
  }
  return behind_->healthy();
}

std::string GuardedSink::trouble() const {
  {
    const MutexLock lock(mutex_);
    const SteadyPoint here = now();
    if (!trouble_.empty() && here < paused_until_) {
      return trouble_ + " (it has asked for a pause, and is tried again in " + rounded(paused_until_ - here) +
             ")";
    }
    if (!trouble_.empty()) return trouble_;
  }
  return behind_->trouble();
}

SinkCounts GuardedSink::counts() const {
  const MutexLock lock(mutex_);
  return {.failures = failures_,
          .since_failure =
              failures_ == 0 ? Duration{0} : std::chrono::duration_cast<Duration>(now() - last_failure_),
          .circuit_open = breaker_ && breaker_->state() == CircuitBreaker::State::open};
}

void GuardedSink::revive() {
  {
    const MutexLock lock(mutex_);
    paused_until_ = {};
  }
  behind_->revive();
}

void GuardedSink::close() noexcept {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  closing_.notify_all();
  behind_->close();
}

PublishResult GuardedSink::pace(std::span<const SinkMessage> messages) {
  if (limits_.rate == 0) return attempt(messages);
  const SteadyPoint until = now() + limits_.patience;
  std::size_t sent = 0;
  while (sent < messages.size()) {
    const std::size_t some = admit(messages.size() - sent, until);
    if (some == 0) {
      return PublishResult::unavailable(
          sent, "'" + name() + "' takes no more than " + std::to_string(limits_.rate) + " messages a second");
    }
    const PublishResult result = attempt(messages.subspan(sent, some));
    if (result.kind() != PublishResult::Kind::all) return behind_first(sent, result, some);
    sent += some;
  }
  return PublishResult::all();
}

std::size_t GuardedSink::admit(std::size_t wanted, SteadyPoint until) {
  const MutexLock lock(mutex_);
  for (;;) {
    const SteadyPoint here = now();
    const std::size_t some = closed_ ? 0 : rate_.available(wanted, here);
    if (some != 0) {
      rate_.take(some, here);
      return some;
    }
    if (closed_ || here >= until) return 0;
    limits_.clock->wait_until(closing_, mutex_, std::min(until, rate_.next(here)));
  }
}

std::optional<PublishResult> GuardedSink::barred() {
  const MutexLock lock(mutex_);
  if (closed_) return PublishResult::unavailable(0, "'" + name() + "' is closed");
  const SteadyPoint here = now();
  const auto wait = [&](SteadyPoint until) {
    return std::max(Duration{1}, std::chrono::ceil<Duration>(until - here));
  };
  if (here < paused_until_) {
    const Duration left = wait(paused_until_);
    return PublishResult::unavailable(
        0, "'" + name() + "' has asked for a pause, and is tried again in " + rounded(left), left);
  }
  if (breaker_ && breaker_->try_acquire(here) != CircuitBreaker::Permit::granted) {
    return PublishResult::unavailable(0,
                                      "the circuit to '" + name() + "' is open after repeated failures" +
                                          (trouble_.empty() ? "" : ", the last: " + trouble_),
                                      wait(breaker_->reopens_at()));
  }
  return std::nullopt;
}

PublishResult GuardedSink::attempt(std::span<const SinkMessage> messages) {
  if (std::optional<PublishResult> no = barred()) return *std::move(no);
  PublishResult result = PublishResult::all();
  try {
    result = bounded(behind_->send(messages), messages.size());
  } catch (const Error& error) {
    result = error.retryable() ? PublishResult::unavailable(0, what_of(error))
                               : PublishResult::refused(0, what_of(error));
  } catch (const std::exception& error) {
    result = PublishResult::refused(0, what_of(error));
  }
  return learn(std::move(result), messages);
}

PublishResult GuardedSink::learn(PublishResult result, std::span<const SinkMessage> messages) {
  const MutexLock lock(mutex_);
  const SteadyPoint here = now();
  const Sign sign = judge(result, messages);
  const bool away = sign == Sign::away;
  // It may be away: so much is worth telling, if nothing else is tried.
  const bool in_doubt = sign == Sign::unknown && !blame_.alive(here);
  trouble_ = away || in_doubt ? result.reason() : std::string();
  if (away) {
    ++failures_;
    last_failure_ = here;
  }
  if (sign != Sign::unknown) tell(result, away);
  if (away && result.retry_after() > Duration{0}) paused_until_ = here + result.retry_after();
  if (breaker_) tell_breaker(result, sign);
  return result;
}

GuardedSink::Sign GuardedSink::judge(PublishResult& result, std::span<const SinkMessage> messages) {
  const std::size_t count = result.count(messages.size());
  const SteadyPoint here = now();
  for (const SinkMessage& one : messages.first(count)) blame_.taken(one, here);
  for (const std::size_t number : result.behind()) blame_.taken(messages[number], here);
  if (result.kind() != PublishResult::Kind::unavailable) return Sign::present;
  if (!result.is_unclear() || count == messages.size()) return Sign::away;
  const Blame::Verdict verdict = blame_.failed(messages[count], here);
  switch (verdict.of) {
    case Blame::Of::event:
      result = PublishResult::refused(count, result.reason() + " (and has taken others meanwhile)")
                   .with_behind(result.behind());
      return Sign::present;
    case Blame::Of::open:
      result = PublishResult::unclear(count, result.reason(), pause_after(verdict.times))
                   .with_behind(result.behind());
      return Sign::unknown;
    case Blame::Of::receiver:
      break;
  }
  result = PublishResult::unavailable(count, result.reason()).with_behind(result.behind());
  return Sign::away;
}

void GuardedSink::tell_breaker(const PublishResult& result, Sign sign) {
  const SteadyPoint here = now();
  const bool was_open = breaker_->state() != CircuitBreaker::State::closed;
  switch (sign) {
    case Sign::present:
      breaker_->on_success(here);
      break;
    case Sign::away:
      breaker_->on_failure(here);
      break;
    case Sign::unknown:
      breaker_->on_neutral();
      break;
  }
  const bool open = breaker_->state() == CircuitBreaker::State::open;
  if (open && !was_open) {
    limits_.log(LogLevel::warning,
                "postrider: the circuit to sink '" + name() + "' opens: " + result.reason());
  } else if (was_open && breaker_->state() == CircuitBreaker::State::closed) {
    limits_.log(LogLevel::info, "postrider: the circuit to sink '" + name() + "' is closed again");
  }
}

void GuardedSink::tell(const PublishResult& result, bool away) {
  if (closed_) return;  // it was ended by us
  if (away) {
    if (presence_.missed(now())) {
      limits_.log(LogLevel::warning, "postrider: sink '" + name() +
                                         "' does not take events, and is tried again: " + result.reason());
    }
  } else if (const std::optional<Duration> time = presence_.seen(now())) {
    limits_.log(LogLevel::info, "postrider: sink '" + name() + "' takes events again, after " +
                                    format_age(std::max<Duration>(*time, std::chrono::seconds{1})));
  }
}

std::shared_ptr<Sink> guarded_sink(std::shared_ptr<Sink> behind, SinkLimits limits) {
  return std::make_shared<GuardedSink>(std::move(behind), std::move(limits));
}

}  // namespace postrider
