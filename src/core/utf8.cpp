// SPDX-License-Identifier: Apache-2.0
#include "core/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace postrider {
namespace {

/// The bytes of the character that `text` begins with, 0 when it does not begin with one. After table 3-7 of
/// the Unicode standard: the second byte's range is what keeps out overlong forms, surrogates and everything
/// above U+10FFFF.
std::size_t leading_character(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto within = [&](std::size_t i, unsigned low, unsigned high) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return within(1, 0x80, 0xBF) ? 2 : 0;
  if (first < 0xF0) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = first == 0xED ? 0x9F : 0xBF;
    return within(1, low, high) && within(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (first < 0xF5) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;
    return within(1, low, high) && within(2, 0x80, 0xBF) && within(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::optional<std::size_t> utf8_length(std::string_view text) noexcept {
  // Eight at a time as long as they are ASCII: nearly always to the end.
  std::size_t chars = 0;
  for (std::uint64_t eight = 0; text.size() >= sizeof eight; chars += sizeof eight) {
    std::memcpy(&eight, text.data(), sizeof eight);
    if ((eight & 0x8080808080808080U) != 0) break;
    text.remove_prefix(sizeof eight);
  }
  for (; !text.empty(); ++chars) {
    const std::size_t bytes = leading_character(text);
    if (bytes == 0) return std::nullopt;
    text.remove_prefix(bytes);
  }
  return chars;
}

std::string_view utf8_prefix(std::string_view text, std::size_t chars) noexcept {
  std::string_view rest = text;
  for (; chars > 0 && !rest.empty(); --chars) {
    const std::size_t bytes = leading_character(rest);
    rest.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return text.substr(0, text.size() - rest.size());
}

std::string utf8_repaired(std::string_view text) {
  constexpr std::string_view replacement = "\xEF\xBF\xBD";
  std::string repaired;
  repaired.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = text.front() == '\0' ? 0 : leading_character(text);
    repaired += bytes == 0 ? replacement : text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return repaired;
}

}  // namespace postrider
