// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace postrider {

/// The number of characters, or nothing when `text` is not valid UTF-8 (overlong forms and surrogates are
/// invalid).
[[nodiscard]] std::optional<std::size_t> utf8_length(std::string_view text) noexcept;

/// The longest prefix of at most `chars` characters that ends on a character boundary. Takes invalid bytes as
/// one character each, so that any error text can be cut.
[[nodiscard]] std::string_view utf8_prefix(std::string_view text, std::size_t chars) noexcept;

/// `text` as valid UTF-8 without NUL that every database takes: each offending byte becomes U+FFFD.
[[nodiscard]] std::string utf8_repaired(std::string_view text);

}  // namespace postrider
