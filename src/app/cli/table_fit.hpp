// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace postrider::cli {

/// What one column of a table needs.
struct ColumnNeed {
  std::size_t title = 0;   ///< width of its head
  std::size_t widest = 0;  ///< of the head and all cells
  bool cut = false;        ///< its cells may be cut
  int spare = 0;           ///< may be left out: the highest first; 0 never
  bool empty = false;      ///< no row has anything there
};

inline constexpr std::size_t column_gap = 2;

/// The widths of columns that together with the gaps fit into `room`, as far as that is possible: what can be
/// cut is cut to a readable width, then columns are left out (width 0), then more is cut.
[[nodiscard]] std::vector<std::size_t> fitted(std::span<const ColumnNeed> columns, std::size_t room);

}  // namespace postrider::cli
