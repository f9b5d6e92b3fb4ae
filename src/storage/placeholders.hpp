// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace postrider {

/// May be in a name or a keyword of SQL.
[[nodiscard]] constexpr bool is_word(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// A statement with PostgreSQL's placeholders.
struct NumberedStatement {
  std::string sql;
  std::size_t placeholders = 0;  ///< the highest number

  /// `check_placeholders`, with a hint at PostgreSQL's operators. `original` is the statement as it was
  /// written.
  void check(std::string_view original, std::size_t values) const;
};

/// Turns `?` into `$1`, `$2` … for PostgreSQL, leaving string literals, quoted identifiers, dollar quotes and
/// comments alone. A statement that has `$1` of its own is returned as it is.
[[nodiscard]] NumberedStatement numbered_placeholders(std::string_view sql);

/// Throws Error(invalid_argument) unless there are as many values as placeholders.
void check_placeholders(std::string_view sql, std::size_t placeholders, std::size_t values,
                        std::string_view hint = {});

}  // namespace postrider
