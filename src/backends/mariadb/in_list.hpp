// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/mariadb/link.hpp"
#include "backends/mariadb/sql_text.hpp"
#include "postrider/clock.hpp"

namespace postrider::mariadb {

/// Runs a statement about a list of values, in pieces that fit. Its parameters are `before`, then the list,
/// then `after`. Returns the number of affected rows.
template <class T>
std::uint64_t run_list(Link& link, const ListSql& sql, std::span<const Value> before, std::span<const T> list,
                       std::span<const Value> after, const Link::OnRow& on_row) {
  std::uint64_t affected = 0;
  std::vector<Value> params;
  while (!list.empty()) {
    const std::size_t count = std::min(list.size(), ListSql::max_size);
    const ListSql::Sized sized = sql.for_count(count);
    params.assign(before.begin(), before.end());
    for (std::size_t i = 0; i < sized.places; ++i) params.emplace_back(list[std::min(i, count - 1)]);
    params.insert(params.end(), after.begin(), after.end());
    affected += link.run(sized.sql, params, on_row);
    list = list.subspan(count);
  }
  return affected;
}
template <class T>
std::uint64_t run_list(Link& link, const ListSql& sql, std::span<const Value> before,
                       const std::vector<T>& list, std::span<const Value> after, const Link::OnRow& on_row) {
  return run_list(link, sql, before, std::span<const T>(list), after, on_row);
}

/// As microseconds, within what can be added to any date that is likely to be now.
[[nodiscard]] inline std::int64_t bounded(Duration duration) noexcept {
  return std::clamp(duration, Duration::zero(), Duration(std::chrono::hours{24 * 365 * 100})).count();
}

}  // namespace postrider::mariadb
