// SPDX-License-Identifier: Apache-2.0
#include "publishers/name_template.hpp"

namespace postrider {
namespace {

constexpr std::string_view topic_place = "{topic}";
constexpr std::string_view type_place = "{type}";

}  // namespace

NameTemplate::NameTemplate(const OptionCheck& check, std::string_view option, std::string_view text,
                           std::size_t most_chars) {
  const auto refuse = [&, whole = text] {
    check.refuse(option, "'" + std::string(whole) + "'",
                 "a name in which nothing but {topic} and {type} stands in braces");
  };
  if (text.empty()) refuse();
  check.text(option, text, most_chars);
  for (;;) {
    const std::size_t brace = text.find_first_of("{}");
    pieces_.push_back({std::string(text.substr(0, brace)), Value::none});
    if (brace == std::string_view::npos) return;
    text.remove_prefix(brace);
    const bool topic = text.starts_with(topic_place);
    if (!topic && !text.starts_with(type_place)) refuse();
    pieces_.back().then = topic ? Value::topic : Value::type;
    text.remove_prefix(topic ? topic_place.size() : type_place.size());
  }
}

void NameTemplate::render(const SinkMessage& message, std::string& out, Append append) const {
  out.clear();
  for (const Piece& piece : pieces_) {
    out += piece.text;
    if (piece.then == Value::topic) append(out, message.topic.empty() ? topic_of_the_outbox : message.topic);
    if (piece.then == Value::type) append(out, message.event->type());
  }
}

}  // namespace postrider
