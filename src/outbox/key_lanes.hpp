// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "outbox/outbox_item.hpp"

namespace postrider {

/// Order per key inside a process: the events of one key run one after the other. Not synchronised; pure
/// bookkeeping.
///
/// A lane lives from the arrival of its first event until the results of all its events are in the database.
/// When an event of the lane does not end for good (it will be tried again, or was given back), the lane is
/// *broken*: those behind it must not overtake it, so they are given back to the database, and so is whatever
/// arrives until the lane is gone. From then on the pending row in the database holds the key back.
class KeyLanes {
 public:
  enum class Arrival { runs, waits, turned_away };
  struct Ended {
    std::optional<OutboxItem> next;      ///< to be run now
    std::vector<OutboxItem> given_back;  ///< to be returned to the database, in order
  };

  /// Moves from `event` only when it waits. Unless turned away, the lane remembers the event until `flushed`.
  Arrival arrive(OutboxItem& event);
  /// The lane's running event has been run. `for_good`: it is done or dead, the next may follow.
  Ended ended(const OutboxItem& event, bool for_good);
  /// The event's result is in the database. True when the lane is gone and was not broken: the key may have
  /// more.
  bool flushed(const std::string& key, const EventId& id);
  /// What has ended for good but may still look pending in the database.
  [[nodiscard]] std::unordered_set<EventId> finished(const std::string& key) const;
  [[nodiscard]] std::size_t size() const noexcept { return lanes_.size(); }

 private:
  struct Lane {
    std::deque<OutboxItem> waiting;
    std::unordered_set<EventId> finished;
    std::size_t outstanding = 0;  // waiting, running, or not yet flushed
    bool running = false;
    bool broken = false;
  };
  std::unordered_map<std::string, Lane> lanes_;
};

}  // namespace postrider
