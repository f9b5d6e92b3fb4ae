// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/route_memory.hpp"

#include <functional>
#include <string_view>

namespace postrider::daemon {
namespace {

std::size_t content_of(const Event& event) {
  const std::hash<std::string_view> hash;
  return hash(event.payload()) * 31 + hash(event.headers_json());
}

}  // namespace

SinkNumbers RouteMemory::taken(const Event& event) const {
  const MutexLock lock(mutex_);
  const auto found = events_.find(event.id());
  if (found == events_.end() || found->second.content != content_of(event)) return {};
  return found->second.taken;
}

void RouteMemory::remember(const Event& event, const SinkNumbers& taken) {
  const MutexLock lock(mutex_);
  const auto [found, fresh] = events_.try_emplace(event.id());
  if (fresh) {
    try {
      found->second.place = order_.insert(order_.end(), event.id());
    } catch (...) {
      events_.erase(found);
      throw;
    }
  }
  found->second.content = content_of(event);
  found->second.taken = taken;
  while (events_.size() > most_events_) {
    events_.erase(order_.front());
    order_.pop_front();
  }
}

void RouteMemory::forget(const EventId& id) {
  const MutexLock lock(mutex_);
  const auto found = events_.find(id);
  if (found == events_.end()) return;
  order_.erase(found->second.place);
  events_.erase(found);
}

std::size_t RouteMemory::size() const {
  const MutexLock lock(mutex_);
  return events_.size();
}

}  // namespace postrider::daemon
