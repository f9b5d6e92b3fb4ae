// SPDX-License-Identifier: Apache-2.0
#include "postrider/stream_query.hpp"

#include <algorithm>
#include <utility>

#include "core/text_bounds.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

constexpr std::string_view refused = "query refused";

void check_count(std::string_view what, std::size_t count, std::size_t most) {
  if (count <= most) return;
  throw Error(ErrorCode::invalid_argument, refused,
              "it has " + std::to_string(count) + " " + std::string(what) + ", at most " +
                  std::to_string(most) + " are allowed");
}

template <class T>
void require_some(const std::vector<T>& list, std::string_view what) {
  if (!list.empty()) return;
  throw Error(ErrorCode::invalid_argument, refused, "it has no " + std::string(what),
              "an empty list would match nothing; use Query::all() for all events");
}

template <class T>
void sort_unique(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

/// One written form for one meaning.
void normalise(QueryItem& item) {
  for (const std::string& type : item.types) {
    check_text_bounds(refused, "type", type, 1, EventLimits::type_chars);
  }
  for (const Tag& tag : item.tags) tag.check();
  sort_unique(item.types);
  sort_unique(item.tags);
  check_count("types in one item", item.types.size(), Query::max_types);
  check_count("tags in one item", item.tags.size(), Query::max_tags);
}

}  // namespace

bool QueryItem::matches(const std::string& type, const Tags& event_tags) const {
  if (!types.empty() && std::find(types.begin(), types.end(), type) == types.end()) return false;
  return std::all_of(tags.begin(), tags.end(), [&](const Tag& tag) {
    return std::find(event_tags.begin(), event_tags.end(), tag) != event_tags.end();
  });
}

Query Query::of(std::vector<QueryItem> items) {
  require_some(items, "items");
  Query query;
  bool all = false;
  for (QueryItem& item : items) {
    normalise(item);
    all = all || (item.types.empty() && item.tags.empty());
    if (std::find(query.items_.begin(), query.items_.end(), item) == query.items_.end()) {
      query.items_.push_back(std::move(item));
      check_count("items", query.items_.size(), max_items);
    }
  }
  if (all) return {};
  std::size_t lookups = 0;
  for (const QueryItem& item : query.items_) {
    lookups += std::max<std::size_t>(item.types.size(), 1) * std::max<std::size_t>(item.tags.size(), 1);
  }
  check_count("combinations of types and tags", lookups, max_lookups);
  return query;
}

Query Query::type(std::string type) {
  return of({QueryItem{.types = {std::move(type)}}});
}
Query Query::types(std::vector<std::string> types) {
  require_some(types, "types");
  return of({QueryItem{.types = std::move(types)}});
}
Query Query::tag(std::string key, std::string value) {
  return of({QueryItem{.tags = {Tag{.key = std::move(key), .value = std::move(value)}}}});
}
Query Query::tags(Tags tags) {
  require_some(tags, "tags");
  return of({QueryItem{.tags = std::move(tags)}});
}

Query Query::operator|(const Query& other) const {
  if (is_all() || other.is_all()) return all();
  std::vector<QueryItem> items = items_;
  items.insert(items.end(), other.items_.begin(), other.items_.end());
  return of(std::move(items));
}

bool Query::matches(const std::string& type, const Tags& tags) const {
  if (is_all()) return true;
  return std::any_of(items_.begin(), items_.end(),
                     [&](const QueryItem& item) { return item.matches(type, tags); });
}

bool Query::matches(const StoredEvent& event) const {
  return matches(event.type(), event.tags());
}

}  // namespace postrider
