// SPDX-License-Identifier: Apache-2.0
#include "app/cli/table_fit.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace postrider::cli {
namespace {

constexpr std::size_t readable = 20;
constexpr std::size_t least_readable = 8;

std::size_t whole_width(std::span<const std::size_t> widths) {
  const auto shown = static_cast<std::size_t>(
      std::count_if(widths.begin(), widths.end(), [](std::size_t width) { return width > 0; }));
  return std::accumulate(widths.begin(), widths.end(), shown > 0 ? column_gap * (shown - 1) : 0);
}

/// Cut columns at `bound`, or as wide as their heads.
std::vector<std::size_t> widths_at(std::span<const ColumnNeed> columns, const std::vector<bool>& left_out,
                                   std::size_t bound) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ColumnNeed& one = columns[i];
    widths.push_back(left_out[i] ? 0
                     : one.cut   ? std::min(one.widest, std::max(one.title, bound))
                                 : one.widest);
  }
  return widths;
}

/// The one that is missed least; the end when none may be left out.
std::size_t next_to_leave_out(std::span<const ColumnNeed> columns, const std::vector<bool>& left_out) {
  std::size_t chosen = columns.size();
  const auto rank = [&](std::size_t i) { return std::pair(columns[i].empty, columns[i].spare); };
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (left_out[i] || columns[i].spare == 0) continue;
    if (chosen == columns.size() || rank(i) >= rank(chosen)) chosen = i;
  }
  return chosen;
}

}  // namespace

std::vector<std::size_t> fitted(std::span<const ColumnNeed> columns, std::size_t room) {
  std::vector<bool> left_out(columns.size(), false);
  std::vector<std::size_t> widths;
  for (const ColumnNeed& one : columns) widths.push_back(one.widest);
  if (whole_width(widths) <= room) return widths;
  widths = widths_at(columns, left_out, readable);
  while (whole_width(widths) > room) {
    const std::size_t next = next_to_leave_out(columns, left_out);
    if (next == columns.size()) {
      widths = widths_at(columns, left_out, least_readable);
      break;
    }
    left_out[next] = true;
    widths = widths_at(columns, left_out, readable);
  }
  // What is left of the room goes to those that were cut, the narrowest first.
  for (std::size_t used = whole_width(widths); used < room; ++used) {
    std::size_t poorest = columns.size();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (widths[i] == 0 || widths[i] >= columns[i].widest) continue;
      if (poorest == columns.size() || widths[i] < widths[poorest]) poorest = i;
    }
    if (poorest == columns.size()) break;
    ++widths[poorest];
  }
  return widths;
}

}  // namespace postrider::cli
