// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace postrider {

/// The identity of an event: a ULID unless you give your own (1 to 36 printable ASCII characters without
/// spaces, for example a UUID). A redelivered event keeps its id: downstream systems use it to drop
/// duplicates. A small value, no allocation.
class EventId {
 public:
  static constexpr std::size_t max_size = 36;

  EventId() = default;  ///< The empty id: "none".
  /// Throws Error(invalid_argument) when `text` is empty, too long or has other characters than printable
  /// ASCII (spaces are refused too: not every database tells "a" from "a ").
  explicit EventId(std::string_view text);

  [[nodiscard]] std::string_view view() const noexcept { return {text_.data(), size_}; }
  [[nodiscard]] std::string str() const { return std::string(view()); }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

  friend bool operator==(const EventId& a, const EventId& b) noexcept { return a.view() == b.view(); }
  friend std::strong_ordering operator<=>(const EventId& a, const EventId& b) noexcept {
    return a.view() <=> b.view();
  }

 private:
  std::array<char, max_size> text_{};
  std::uint8_t size_ = 0;
};

/// A new ULID from this process's generator: sorted by creation within the process across threads, never
/// repeated, also when the clock goes backwards. Thread-safe.
[[nodiscard]] EventId new_event_id();

}  // namespace postrider

template <>
struct std::hash<postrider::EventId> {
  std::size_t operator()(const postrider::EventId& id) const noexcept {
    return std::hash<std::string_view>{}(id.view());
  }
};
