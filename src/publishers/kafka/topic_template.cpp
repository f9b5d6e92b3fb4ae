// SPDX-License-Identifier: Apache-2.0
#include "publishers/kafka/topic_template.hpp"

#include <algorithm>

#include "core/option_check.hpp"
#include "publishers/name_template.hpp"

namespace postrider::kafka {
namespace {

constexpr std::size_t longest_name = 249;
constexpr std::string_view bounds =
    "a name of 1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-', in which {topic} and {type} may stand";

bool fits_in_name(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

}  // namespace

bool is_topic_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= longest_name && name != "." && name != ".." &&
         std::all_of(name.begin(), name.end(), fits_in_name);
}

TopicTemplate::TopicTemplate(std::string_view text) : template_(text) {
  const OptionCheck check("KafkaSinkOptions");
  const auto refuse = [&] { check.refuse("topic", "'" + template_ + "'", std::string(bounds)); };
  const auto placeholder = [&](std::string_view word, Kind kind) {
    if (!text.starts_with(word)) return false;
    text.remove_prefix(word.size());
    parts_.push_back({kind});
    fixed_ = false;
    return true;
  };
  while (!text.empty()) {
    if (placeholder("{topic}", Kind::topic) || placeholder("{type}", Kind::type)) continue;
    const std::string_view plain = text.substr(0, text.find('{'));
    if (plain.empty() || plain.size() > longest_name ||
        !std::all_of(plain.begin(), plain.end(), fits_in_name)) {
      refuse();
    }
    parts_.push_back({Kind::text, std::string(plain)});
    text.remove_prefix(plain.size());
  }
  if (fixed_ && !is_topic_name(template_)) refuse();
}

std::string TopicTemplate::render(const SinkMessage& message, std::string& out) const {
  if (fixed_) {
    out = template_;
    return {};
  }
  out.clear();
  for (const Part& part : parts_) {
    switch (part.kind) {
      case Kind::text:
        out += part.text;
        break;
      case Kind::topic:
        out += message.topic.empty() ? topic_of_the_outbox : message.topic;
        break;
      case Kind::type:
        out += message.event->type();
        break;
    }
  }
  if (is_topic_name(out)) return {};
  return "'" + out.substr(0, longest_name) + "', made of '" + template_ +
         "', is no name of a Kafka topic (1 to 249 of a-z, A-Z, 0-9, '.', '_' and '-')";
}

}  // namespace postrider::kafka
