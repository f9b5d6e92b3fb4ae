// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "postrider/sink.hpp"

namespace postrider {

/// "orders.{type}" and the like.
class RoutingKey {
 public:
  /// Throws Error(invalid_argument) for a name in braces that it does not know, and for braces without an
  /// end.
  explicit RoutingKey(std::string_view pattern);

  /// The same for all.
  [[nodiscard]] static RoutingKey of_text(std::string text) {
    RoutingKey made("");
    made.parts_.push_back({Kind::text, std::move(text)});
    return made;
  }

  void write(const SinkMessage& message, std::string& out) const;

 private:
  enum class Kind : std::uint8_t { text, topic, type, key };
  struct Part {
    Kind kind;
    std::string text{};
  };
  std::vector<Part> parts_;
};

}  // namespace postrider
