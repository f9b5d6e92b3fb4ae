// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace postrider {

/// What an error says, without "postrider: ", for where another sentence stands before it. A part of
/// `message`.
[[nodiscard]] inline std::string_view without_prefix(std::string_view message) noexcept {
  constexpr std::string_view prefix = "postrider: ";
  return message.starts_with(prefix) ? message.substr(prefix.size()) : message;
}

}  // namespace postrider
