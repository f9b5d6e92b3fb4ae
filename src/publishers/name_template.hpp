// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/option_check.hpp"
#include "postrider/sink.hpp"

namespace postrider {

/// Of events that come from no topic of a relay.
inline constexpr std::string_view topic_of_the_outbox = "outbox";

/// A name outside that depends on the message: "orders.{type}". Knows {topic} and {type}; nothing else may
/// stand in braces. Events of the outbox, which have no topic, have the topic "outbox" here.
class NameTemplate {
 public:
  using Append = void (*)(std::string& out, std::string_view value);

  /// Throws Error(invalid_argument) in the words of `check` for a text that is empty or too long, or has
  /// other braces.
  NameTemplate(const OptionCheck& check, std::string_view option, std::string_view text,
               std::size_t most_chars);

  /// Replaces `out`. `append` puts a value where its place is, as the receiver needs it.
  void render(const SinkMessage& message, std::string& out, Append append = as_it_is) const;
  /// Whether messages may have different names.
  [[nodiscard]] bool varies() const noexcept { return pieces_.size() > 1; }

 private:
  enum class Value : std::uint8_t { none, topic, type };
  struct Piece {
    std::string text;
    Value then;
  };
  static void as_it_is(std::string& out, std::string_view value) { out += value; }

  std::vector<Piece> pieces_;
};

}  // namespace postrider
