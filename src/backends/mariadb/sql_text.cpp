// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/sql_text.hpp"

#include <algorithm>

namespace postrider::mariadb {

std::string replaced(std::string_view text, std::string_view mark, std::string_view by) {
  std::string result;
  for (;;) {
    const std::size_t at = text.find(mark);
    result.append(text.substr(0, at));
    if (at == std::string_view::npos) return result;
    result.append(by);
    text.remove_prefix(at + mark.size());
  }
}

ListSql::ListSql(std::string_view text, std::string_view unit, std::string_view separator) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::string list(unit);
    for (std::size_t n = 1; n < sizes[i]; ++n) list.append(separator).append(unit);
    texts_[i] = replaced(text, "{list}", list);
  }
}

ListSql::ListSql(const ListSql& other, std::string_view suffix) : texts_(other.texts_) {
  for (std::string& text : texts_) text.append(suffix);
}

ListSql::Sized ListSql::for_count(std::size_t count) const noexcept {
  const auto found = std::lower_bound(sizes.begin(), sizes.end() - 1, count);
  return {texts_[static_cast<std::size_t>(found - sizes.begin())], *found};
}

}  // namespace postrider::mariadb
