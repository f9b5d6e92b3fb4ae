// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "postrider/stored_event.hpp"
#include "postrider/tag.hpp"

namespace postrider {

/// A named part of the event store's stream: the events that pass every condition given. What is empty asks
/// for nothing, so a topic with a name alone has all events.
///
///     Topic{.name = "payments", .any_of_tags = {"payment_id", "transfer_id"}}
struct Topic {
  static constexpr std::size_t max_name_chars = 128;  ///< at least 1
  static constexpr std::size_t max_conditions = 64;   ///< of each kind

  std::string name{};
  std::vector<std::string> event_types{};    ///< one of these
  std::vector<std::string> required_tags{};  ///< tags with all of these keys, whatever their values
  std::vector<std::string> any_of_tags{};    ///< a tag with at least one of these keys
  Tags exact_tags{};                         ///< all of these, key and value

  /// Throws Error(invalid_argument) for a name or condition out of bounds.
  void check() const;
  /// Pure; `tags` are sorted, as those of stored events are.
  [[nodiscard]] bool matches(const std::string& type, const Tags& tags) const;
  [[nodiscard]] bool matches(const StoredEvent& event) const { return matches(event.type(), event.tags()); }

  friend bool operator==(const Topic&, const Topic&) = default;
};

}  // namespace postrider
