// SPDX-License-Identifier: Apache-2.0
#include "outbox/key_lanes.hpp"

#include <iterator>
#include <utility>

namespace postrider {

KeyLanes::Arrival KeyLanes::arrive(OutboxItem& event) {
  Lane& lane = lanes_[event.ordering_key];
  if (lane.broken) return Arrival::turned_away;
  ++lane.outstanding;
  if (!lane.running) {
    lane.running = true;
    return Arrival::runs;
  }
  lane.waiting.push_back(std::move(event));
  return Arrival::waits;
}

KeyLanes::Ended KeyLanes::ended(const OutboxItem& event, bool for_good) {
  Ended result;
  const auto found = lanes_.find(event.ordering_key);
  if (found == lanes_.end()) return result;
  Lane& lane = found->second;
  if (for_good) {
    lane.finished.insert(event.id());
  } else {
    lane.broken = true;
  }
  if (lane.broken) {
    lane.running = false;
    result.given_back.assign(std::make_move_iterator(lane.waiting.begin()),
                             std::make_move_iterator(lane.waiting.end()));
    lane.waiting.clear();
  } else if (lane.waiting.empty()) {
    lane.running = false;
  } else {
    result.next = std::move(lane.waiting.front());
    lane.waiting.pop_front();
  }
  return result;
}

bool KeyLanes::flushed(const std::string& key, const EventId& id) {
  const auto found = lanes_.find(key);
  if (found == lanes_.end()) return false;
  Lane& lane = found->second;
  lane.finished.erase(id);
  if (--lane.outstanding > 0) return false;
  const bool whole = !lane.broken;
  lanes_.erase(found);
  return whole;
}

std::unordered_set<EventId> KeyLanes::finished(const std::string& key) const {
  const auto found = lanes_.find(key);
  return found == lanes_.end() ? std::unordered_set<EventId>{} : found->second.finished;
}

}  // namespace postrider
