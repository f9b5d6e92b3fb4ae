// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "postrider/event_codec.hpp"
#include "postrider/queued_event.hpp"
#include "postrider/transaction.hpp"

namespace postrider {

/// What a handler made of an event. One that returns nothing and doesn't throw has succeeded; an exception is
/// a transient error with its text.
class EventHandledResult {
 public:
  [[nodiscard]] static EventHandledResult success() { return {HandlerVerdict::success, {}, {}}; }
  /// Try this handler again later; the others that succeeded are not run again. `delay` instead of the retry
  /// policy's, when given.
  [[nodiscard]] static EventHandledResult transient_error(std::string reason,
                                                          std::optional<Duration> delay = {}) {
    return {HandlerVerdict::transient_error, std::move(reason), delay};
  }
  /// Never try again: the event goes to the log with errors once all its handlers have run.
  [[nodiscard]] static EventHandledResult unrecoverable_error(std::string reason) {
    return {HandlerVerdict::unrecoverable_error, std::move(reason), {}};
  }

  [[nodiscard]] HandlerVerdict verdict() const noexcept { return verdict_; }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  [[nodiscard]] const std::optional<Duration>& delay() const noexcept { return delay_; }

 private:
  EventHandledResult(HandlerVerdict verdict, std::string reason, std::optional<Duration> delay)
      : verdict_(verdict), reason_(std::move(reason)), delay_(delay) {}
  HandlerVerdict verdict_;
  std::string reason_;
  std::optional<Duration> delay_;
};

/// What a handler can know and do about the event that it is given. Lives as long as the call.
class HandlerContext {
 public:
  virtual ~HandlerContext() = default;

  [[nodiscard]] virtual const Event& event() const noexcept = 0;
  [[nodiscard]] virtual const Claim& claim() const noexcept = 0;
  /// Of the event, this one included: 1 the first time.
  [[nodiscard]] virtual std::int32_t attempts() const noexcept = 0;
  /// How many times a worker died while the event was in progress.
  [[nodiscard]] virtual std::int32_t crashes() const noexcept = 0;
  /// How many times this handler has failed with a transient error.
  [[nodiscard]] virtual Attempt failed() const noexcept = 0;

  /// For handlers with several side effects: runs `task` unless it was done for this event before, then notes
  /// that it is done. False when it was done already. The note is durable before `once` returns; a crash
  /// between the two repeats the task.
  ///
  ///     context.once("charge the card", [&] { charge(order); });
  ///     context.once("send the mail", [&] { mail(order); });
  /// What is noted stays as long as the event is in the queue: a replay from the log begins anew.
  virtual bool once(std::string_view name, const std::function<void()>& task) = 0;
  /// The same with the note inside your transaction: done and noted together, exactly once. When it returns
  /// false, the transaction was not changed. Throws Error(conflict) when the claim has gone to somebody else:
  /// let the exception through, and the transaction roll back.
  virtual bool once(Tx& tx, std::string_view name, const std::function<void(Tx&)>& task) = 0;

  /// Notes this handler's success inside your own transaction, so that its effect happens exactly once: if
  /// the transaction commits, the handler is never run again for this event; if it doesn't, nothing has
  /// happened. Throws Error(conflict) when the claim has gone to somebody else: let the exception through.
  virtual void complete(Tx& tx) = 0;
};

/// A handler of any kind, as the manager keeps it.
using HandlerFunction = std::function<EventHandledResult(const Event&, HandlerContext&)>;

namespace detail {

/// Nothing returned is success.
template <class Call>
EventHandledResult result_of(const Call& call) {
  if constexpr (std::is_void_v<std::invoke_result_t<const Call&>>) {
    call();
    return EventHandledResult::success();
  } else {
    return call();
  }
}

/// With or without context.
template <class F, class Arg>
EventHandledResult call_handler(F& function, const Arg& argument, HandlerContext& context) {
  if constexpr (std::invocable<F&, const Arg&, HandlerContext&>) {
    return result_of([&]() -> decltype(auto) { return function(argument, context); });
  } else {
    return result_of([&]() -> decltype(auto) { return function(argument); });
  }
}

[[nodiscard]] EventHandledResult cannot_decode(std::string_view type, const std::exception& why);

template <class T, class F>
HandlerFunction typed_handler(F function) {
  return [function = std::move(function)](const Event& event, HandlerContext& context) mutable {
    std::optional<T> value;
    // What cannot be read now cannot be read later.
    try {
      value.emplace(EventCodec<T>::from_json(event.payload()));
    } catch (const std::exception& error) {
      return cannot_decode(EventCodec<T>::type, error);
    } catch (...) {
      return cannot_decode(EventCodec<T>::type, std::runtime_error("an exception that is no std::exception"));
    }
    return call_handler(function, *value, context);
  };
}

template <class F>
HandlerFunction raw_handler(F function) {
  return [function = std::move(function)](const Event& event, HandlerContext& context) mutable {
    return call_handler(function, event, context);
  };
}

/// The event that `handle` of a handler class takes, by value or by reference. A function's type says whether
/// it is const and whether it is noexcept, so there are four of each.
template <class>
struct HandledEvent;
template <class R, class H, class T, class... More>
struct HandledEvent<R (H::*)(T, More...)> {
  using Type = std::remove_cvref_t<T>;
};
template <class R, class H, class T, class... More>
struct HandledEvent<R (H::*)(T, More...) const> {
  using Type = std::remove_cvref_t<T>;
};
template <class R, class H, class T, class... More>
struct HandledEvent<R (H::*)(T, More...) noexcept> {
  using Type = std::remove_cvref_t<T>;
};
template <class R, class H, class T, class... More>
struct HandledEvent<R (H::*)(T, More...) const noexcept> {
  using Type = std::remove_cvref_t<T>;
};
template <class R, class T, class... More>
struct HandledEvent<R (*)(T, More...)> {
  using Type = std::remove_cvref_t<T>;
};
template <class R, class T, class... More>
struct HandledEvent<R (*)(T, More...) noexcept> {
  using Type = std::remove_cvref_t<T>;
};

/// Calls `handle` of a handler object, with or without context. Copies share the object.
template <class H, class T>
struct HandlerCall {
  std::shared_ptr<H> handler;

  EventHandledResult operator()(const T& event, HandlerContext& context) const {
    if constexpr (requires { handler->handle(event, context); }) {
      return result_of([&]() -> decltype(auto) { return handler->handle(event, context); });
    } else {
      return result_of([&]() -> decltype(auto) { return handler->handle(event); });
    }
  }
};

}  // namespace detail
}  // namespace postrider
