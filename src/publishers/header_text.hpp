// SPDX-License-Identifier: Apache-2.0
// Names of headers, as HTTP has them.
#pragma once

#include <algorithm>
#include <string_view>

namespace postrider {

[[nodiscard]] constexpr char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] inline bool same_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return ascii_lower(x) == ascii_lower(y); });
}

/// Whether it can be the name of a header.
[[nodiscard]] inline bool header_token(std::string_view name) {
  constexpr std::string_view marks = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::all_of(name.begin(), name.end(), [&](char c) {
    return (ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z') || (c >= '0' && c <= '9') ||
           marks.find(c) != std::string_view::npos;
  });
}

}  // namespace postrider
