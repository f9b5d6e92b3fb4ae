// SPDX-License-Identifier: Apache-2.0
#include "postrider/event_bus.hpp"

#include <utility>

#include "core/what_of.hpp"
#include "postrider/error.hpp"
#include "storage/log_store.hpp"

namespace postrider {

EventRouter& EventRouter::on(const EventType& type, Handler handler) {
  if (!handlers_.emplace(type.name(), std::move(handler)).second) {
    throw Error(ErrorCode::invalid_argument, "cannot route events of type " + type.name(),
                "this type has a handler already", "use EventManager for several handlers of one type");
  }
  return *this;
}

void EventRouter::route(const Event& event) const {
  const auto found = handlers_.find(event.type());
  if (found == handlers_.end()) {
    throw Error(ErrorCode::invalid_argument, "cannot route event " + event.id().str(),
                "no handler for type " + event.type(), "add one with EventRouter::on");
  }
  found->second(event);
}

QueueOptions EventBus::bus_options() {
  QueueOptions options;
  options.abandoned_timeout = default_timeout;
  return options;
}

std::optional<EventBus::Polled> EventBus::poll() {
  while (std::optional<QueuedEvent> claimed = queue_.poll()) {
    if (!claimed->event) {
      (void)queue_.fail(claimed->claim, claimed->decode_error);
      continue;
    }
    const MutexLock lock(mutex_);
    claims_.insert_or_assign(claimed->claim.id, claimed->claim);
    return Polled{.id = claimed->claim.id, .event = *claimed->event, .attempts = claimed->attempts};
  }
  return std::nullopt;
}

bool EventBus::finalize(QueueId id, bool success, std::string_view error) {
  if (success && !error.empty()) {
    throw Error(ErrorCode::invalid_argument,
                "cannot finalize event " + std::to_string(static_cast<std::int64_t>(id)),
                "it succeeded, and yet there is an error: " + std::string(error),
                "pass success = false, or no error");
  }
  Claim claim;
  {
    const MutexLock lock(mutex_);
    const auto found = claims_.find(id);
    if (found != claims_.end()) claim = found->second;
  }
  if (claim.id != id) {
    if (queue_.storage().log_store().find(id)) return true;  // finalised before
    throw Error(ErrorCode::invalid_argument,
                "cannot finalize event " + std::to_string(static_cast<std::int64_t>(id)),
                "it was not polled by this bus", "finalize what poll() returned, on the same EventBus");
  }
  const Settled settled = success
                              ? queue_.finalize(claim)
                              : queue_.fail(claim, error.empty() ? "the handler failed" : std::string(error));
  const MutexLock lock(mutex_);
  claims_.erase(id);
  return settled != Settled::stale;
}

bool EventBus::process_one(const EventRouter& router) {
  const std::optional<Polled> polled = poll();
  if (!polled) return false;
  std::optional<std::string> failure;
  try {
    router.route(polled->event);
  } catch (const std::exception& error) {
    failure = what_of(error);
  } catch (...) {
    failure = "an exception that is no std::exception";
  }
  if (failure) {
    queue_.options().log(LogLevel::error,
                         "postrider: event " + polled->event.id().str() + " failed: " + *failure);
  }
  (void)finalize(polled->id, !failure.has_value(), failure.value_or(std::string()));
  return true;
}

}  // namespace postrider
