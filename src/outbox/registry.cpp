// SPDX-License-Identifier: Apache-2.0
#include "outbox/registry.hpp"

#include <exception>
#include <utility>

#include "core/what_of.hpp"
#include "postrider/error.hpp"

namespace postrider {

void Listener::refuse_empty() {
  throw Error(ErrorCode::invalid_argument, "cannot use a listener", "it is an empty function");
}

ListenerRegistry::ListenerRegistry(std::shared_ptr<FailureLog> failures) : failures_(std::move(failures)) {}

/// The listener, with its failures told to the log on their way.
std::shared_ptr<const Listener> ListenerRegistry::watched(Listener listener) {
  if (failures_ == nullptr) return std::make_shared<const Listener>(std::move(listener));
  return std::make_shared<const Listener>([inner = std::move(listener), failures = failures_,
                                           number = watched_count_++](const Event& event,
                                                                      const Delivery& delivery) -> Outcome {
    try {
      Outcome outcome = inner(event, delivery);
      if (outcome.kind() == Outcome::Kind::failed)
        failures->failed(number, event, delivery, outcome.reason());
      return outcome;
    } catch (const std::exception& error) {
      failures->failed(number, event, delivery, what_of(error));
      throw;
    } catch (...) {
      failures->failed(number, event, delivery, "the listener threw something that is not a std::exception");
      throw;
    }
  });
}

void ListenerRegistry::add(const EventType& type, Listener listener) {
  if (type.name().empty()) {
    throw Error(ErrorCode::invalid_argument, "cannot register a listener", "the event type is empty",
                "use on_all() to listen to every type");
  }
  auto shared = watched(std::move(listener));
  const MutexLock lock(mutex_);
  Entry& entry = by_type_[type.name()];
  entry.exact.push_back(std::move(shared));
  join(entry);
}

void ListenerRegistry::add_for_all(Listener listener) {
  auto shared = watched(std::move(listener));
  const MutexLock lock(mutex_);
  Listeners all = *for_all_;
  all.push_back(std::move(shared));
  for_all_ = std::make_shared<const Listeners>(std::move(all));
  for (auto& [type, entry] : by_type_) join(entry);
}

std::shared_ptr<const Listeners> ListenerRegistry::listeners_for(std::string_view type) const {
  std::shared_ptr<const Listeners> listeners;
  {
    const MutexLock lock(mutex_);
    const auto found = by_type_.find(type);
    listeners = found == by_type_.end() ? for_all_ : found->second.joined;
  }
  if (listeners->empty() && failures_ != nullptr) failures_->nobody_listens(type);
  return listeners;
}

void ListenerRegistry::join(Entry& entry) const {
  Listeners joined = entry.exact;
  joined.insert(joined.end(), for_all_->begin(), for_all_->end());
  entry.joined = std::make_shared<const Listeners>(std::move(joined));
}

}  // namespace postrider
