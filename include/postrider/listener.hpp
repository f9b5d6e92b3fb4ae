// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "postrider/event.hpp"
#include "postrider/retry_policy.hpp"

namespace postrider {

/// What became of an event. A listener that returns nothing and doesn't throw is done.
class Outcome {
 public:
  enum class Kind { done, retry_after, failed, dead };

  [[nodiscard]] static Outcome done() { return Outcome(Kind::done, {}, {}); }
  /// Come back later, not counted as an attempt: the other side asked for patience. A delay below zero counts
  /// as zero, one above 365 days as 365 days. A reason is kept as the event's last error, so that operators
  /// see why it waits.
  [[nodiscard]] static Outcome retry_after(Duration delay, std::string reason = {}) {
    return Outcome(Kind::retry_after, delay, std::move(reason));
  }
  /// Like throwing an exception with this text: counted, retried by the policy, dead after the last attempt.
  [[nodiscard]] static Outcome failed(std::string reason) {
    return Outcome(Kind::failed, {}, std::move(reason));
  }
  /// Never try again: straight to the dead letters.
  [[nodiscard]] static Outcome dead(std::string reason) { return Outcome(Kind::dead, {}, std::move(reason)); }

  [[nodiscard]] Kind kind() const noexcept { return kind_; }
  [[nodiscard]] Duration delay() const noexcept { return delay_; }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  Outcome(Kind kind, Duration delay, std::string reason)
      : kind_(kind), delay_(delay), reason_(std::move(reason)) {}
  Kind kind_;
  Duration delay_;
  std::string reason_;
};

/// Which queue brought the event: hot right after its commit on this node, cold by the poller.
enum class Source : std::uint8_t { hot, cold };

/// How an event reaches the listener this time.
struct Delivery {
  Attempt failed;  ///< how many attempts have failed before; 0 the first time
  Source source;
  /// Stays the same while the event is retried or requeued; another one after its dead letter was replayed.
  std::int64_t life = 0;
};

/// Any callable with `(const Event&)` or `(const Event&, const Delivery&)` that returns void or Outcome. Runs
/// on worker threads, for different events at the same time. An exception counts as a failed attempt.
class Listener {
 public:
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, Listener> &&
           (std::invocable<F&, const Event&> || std::invocable<F&, const Event&, const Delivery&>))
      Listener(F&& function)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : call_([f = not_empty(std::forward<F>(function))](const Event& event,
                                                         const Delivery& delivery) mutable -> Outcome {
          const auto invoke = [&]() -> decltype(auto) {
            if constexpr (std::invocable<F&, const Event&, const Delivery&>) {
              return f(event, delivery);
            } else {
              return f(event);
            }
          };
          if constexpr (std::is_void_v<decltype(invoke())>) {
            invoke();
            return Outcome::done();
          } else {
            return invoke();
          }
        }) {}

  Outcome operator()(const Event& event, const Delivery& delivery) const { return call_(event, delivery); }

 private:
  /// An empty std::function or a null pointer is found when it is registered, not when an event comes.
  template <class F>
  static F&& not_empty(F&& function) {
    if constexpr (requires { function == nullptr; }) {
      if (function == nullptr) refuse_empty();
    }
    return std::forward<F>(function);
  }
  [[noreturn]] static void refuse_empty();

  std::function<Outcome(const Event&, const Delivery&)> call_;
};

}  // namespace postrider
