// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/sink.hpp"

namespace postrider::kafka {

/// 1 to 249 of a-z, A-Z, 0-9, `.`, `_`, `-`; neither "." nor "..".
[[nodiscard]] bool is_topic_name(std::string_view name) noexcept;

/// A topic's name that may depend on the message.
class TopicTemplate {
 public:
  /// Throws Error(invalid_argument) when no message could make a name of it.
  explicit TopicTemplate(std::string_view text);

  /// Writes the topic of this message. Returns why there is none; empty when all is well.
  [[nodiscard]] std::string render(const SinkMessage& message, std::string& out) const;

 private:
  enum class Kind : std::uint8_t { text, topic, type };
  struct Part {
    Kind kind;
    std::string text{};
  };
  std::string template_;
  std::vector<Part> parts_;
  bool fixed_ = true;
};

}  // namespace postrider::kafka
