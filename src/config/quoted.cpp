// SPDX-License-Identifier: Apache-2.0
#include "config/quoted.hpp"

#include "core/utf8.hpp"

namespace postrider::config {

std::string quoted(std::string_view text) {
  constexpr std::size_t shown = 100;
  return "'" + utf8_repaired(utf8_prefix(text, shown)) + "'";
}

}  // namespace postrider::config
