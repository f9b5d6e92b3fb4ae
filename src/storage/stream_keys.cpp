// SPDX-License-Identifier: Apache-2.0
#include "storage/stream_keys.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <string>

namespace postrider {
namespace {

void sort_unique(std::vector<std::int64_t>& hashes) {
  std::sort(hashes.begin(), hashes.end());
  hashes.erase(std::unique(hashes.begin(), hashes.end()), hashes.end());
}

constexpr char of_type = 'Y';
constexpr char of_tag = 'T';
constexpr char of_both = 'B';

}  // namespace

std::uint64_t stream_hash(std::string_view text) {
  return XXH64(text.data(), text.size(), 0);
}

std::int64_t StreamKeys::key(char kind, std::string_view one, std::string_view two) const {
  // Neither part can contain NUL, so different keys have different texts.
  thread_local std::string text;
  text.assign(1, kind).append(one);
  if (!two.empty()) text.append(1, '\0').append(two);
  return static_cast<std::int64_t>(hash_(text));
}

std::vector<std::int64_t> StreamKeys::of_event(const std::string& type, const Tags& tags) const {
  std::vector<std::int64_t> hashes;
  hashes.reserve(1 + 2 * tags.size());
  hashes.push_back(key(of_type, type, {}));
  for (const Tag& tag : tags) {
    const std::string text = tag.encode();
    hashes.push_back(key(of_tag, text, {}));
    hashes.push_back(key(of_both, type, text));
  }
  sort_unique(hashes);
  return hashes;
}

std::vector<KeyGroup> StreamKeys::of_query(const Query& query) const {
  std::vector<KeyGroup> groups;
  std::vector<std::string> tags;
  for (const QueryItem& item : query.items()) {
    tags.clear();
    for (const Tag& tag : item.tags) tags.push_back(tag.encode());
    if (item.types.empty()) {
      KeyGroup& group = groups.emplace_back();
      for (const std::string& tag : tags) group.push_back(key(of_tag, tag, {}));
    }
    for (const std::string& type : item.types) {
      KeyGroup& group = groups.emplace_back();
      if (tags.empty()) group.push_back(key(of_type, type, {}));
      for (const std::string& tag : tags) group.push_back(key(of_both, type, tag));
    }
  }
  for (KeyGroup& group : groups) sort_unique(group);
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

}  // namespace postrider
