// SPDX-License-Identifier: Apache-2.0
#include "config/in_quotes.hpp"

#include <algorithm>

#include "core/utf8.hpp"

namespace postrider::config {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t shown = 100;
  return "'" + utf8_repaired(utf8_prefix(text, shown)) + "'";
}

std::string_view without_index(std::string_view name) {
  return name.substr(0, std::min(name.find('['), name.size()));
}

std::string as_written(std::string_view table) {
  const std::string_view name = without_index(table);
  if (name.size() == table.size()) return "[" + std::string(table) + "]";
  // What is below one of them is no table of an array any more.
  const std::size_t end = table.find(']');
  const std::string_view rest = end == std::string_view::npos ? std::string_view() : table.substr(end + 1);
  return rest.empty() ? "[[" + std::string(name) + "]]" : "[" + std::string(name) + std::string(rest) + "]";
}

}  // namespace postrider::config
