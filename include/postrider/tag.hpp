// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace postrider {

/// Says what an event is about: `wallet_id=42`. Consistency boundaries and topics are drawn by tags.
///
/// There is one written form, `key=value`: `=` and `\` within the key are escaped by a backslash, the value
/// stands as it is. An empty value is allowed and differs from every other.
struct Tag {
  static constexpr std::size_t max_key_chars = 64;     ///< at least 1
  static constexpr std::size_t max_value_chars = 256;  ///< may be 0

  std::string key{};
  std::string value{};

  /// Throws Error(invalid_argument) unless both are UTF-8 without NUL and within the bounds.
  void check() const;
  [[nodiscard]] std::string encode() const;
  /// The opposite of `encode`; throws Error(invalid_argument) for a text without `=` or out of bounds.
  [[nodiscard]] static Tag decode(std::string_view text);

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 takes the 0 inside for a pointer
  friend auto operator<=>(const Tag&, const Tag&) = default;  // NOLINT(modernize-use-nullptr)
};

using Tags = std::vector<Tag>;

}  // namespace postrider
