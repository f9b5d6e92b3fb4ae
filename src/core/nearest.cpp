// SPDX-License-Identifier: Apache-2.0
#include "core/nearest.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace postrider {
namespace {

constexpr std::size_t longest = 64;
using Row = std::array<std::size_t, longest + 1>;

/// Letters of either case, and the words of a name put together with anything, are the same.
char plain(char c) noexcept {
  if (c == '_' || c == '.' || c == ' ') return '-';
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

/// Optimal string alignment: three rows of the table are all it needs.
std::size_t distance(std::string_view a, std::string_view b) noexcept {
  std::array<Row, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0].at(j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    Row& row = rows.at(i % 3);
    const Row& above = rows.at((i + 2) % 3);
    const Row& higher = rows.at((i + 1) % 3);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = plain(a[i - 1]) == plain(b[j - 1]);
      std::size_t best = std::min({above.at(j) + 1, row.at(j - 1) + 1, above.at(j - 1) + (same ? 0 : 1)});
      const bool swapped =
          i > 1 && j > 1 && plain(a[i - 1]) == plain(b[j - 2]) && plain(a[i - 2]) == plain(b[j - 1]);
      if (swapped) best = std::min(best, higher.at(j - 2) + 1);
      row.at(j) = best;
    }
  }
  return rows.at(a.size() % 3).at(b.size());
}

}  // namespace

std::string_view nearest_of(std::string_view name, std::span<const std::string_view> known) {
  if (name.size() > longest) return {};
  std::string_view found;
  // A third of the letters may be wrong; more than that would be guessing.
  std::size_t least = std::max<std::size_t>(name.size() / 3, 1) + 1;
  for (const std::string_view one : known) {
    if (one.size() > longest) continue;
    const std::size_t letters = distance(name, one);
    if (letters >= least) continue;
    least = letters;
    found = one;
  }
  return found;
}

}  // namespace postrider
