// SPDX-License-Identifier: Apache-2.0
// Finding events by their hashes where the database takes no arrays: texts, and what is done with the
// answers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/stream_keys.hpp"

namespace postrider {

/// A part of the store, and from which end.
struct StreamRange {
  std::int64_t after = 0;  ///< not included
  std::int64_t until = 0;  ///< included
  std::size_t limit = 1;
  bool backwards = true;
};

/// Of one hash: how many of its first entries there are, at most `stream_sample`, and how far they reach.
struct StreamSample {
  std::int64_t count = 0;
  std::int64_t reach = 0;
};
inline constexpr std::size_t stream_sample = 64;

/// Walks along the hashes of a group: the first decides how long that takes, so it should be the rarest.
/// `samples` are those of the hashes, in the same order. Whoever has fewer entries, or whose sample reaches
/// further, is rarer.
[[nodiscard]] KeyGroup rarest_first(const KeyGroup& group, std::span<const StreamSample> samples,
                                    bool backwards);

/// "select position …" with these parameters: the hashes from the second on, then the first, after, until,
/// limit. `join` is what keeps the database from reordering: "cross join", "straight_join". `{tags}` is
/// left for the table's name.
[[nodiscard]] std::string group_text(std::size_t hashes, bool backwards, std::string_view join);

/// The first positions of all groups together, each once, in the order of reading. `find` gives those of one
/// group.
template <class Find>
[[nodiscard]] std::vector<std::int64_t> merged_positions(std::span<const KeyGroup> groups, StreamRange range,
                                                         const Find& find) {
  std::vector<std::int64_t> best;
  std::vector<std::int64_t> merged;
  for (const KeyGroup& group : groups) {
    if (best.size() == range.limit) {
      // Only what comes before the last of them is of interest.
      if (range.backwards) {
        range.after = std::max(range.after, best.back());
      } else {
        range.until = std::min(range.until, best.back() - 1);
      }
    }
    const std::vector<std::int64_t> more = find(group, range);
    merged.clear();
    const auto add = [&](auto before) {
      std::set_union(best.begin(), best.end(), more.begin(), more.end(), std::back_inserter(merged), before);
    };
    if (range.backwards) {
      add(std::greater<>());
    } else {
      add(std::less<>());
    }
    if (merged.size() > range.limit) merged.resize(range.limit);
    best.swap(merged);
  }
  return best;
}

}  // namespace postrider
