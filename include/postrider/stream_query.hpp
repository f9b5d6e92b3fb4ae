// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "postrider/stored_event.hpp"
#include "postrider/tag.hpp"

namespace postrider {

/// An event matches when its type is one of `types` (none given: any) and it has all of `tags` (none given:
/// any).
struct QueryItem {
  std::vector<std::string> types{};
  Tags tags{};

  [[nodiscard]] bool matches(const std::string& type, const Tags& event_tags) const;
  friend bool operator==(const QueryItem&, const QueryItem&) = default;
};

/// Which events: those that match at least one item, or all. One predicate for reads, for conditions and in
/// memory.
class Query {
 public:
  static constexpr std::size_t max_items = 256;
  static constexpr std::size_t max_types = 256;  ///< of one item
  static constexpr std::size_t max_tags = 60;    ///< of one item; MariaDB joins no more
  /// Types times tags of all items together: what has to be looked up.
  static constexpr std::size_t max_lookups = 10'000;

  /// All events.
  [[nodiscard]] static Query all() { return {}; }
  /// Throws Error(invalid_argument) for an empty list and for items out of bounds. An item without types and
  /// tags makes it `all`.
  [[nodiscard]] static Query of(std::vector<QueryItem> items);
  /// An empty list is refused here too: it is rarely meant as `all`.
  [[nodiscard]] static Query type(std::string type);
  [[nodiscard]] static Query types(std::vector<std::string> types);
  [[nodiscard]] static Query tag(std::string key, std::string value);
  [[nodiscard]] static Query tags(Tags tags);

  /// This query's events and the other's.
  [[nodiscard]] Query operator|(const Query& other) const;

  [[nodiscard]] bool is_all() const noexcept { return items_.empty(); }
  /// Empty when it is all.
  [[nodiscard]] const std::vector<QueryItem>& items() const noexcept { return items_; }
  [[nodiscard]] bool matches(const std::string& type, const Tags& tags) const;
  [[nodiscard]] bool matches(const StoredEvent& event) const;

  friend bool operator==(const Query&, const Query&) = default;

 private:
  Query() = default;
  std::vector<QueryItem> items_;
};

/// An append fails when an event that matches `query` stands behind `after` (not given: anywhere). An `after`
/// beyond the store's last position, which no read has given, is refused: it would guard nothing.
struct AppendCondition {
  Query query = Query::all();
  std::optional<Position> after{};
};

}  // namespace postrider
