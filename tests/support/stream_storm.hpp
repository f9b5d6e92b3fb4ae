// SPDX-License-Identifier: Apache-2.0
// What the writers of the storm and its judge have in common: ten types, ten tags, and queries that are
// numbers, so that a decision can be written down and recomputed. The judge works on bits, not on the store's
// predicate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "postrider/append_event.hpp"
#include "postrider/stream_query.hpp"

namespace postrider::test {

struct StormItem {
  unsigned types = 0;  // bits; none: any
  unsigned tags = 0;   // bits; all of them
  [[nodiscard]] bool matches(unsigned type, unsigned event_tags) const {
    return (types == 0 || (types >> type & 1U) != 0) && (event_tags & tags) == tags;
  }
};

/// One to three items; about as many with types alone, tags alone and both.
inline std::vector<StormItem> storm_items(unsigned number) {
  std::vector<StormItem> items;
  std::uint64_t bits = number * 0x9E3779B97F4A7C15ULL;
  const auto draw = [&](unsigned below) {
    bits = bits * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<unsigned>(bits >> 33U) % below;
  };
  const unsigned count = 1 + draw(3);
  for (unsigned i = 0; i < count; ++i) {
    StormItem item;
    const unsigned kind = draw(3);
    if (kind != 0) {
      for (unsigned n = 1 + draw(2); n > 0; --n) item.tags |= 1U << draw(10);
    }
    if (kind != 1) {
      for (unsigned n = 1 + draw(3); n > 0; --n) item.types |= 1U << draw(10);
    }
    items.push_back(item);
  }
  return items;
}

inline std::string storm_type(unsigned type) {
  return "Type" + std::to_string(type);
}
inline Tags storm_tags(unsigned bits) {
  Tags tags;
  for (unsigned tag = 0; tag < 10; ++tag) {
    if ((bits >> tag & 1U) != 0) tags.push_back({"t" + std::to_string(tag), "v"});
  }
  return tags;
}
inline Query storm_query(unsigned number) {
  std::vector<QueryItem> items;
  for (const StormItem& item : storm_items(number)) {
    QueryItem one{.tags = storm_tags(item.tags)};
    for (unsigned type = 0; type < 10; ++type) {
      if ((item.types >> type & 1U) != 0) one.types.push_back(storm_type(type));
    }
    items.push_back(std::move(one));
  }
  return Query::of(std::move(items));
}

}  // namespace postrider::test
