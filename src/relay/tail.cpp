// SPDX-License-Identifier: Apache-2.0
#include "relay/tail.hpp"

#include <algorithm>
#include <utility>

namespace postrider {

std::size_t bytes_of(const StoredEvent& event) {
  constexpr std::size_t fixed = 512;  // the objects themselves
  std::size_t bytes = fixed + event.data().size() + event.type().size();
  for (const Tag& tag : event.tags()) bytes += sizeof(Tag) + tag.key.size() + tag.value.size();
  for (const auto& [name, value] : event.metadata()) bytes += 64 + name.size() + value.size();
  return bytes;
}

void Tail::restart(const StreamEnd& end) {
  events_.clear();
  from_ = end.head;
  end_ = end;
  bytes_ = 0;
}

void Tail::append(std::vector<StoredEvent> events, Position seen) {
  if (!events.empty()) end_.last = events.back().id();
  for (StoredEvent& event : events) {
    bytes_ += bytes_of(event);
    events_.push_back(std::move(event));
  }
  end_.head = std::max(end_.head, seen);
  while (bytes_ > max_bytes_ && !events_.empty()) {
    bytes_ -= bytes_of(events_.front());
    from_ = events_.front().position();
    events_.pop_front();
  }
}

Batch Tail::collect(const Topic& topic, Position after, std::size_t limit, std::size_t max_bytes) const {
  Batch batch{.seen = std::max(after, end_.head)};
  std::size_t bytes = 0;
  auto at = std::upper_bound(
      events_.begin(), events_.end(), after,
      [](Position position, const StoredEvent& event) { return position < event.position(); });
  for (; at != events_.end(); ++at) {
    if (!topic.matches(*at)) continue;
    if (batch.events.size() >= limit || bytes >= max_bytes) {
      batch.seen = batch.events.back().position();
      batch.more = true;
      break;
    }
    bytes += bytes_of(*at);
    batch.events.push_back(*at);
  }
  return batch;
}

}  // namespace postrider
