// SPDX-License-Identifier: Apache-2.0
#include "core/text_bounds.hpp"

#include <optional>
#include <string>

#include "core/utf8.hpp"
#include "postrider/error.hpp"

namespace postrider {

bool within_text_bounds(std::string_view text, std::size_t least, std::size_t most) noexcept {
  if (text.find('\0') != std::string_view::npos) return false;
  const std::optional<std::size_t> chars = utf8_length(text);
  return chars && *chars >= least && *chars <= most;
}

void check_text_bounds(std::string_view what, std::string_view field, std::string_view text,
                       std::size_t least, std::size_t most) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, what, "its " + std::string(field) + " " + why);
  };
  if (text.find('\0') != std::string_view::npos) {
    refuse("has a NUL character at byte " + std::to_string(text.find('\0')));
  }
  const std::optional<std::size_t> chars = utf8_length(text);
  if (!chars) refuse("is not valid UTF-8");
  if (*chars < least) refuse("is empty");
  if (*chars > most) {
    refuse("has " + std::to_string(*chars) + " characters, at most " + std::to_string(most) + " are allowed");
  }
}

}  // namespace postrider
