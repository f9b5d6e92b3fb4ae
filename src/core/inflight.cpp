// SPDX-License-Identifier: Apache-2.0
#include "core/inflight.hpp"

#include <utility>

namespace postrider {

InFlightTracker::InFlightTracker(Clock& clock, std::optional<Duration> ttl) : clock_(clock), ttl_(ttl) {}

InFlightTracker::Shard& InFlightTracker::shard(const EventId& id) noexcept {
  return shards_[std::hash<EventId>{}(id) % shards_.size()];
}
const InFlightTracker::Shard& InFlightTracker::shard(const EventId& id) const noexcept {
  return shards_[std::hash<EventId>{}(id) % shards_.size()];
}

bool InFlightTracker::try_acquire(const EventId& id, Hold hold, Cargo cargo) {
  const SteadyPoint now = clock_.steady_now();
  Shard& home = shard(id);
  const MutexLock lock(home.mutex);
  const auto [found, inserted] = home.slots.try_emplace(id);
  Slot& slot = found->second;
  if (!inserted && (!ttl_ || now - slot.since < *ttl_)) return false;
  slot = Slot{hold, now, std::move(cargo)};
  return true;
}

void InFlightTracker::take_over(const EventId& id, Hold hold) {
  Shard& home = shard(id);
  const MutexLock lock(home.mutex);
  const auto found = home.slots.find(id);
  if (found == home.slots.end() || found->second.hold.lost) return;
  if (hold.token > found->second.hold.token) found->second.hold = hold;
}

void InFlightTracker::lose(const EventId& id) {
  Shard& home = shard(id);
  const MutexLock lock(home.mutex);
  const auto found = home.slots.find(id);
  if (found != home.slots.end()) found->second.hold.lost = true;
}

std::optional<InFlightTracker::Cargo> InFlightTracker::release(const EventId& id) {
  Shard& home = shard(id);
  const MutexLock lock(home.mutex);
  const auto found = home.slots.find(id);
  if (found == home.slots.end()) return std::nullopt;
  Cargo cargo = std::move(found->second.cargo);
  home.slots.erase(found);
  return cargo;
}

bool InFlightTracker::contains(const EventId& id) const {
  return find(id).has_value();
}

std::optional<InFlightTracker::Hold> InFlightTracker::find(const EventId& id) const {
  const Shard& home = shard(id);
  const MutexLock lock(home.mutex);
  const auto found = home.slots.find(id);
  if (found == home.slots.end()) return std::nullopt;
  return found->second.hold;
}

std::optional<Event> InFlightTracker::event_of(const EventId& id) const {
  const Shard& home = shard(id);
  const MutexLock lock(home.mutex);
  const auto found = home.slots.find(id);
  if (found == home.slots.end()) return std::nullopt;
  return found->second.cargo.event;
}

std::vector<InFlightTracker::Entry> InFlightTracker::expiring_before(SteadyPoint when) const {
  std::vector<Entry> expiring;
  for (const Shard& part : shards_) {
    const MutexLock lock(part.mutex);
    for (const auto& [id, slot] : part.slots) {
      if (!slot.hold.lost && slot.hold.lease_end < when) expiring.push_back(Entry{id, slot.hold});
    }
  }
  return expiring;
}

void InFlightTracker::extend(const EventId& id, std::int64_t token, SteadyPoint lease_end) {
  Shard& home = shard(id);
  const MutexLock lock(home.mutex);
  const auto found = home.slots.find(id);
  if (found != home.slots.end() && found->second.hold.token == token)
    found->second.hold.lease_end = lease_end;
}

std::size_t InFlightTracker::size() const {
  std::size_t held = 0;
  for (const Shard& part : shards_) {
    const MutexLock lock(part.mutex);
    held += part.slots.size();
  }
  return held;
}

}  // namespace postrider
