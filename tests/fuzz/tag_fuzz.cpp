// SPDX-License-Identifier: Apache-2.0
// The written form of tags, and queries made of them. An input is lines; each is tried as a tag. Those that
// are tags make an event and a query.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/require.hpp"
#include "postrider/error.hpp"
#include "postrider/stream_query.hpp"
#include "postrider/tag.hpp"
#include "storage/stream_keys.hpp"

namespace postrider {
namespace {

using test::require;

/// Nothing when it is refused.
std::vector<Tag> decoded(std::string_view text) {
  try {
    return {Tag::decode(text)};
  } catch (const Error& error) {
    require(error.code() == ErrorCode::invalid_argument, "a text that is no tag is an invalid argument");
    return {};
  }
}

bool is_valid(const Tag& tag) {
  try {
    tag.check();
    return true;
  } catch (const Error&) {
    return false;
  }
}

void check_text(std::string_view line, Tags& tags) {
  for (Tag& tag : decoded(line)) {
    require(is_valid(tag), "what was decoded is a tag");
    require(tag.encode() == line, "each tag has one written form: encode(decode(text)) == text");
    tags.push_back(std::move(tag));
  }
}

/// The same bytes as key and value, cut at every place that a `:` marks: nothing is escaped in them.
void check_parts(std::string_view line) {
  const std::size_t cut = line.find(':');
  if (cut == std::string_view::npos) return;
  const Tag tag{std::string(line.substr(0, cut)), std::string(line.substr(cut + 1))};
  const std::vector<Tag> back = decoded(tag.encode());
  require(back.size() == (is_valid(tag) ? 1U : 0U),
          "a tag can be decoded if, and only if, it is within the bounds");
  if (!back.empty()) require(back.front() == tag, "decode(encode(tag)) == tag");
}

/// True when some group has all its hashes among those of the event.
bool found_by_keys(const Query& query, const std::string& type, const Tags& tags) {
  const StreamKeys keys;
  const std::vector<std::int64_t> stored = keys.of_event(type, tags);
  require(std::is_sorted(stored.begin(), stored.end()), "an event's hashes are sorted");
  const std::vector<KeyGroup> groups = keys.of_query(query);
  return std::any_of(groups.begin(), groups.end(), [&](const KeyGroup& group) {
    require(!group.empty(), "no group is empty");
    return std::all_of(group.begin(), group.end(), [&](std::int64_t hash) {
      return std::binary_search(stored.begin(), stored.end(), hash);
    });
  });
}

/// The event has the tags, the query the first and every second of them, and some that the event lacks.
void check_query(const Tags& tags) {
  if (tags.empty()) return;
  constexpr std::size_t enough = 8;
  const Tags event(tags.begin(), tags.begin() + static_cast<std::ptrdiff_t>((tags.size() + 1) / 2));
  std::vector<QueryItem> items;
  for (std::size_t i = 0; i < tags.size() && items.size() < enough; i += 2) {
    QueryItem item{.types = {}, .tags = {tags[i], tags[tags.size() - 1 - i]}};
    if (i % 4 == 2) item.types = {"moved", tags[i].key};
    items.push_back(std::move(item));
  }
  const Query query = Query::of(items);
  for (const std::string& type : {std::string("moved"), std::string("other")}) {
    const bool wanted = std::any_of(items.begin(), items.end(),
                                    [&](const QueryItem& item) { return item.matches(type, event); });
    require(query.matches(type, event) == wanted, "a query matches what one of its items matches");
    require(!wanted || found_by_keys(query, type, event), "what matches is found by its hashes");
  }
  require((query | query) == query, "a query or itself is itself");
  require((query | Query::all()).is_all(), "a query or all is all");
  require(Query::of(query.items()) == query, "what was put into its one form stays as it is");
}

}  // namespace
}  // namespace postrider

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  postrider::Tags tags;
  constexpr std::size_t most_lines = 40;
  for (std::size_t i = 0; i < most_lines && !rest.empty(); ++i) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    postrider::check_text(line, tags);
    postrider::check_parts(line);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  postrider::check_query(tags);
  return 0;
}
