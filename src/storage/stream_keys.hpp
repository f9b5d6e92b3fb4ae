// SPDX-License-Identifier: Apache-2.0
// What events are found by. Each event has a row in event_tags for its type, for each of its tags, and for
// its type together with each tag; all as hashes, in one index (hash, position). So every item of a query is
// a few exact probes, however frequent the tag or the type alone may be.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "postrider/stream_query.hpp"

namespace postrider {

using StreamHash = std::uint64_t (*)(std::string_view);

/// XXH64.
[[nodiscard]] std::uint64_t stream_hash(std::string_view text);

/// Hashes that must all stand at the same position. At least one.
using KeyGroup = std::vector<std::int64_t>;

/// Different keys may have the same hash, so whatever is found by them is only a candidate: ask
/// Query::matches. What is not found does not exist.
class StreamKeys {
 public:
  /// Null: XXH64.
  explicit StreamKeys(StreamHash hash = nullptr) noexcept : hash_(hash == nullptr ? stream_hash : hash) {}

  /// Sorted, each once.
  [[nodiscard]] std::vector<std::int64_t> of_event(const std::string& type, const Tags& tags) const;
  /// An event that matches the query has all hashes of at least one group. Not for Query::all().
  [[nodiscard]] std::vector<KeyGroup> of_query(const Query& query) const;

 private:
  [[nodiscard]] std::int64_t key(char kind, std::string_view one, std::string_view two) const;

  StreamHash hash_;
};

}  // namespace postrider
