// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

#include "postrider/detail/sync.hpp"
#include "postrider/event.hpp"

namespace postrider::daemon {

/// Sinks by their numbers. A few need no allocation.
using SinkNumbers = boost::container::small_vector<std::uint32_t, 8>;

/// Which sinks have taken an event that others still lack, so that they are not sent it again with each
/// retry. Of this process alone, and bounded: what is forgotten is sent once more. Thread-safe.
class RouteMemory {
 public:
  /// When there are more events, the first of them are forgotten.
  explicit RouteMemory(std::size_t most_events) : most_events_(most_events) {}

  /// None of an event in another life (`Delivery::life`), or with another content, than that which they have
  /// taken: a dead letter that was replayed, an id that was purged and published again.
  [[nodiscard]] SinkNumbers taken(const Event& event, std::int64_t life) const POSTRIDER_EXCLUDES(mutex_);
  void remember(const Event& event, std::int64_t life, const SinkNumbers& taken) POSTRIDER_EXCLUDES(mutex_);
  void forget(const EventId& id) POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t size() const POSTRIDER_EXCLUDES(mutex_);

 private:
  struct Entry {
    std::int64_t life = 0;
    std::size_t content = 0;
    SinkNumbers taken{};
    std::list<EventId>::iterator place{};
  };

  const std::size_t most_events_;
  mutable Mutex mutex_;
  std::unordered_map<EventId, Entry> events_ POSTRIDER_GUARDED_BY(mutex_);
  std::list<EventId> order_ POSTRIDER_GUARDED_BY(mutex_);  // the first one remembered is at its front
};

}  // namespace postrider::daemon
