// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace postrider {

/// How much more one of the two queues may take, by places and by bytes. An event has a place until it is
/// run; its bytes count for as long as it is in memory, which is longer. So the room counts places, and bytes
/// that are reserved; what is in memory, `held`, is told by whoever knows it (InFlightCopies). Into a queue
/// that holds nothing one event always goes, whatever its size. Not synchronised.
class QueueRoom {
 public:
  QueueRoom(std::size_t places, std::size_t bytes) noexcept : most_places_(places), most_bytes_(bytes) {}

  struct Reserved {
    std::size_t places = 0;
    std::size_t bytes = 0;
  };
  /// Of events of these sizes, as many as there is room for, from the first on.
  [[nodiscard]] Reserved reserve(std::span<const std::size_t> sizes, std::size_t held) noexcept {
    Reserved taken;
    for (const std::size_t size : sizes) {
      if (free_places() == 0 || !fits(size, held)) break;
      enter(1);
      reserved_ += size;
      ++taken.places;
      taken.bytes += size;
    }
    return taken;
  }
  /// What was reserved is in memory now, or will not come.
  void unreserve(std::size_t bytes) noexcept { reserved_ -= bytes; }

  void enter(std::size_t places) noexcept { places_ += places; }
  void leave(std::size_t places) noexcept { places_ -= places; }

  [[nodiscard]] std::size_t free_places() const noexcept {
    return most_places_ - std::min(places_, most_places_);
  }
  [[nodiscard]] std::size_t free_bytes(std::size_t held) const noexcept {
    return most_bytes_ - std::min(held + reserved_, most_bytes_);
  }
  [[nodiscard]] bool empty(std::size_t held) const noexcept { return places_ == 0 && held + reserved_ == 0; }
  [[nodiscard]] bool fits(std::size_t size, std::size_t held) const noexcept {
    return empty(held) || size <= free_bytes(held);
  }

  /// Somebody took less than he would have liked to, or nothing: he is to hear of room.
  void want_more() noexcept { wanted_ = true; }
  /// True once after `want_more`, as soon as half of the queue is free again, not with every event that
  /// leaves.
  [[nodiscard]] bool has_more(std::size_t held) noexcept {
    if (!wanted_ || places_ > most_places_ / 2 || held + reserved_ > most_bytes_ / 2) return false;
    wanted_ = false;
    return true;
  }

 private:
  std::size_t most_places_;
  std::size_t most_bytes_;
  std::size_t places_ = 0;
  std::size_t reserved_ = 0;
  bool wanted_ = false;
};

}  // namespace postrider
