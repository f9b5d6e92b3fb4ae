// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/route_memory.hpp"

#include "core/event_content.hpp"

namespace postrider::daemon {

SinkNumbers RouteMemory::taken(const Event& event, std::int64_t life) const {
  const MutexLock lock(mutex_);
  const auto found = events_.find(event.id());
  if (found == events_.end()) return {};
  const Entry& entry = found->second;
  if (entry.life != life || entry.content != content_of(event)) return {};
  return entry.taken;
}

void RouteMemory::remember(const Event& event, std::int64_t life, const SinkNumbers& taken) {
  const std::size_t content = content_of(event);
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
  found->second.life = life;
  found->second.content = content;
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
