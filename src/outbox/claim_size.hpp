// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>

#include "postrider/event.hpp"

namespace postrider {

/// How many rows a claim may ask for so that what it brings fits into some bytes. Nobody knows the sizes of
/// the rows before they are here; those of the last claims tell what to expect. Not thread-safe.
///
/// A claim grows with what the last one brought. So the first one, and the first one of a burst that follows
/// quiet times, asks for no more than fits whatever the sizes are. Only a backlog that changes from small
/// events to large ones in its midst can bring more than was expected, once.
class ClaimSize {
 public:
  /// A claim brought so many events, maybe none, of so many bytes together.
  void claimed(std::size_t events, std::size_t bytes) noexcept {
    brought_ = events;
    if (events == 0) return;
    const std::size_t each = bytes / events;
    usual_ = std::max(each, (3 * usual_ + each) / 4);
  }

  /// How many events are expected to fit; 0 when not even one.
  [[nodiscard]] std::size_t fitting(std::size_t bytes) const noexcept {
    return usual_ == 0 ? std::numeric_limits<std::size_t>::max() : bytes / usual_;
  }
  /// How many may be asked for at most, by what the last claim brought.
  [[nodiscard]] std::size_t careful(std::size_t bytes) const noexcept {
    return std::max<std::size_t>({1, bytes / largest, growth * brought_});
  }

 private:
  static constexpr std::size_t largest = EventLimits::payload_bytes;
  static constexpr std::size_t growth = 4;

  std::size_t usual_ = 0;    // of one event; grows at once, shrinks by and by
  std::size_t brought_ = 0;  // by the last claim
};

}  // namespace postrider
