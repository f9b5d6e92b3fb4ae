// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace postrider {

/// Whether `text` is UTF-8 without NUL and has from `least` to `most` characters.
[[nodiscard]] bool within_text_bounds(std::string_view text, std::size_t least, std::size_t most) noexcept;

/// Throws Error(invalid_argument), beginning with `what`, unless `text` is within those bounds. `field` names
/// it in the message: "key".
void check_text_bounds(std::string_view what, std::string_view field, std::string_view text,
                       std::size_t least, std::size_t most);

}  // namespace postrider
