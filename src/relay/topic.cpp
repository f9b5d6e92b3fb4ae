// SPDX-License-Identifier: Apache-2.0
#include "relay/topic.hpp"

#include <algorithm>

#include "core/text_bounds.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

bool has_key(const Tags& tags, const std::string& key) {
  const auto found = std::lower_bound(tags.begin(), tags.end(), key,
                                      [](const Tag& tag, const std::string& k) { return tag.key < k; });
  return found != tags.end() && found->key == key;
}

}  // namespace

void Topic::check() const {
  check_text_bounds("cannot use a topic", "name", name, 1, max_name_chars);
  const std::string what = "cannot use topic '" + name + "'";
  const auto bounded = [&](std::size_t size, std::string_view noun) {
    if (size > max_conditions) {
      throw Error(ErrorCode::invalid_argument, what, "it has " + counted(size, noun),
                  "give at most " + std::to_string(max_conditions));
    }
  };
  bounded(event_types.size(), "event type");
  bounded(required_tags.size(), "required tag");
  bounded(any_of_tags.size(), "any-of tag");
  bounded(exact_tags.size(), "exact tag");
  for (const std::string& type : event_types) check_text_bounds(what, "event type", type, 1, 128);
  for (const auto* keys : {&required_tags, &any_of_tags}) {
    for (const std::string& key : *keys) check_text_bounds(what, "tag's key", key, 1, Tag::max_key_chars);
  }
  for (const Tag& tag : exact_tags) tag.check();
}

bool Topic::matches(const std::string& type, const Tags& tags) const {
  const auto has = [&](const std::string& key) { return has_key(tags, key); };
  return (event_types.empty() ||
          std::find(event_types.begin(), event_types.end(), type) != event_types.end()) &&
         std::all_of(required_tags.begin(), required_tags.end(), has) &&
         (any_of_tags.empty() || std::any_of(any_of_tags.begin(), any_of_tags.end(), has)) &&
         std::all_of(exact_tags.begin(), exact_tags.end(),
                     [&](const Tag& tag) { return std::binary_search(tags.begin(), tags.end(), tag); });
}

Query query_of(const Topic& topic) {
  if (topic.event_types.empty() && topic.exact_tags.empty()) return Query::all();
  return Query::of({{.types = topic.event_types, .tags = topic.exact_tags}});
}

}  // namespace postrider
