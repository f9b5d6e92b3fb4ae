// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/event.hpp"
#include "postrider/event_id.hpp"
#include "postrider/listener.hpp"

namespace postrider {

/// Which events this process holds, from the moment they are queued until their result is in the database,
/// with the fencing token and the local end of the lease of each. Keeps an event from being run twice at
/// once. Thread-safe, sharded.
class InFlightTracker {
 public:
  struct Hold {
    std::int64_t token = 0;
    /// Until when the lease is surely ours, by this process's steady clock (taken before the lease was asked
    /// for).
    SteadyPoint lease_end{};
    /// The row is no longer what is held here, see `lose`.
    bool lost = false;
  };
  struct Entry {
    EventId id{};
    Hold hold{};
  };
  /// What is held, for its holder: kept as long as the entry, never looked at.
  struct Cargo {
    std::optional<Event> event{};
    std::size_t bytes = 0;
    Source source = Source::hot;
  };

  /// With a `ttl`, an entry that was never released gives way to a new one after that time.
  explicit InFlightTracker(Clock& clock = Clock::system(), std::optional<Duration> ttl = {});

  /// False when the event is held already.
  [[nodiscard]] bool try_acquire(const EventId& id, Hold hold, Cargo cargo);
  [[nodiscard]] bool try_acquire(const EventId& id, Hold hold) { return try_acquire(id, hold, Cargo{}); }
  /// The held event was claimed again: a newer token replaces the older one, so that the copy that is here
  /// finishes under the newer claim.
  void take_over(const EventId& id, Hold hold);
  /// The row has come to another life: what is held must neither begin nor count any more. It stays held
  /// until it is released.
  void lose(const EventId& id);
  /// Returns what was held; nothing when nothing was.
  std::optional<Cargo> release(const EventId& id);
  /// An entry past its ttl counts until a new one takes its place.
  [[nodiscard]] bool contains(const EventId& id) const;
  [[nodiscard]] std::optional<Hold> find(const EventId& id) const;
  /// The event that was given to `try_acquire`.
  [[nodiscard]] std::optional<Event> event_of(const EventId& id) const;

  /// The held events whose lease ends before `when`, without those that are lost.
  [[nodiscard]] std::vector<Entry> expiring_before(SteadyPoint when) const;
  /// A renewal succeeded: moves the lease's end, unless the token has changed meanwhile.
  void extend(const EventId& id, std::int64_t token, SteadyPoint lease_end);
  [[nodiscard]] std::size_t size() const;

 private:
  struct Slot {
    Hold hold;
    SteadyPoint since;
    Cargo cargo;
  };
  struct Shard {
    mutable Mutex mutex;
    std::unordered_map<EventId, Slot> slots POSTRIDER_GUARDED_BY(mutex);
  };
  [[nodiscard]] Shard& shard(const EventId& id) noexcept;
  [[nodiscard]] const Shard& shard(const EventId& id) const noexcept;

  Clock& clock_;
  std::optional<Duration> ttl_;
  std::array<Shard, 16> shards_;
};

}  // namespace postrider
