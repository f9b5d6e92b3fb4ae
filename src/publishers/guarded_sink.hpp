// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/circuit_breaker.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/sink.hpp"
#include "publishers/blame.hpp"
#include "publishers/rate_limit.hpp"
#include "publishers/send_group.hpp"
#include "publishers/sink_presence.hpp"

namespace postrider {

/// The longest that a receiver may ask to be left alone. Events wait for it, and all behind them of their
/// keys.
inline constexpr Duration longest_asked_pause = std::chrono::hours{1};

/// Rate limit, circuit breaker, a receiver's own wish for a pause, and batches of several callers, before any
/// sink.
class GuardedSink final : public Sink {
 public:
  GuardedSink(std::shared_ptr<Sink> behind, SinkLimits limits);
  ~GuardedSink() override;

  PublishResult send(std::span<const SinkMessage> messages) override;
  const std::string& name() const noexcept override { return behind_->name(); }
  bool healthy() const override POSTRIDER_EXCLUDES(mutex_);
  std::string trouble() const override POSTRIDER_EXCLUDES(mutex_);
  SinkCounts counts() const override POSTRIDER_EXCLUDES(mutex_);
  /// Ends also a pause that the receiver has asked for.
  void revive() override POSTRIDER_EXCLUDES(mutex_);
  void close() noexcept override POSTRIDER_EXCLUDES(mutex_);
  /// Callers that wait for the batch before theirs to be sent.
  [[nodiscard]] std::size_t waiting() const { return group_.waiting(); }

 private:
  /// In pieces, as the rate allows.
  PublishResult pace(std::span<const SinkMessage> messages) POSTRIDER_EXCLUDES(mutex_);
  PublishResult attempt(std::span<const SinkMessage> messages) POSTRIDER_EXCLUDES(mutex_);
  /// Waits for a place in the rate; how many may go, none when patience is at its end or it was closed.
  std::size_t admit(std::size_t wanted, SteadyPoint until) POSTRIDER_EXCLUDES(mutex_);
  /// Why nothing may be sent at present.
  std::optional<PublishResult> barred() POSTRIDER_EXCLUDES(mutex_);
  /// What the receiver said, in the light of what it said before.
  PublishResult learn(PublishResult result, std::span<const SinkMessage> messages) POSTRIDER_EXCLUDES(mutex_);
  /// What it says about the receiver.
  enum class Sign : std::uint8_t { present, away, unknown };
  Sign judge(PublishResult& result, std::span<const SinkMessage> messages) POSTRIDER_REQUIRES(mutex_);
  void tell_breaker(const PublishResult& result, Sign sign) POSTRIDER_REQUIRES(mutex_);
  void tell(const PublishResult& result, bool away) POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] SteadyPoint now() const { return limits_.clock->steady_now(); }

  const std::shared_ptr<Sink> behind_;
  const SinkLimits limits_;
  mutable Mutex mutex_;
  CondVar closing_;
  bool closed_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::optional<CircuitBreaker> breaker_ POSTRIDER_GUARDED_BY(mutex_);
  RateLimit rate_ POSTRIDER_GUARDED_BY(mutex_);
  SteadyPoint paused_until_ POSTRIDER_GUARDED_BY(mutex_){};
  /// Of the last attempt, when the receiver was away.
  std::string trouble_ POSTRIDER_GUARDED_BY(mutex_);
  SinkPresence presence_ POSTRIDER_GUARDED_BY(mutex_);
  Blame blame_ POSTRIDER_GUARDED_BY(mutex_);
  std::uint64_t failures_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  SteadyPoint last_failure_ POSTRIDER_GUARDED_BY(mutex_){};
  SendGroup group_;
};

}  // namespace postrider
