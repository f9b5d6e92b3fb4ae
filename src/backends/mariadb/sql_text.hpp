// SPDX-License-Identifier: Apache-2.0
// What the statements of all stores are made of.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

// Times travel as microseconds since 1970.
#define POSTRIDER_EPOCH "TIMESTAMP'1970-01-01 00:00:00'"
#define POSTRIDER_AT "(" POSTRIDER_EPOCH " + INTERVAL ? MICROSECOND)"
// The parameter may be NULL, then the database's clock is taken.
#define POSTRIDER_NOW "COALESCE(" POSTRIDER_EPOCH " + INTERVAL ? MICROSECOND, UTC_TIMESTAMP(6))"
#define POSTRIDER_MICROS(column) "TIMESTAMPDIFF(MICROSECOND, " POSTRIDER_EPOCH ", " column ")"

namespace postrider::mariadb {

/// `text` with every `mark` in it replaced.
[[nodiscard]] std::string replaced(std::string_view text, std::string_view mark, std::string_view by);

/// One statement about several values (`… IN (?, ?, …)`), in a few sizes, so that few statements have to be
/// prepared. Callers fill the places that are left with a value that is there already.
class ListSql {
 public:
  static constexpr std::array<std::size_t, 9> sizes{1, 2, 4, 8, 16, 32, 64, 128, 256};
  static constexpr std::size_t max_size = sizes.back();

  /// `{list}` in the text becomes the placeholders. With `unit` the list is made of copies of it, `separator`
  /// between them.
  explicit ListSql(std::string_view text, std::string_view unit = "?", std::string_view separator = ", ");

  /// The same with something behind it.
  ListSql(const ListSql& other, std::string_view suffix);

  struct Sized {
    const std::string& sql;
    std::size_t places;
  };
  /// The smallest that has room for `count` (1 to max_size) values.
  [[nodiscard]] Sized for_count(std::size_t count) const noexcept;

 private:
  std::array<std::string, sizes.size()> texts_;
};

}  // namespace postrider::mariadb
