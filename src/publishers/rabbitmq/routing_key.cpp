// SPDX-License-Identifier: Apache-2.0
#include "publishers/rabbitmq/routing_key.hpp"

#include "core/option_check.hpp"

namespace postrider {

RoutingKey::RoutingKey(std::string_view pattern) {
  const OptionCheck check("RabbitmqSinkOptions");
  const std::string whole = "'" + std::string(pattern) + "'";
  while (!pattern.empty()) {
    const std::size_t brace = pattern.find_first_of("{}");
    if (brace != 0) {
      parts_.push_back({Kind::text, std::string(pattern.substr(0, brace))});
      pattern.remove_prefix(brace == std::string_view::npos ? pattern.size() : brace);
      continue;
    }
    const std::size_t end = pattern.find('}');
    const std::string_view name = pattern.substr(0, end == std::string_view::npos ? end : end + 1);
    if (name == "{topic}") {
      parts_.push_back({Kind::topic});
    } else if (name == "{type}") {
      parts_.push_back({Kind::type});
    } else if (name == "{key}") {
      parts_.push_back({Kind::key});
    } else {
      check.refuse("routing_key", whole, "a text with no other braces than {topic}, {type} and {key}");
    }
    pattern.remove_prefix(name.size());
  }
}

void RoutingKey::write(const SinkMessage& message, std::string& out) const {
  out.clear();
  for (const Part& part : parts_) {
    switch (part.kind) {
      case Kind::text:
        out += part.text;
        break;
      case Kind::topic:
        out += message.topic;
        break;
      case Kind::type:
        out += message.event->type();
        break;
      case Kind::key:
        out += message.key;
        break;
    }
  }
}

}  // namespace postrider
