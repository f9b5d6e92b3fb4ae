// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/event.hpp"

namespace postrider {

/// What keeps `text` from being well-formed JSON, with the place: "at byte 7 (line 1, column 8): unexpected
/// '}'". Bytes count from 0, lines and columns (in characters) from 1. Nothing when it is well-formed. Builds
/// no tree.
[[nodiscard]] std::optional<std::string> json_fault(std::string_view text, std::size_t max_depth);

/// The same, and what keeps it from being stored in every database and read back: U+0000 in a text or a name,
/// a number that is beyond a double.
[[nodiscard]] std::optional<std::string> stored_json_fault(std::string_view text, std::size_t max_depth);

/// What a tree of well-formed JSON would pass over in silence, in words: a member that its object has had
/// already, a number that is beyond a double.
[[nodiscard]] std::optional<std::string> json_loss(std::string_view text, std::size_t max_depth);

/// Calls `each` with every text of a JSON array of texts, in order, and builds no tree. What else `text` is;
/// empty when it is that.
[[nodiscard]] std::string_view each_json_text(std::string_view text,
                                              const std::function<void(std::string_view)>& each);

/// One JSON object; empty text for no headers. The headers must be valid UTF-8.
[[nodiscard]] std::string encode_headers(const Headers& headers);

/// The reverse. Throws Error(invalid_argument) unless `text` is an object of strings; empty text is no
/// headers.
[[nodiscard]] Headers decode_headers(std::string_view text);

}  // namespace postrider
