// SPDX-License-Identifier: Apache-2.0
#include "postrider/tag.hpp"

#include "core/text_bounds.hpp"
#include "core/utf8.hpp"
#include "postrider/error.hpp"

namespace postrider {
namespace {

constexpr std::size_t shown_chars = 80;

[[noreturn]] void refuse_tag(std::string_view text, std::string_view why) {
  throw Error(ErrorCode::invalid_argument,
              "not a tag: '" + utf8_repaired(utf8_prefix(text, shown_chars)) + "'", why,
              R"(write key=value; within the key, \= stands for = and \\ for \)");
}

}  // namespace

void Tag::check() const {
  // The words for what is wrong are put together only when something is: tags are checked with every read.
  if (within_text_bounds(key, 1, max_key_chars) && within_text_bounds(value, 0, max_value_chars)) return;
  check_text_bounds("tag refused", "key", key, 1, max_key_chars);
  check_text_bounds("tag '" + key + "' refused", "value", value, 0, max_value_chars);
}

std::string Tag::encode() const {
  std::string text;
  text.reserve(key.size() + value.size() + 1);
  for (const char c : key) {
    if (c == '=' || c == '\\') text += '\\';
    text += c;
  }
  text += '=';
  text += value;
  return text;
}

Tag Tag::decode(std::string_view text) {
  Tag tag;
  std::size_t at = 0;
  while (at < text.size() && text[at] != '=') {
    if (text[at] == '\\') {
      ++at;
      // Nothing else is ever escaped, so that each tag has one written form.
      if (at == text.size() || (text[at] != '=' && text[at] != '\\')) {
        refuse_tag(text, "a backslash in its key escapes nothing");
      }
    }
    tag.key += text[at++];
  }
  if (at == text.size()) refuse_tag(text, "it has no =");
  tag.value = text.substr(at + 1);
  tag.check();
  return tag;
}

}  // namespace postrider
