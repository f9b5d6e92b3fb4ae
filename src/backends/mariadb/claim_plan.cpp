// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/claim_plan.hpp"

#include <algorithm>

namespace postrider::mariadb {
namespace {

constexpr Micros least_deferral = 100'000;

}  // namespace

Micros due_at(const RowState& row) noexcept {
  return std::max(row.available_at, row.lease_until.value_or(row.available_at));
}

bool may_follow(const RowState& row, std::string_view claimer, Micros now) noexcept {
  const bool leased_away =
      row.lease_until.has_value() && *row.lease_until > now && !row.owner.empty() && row.owner != claimer;
  return row.available_at <= now && !leased_away;
}

bool may_lead(const RowState& row, bool continues, std::string_view claimer, Micros now) noexcept {
  return continues ? may_follow(row, claimer, now) : due_at(row) <= now;
}

std::size_t run_length(std::span<const RowState> rows, bool continues, std::string_view claimer,
                       Micros now) noexcept {
  if (rows.empty() || !may_lead(rows.front(), continues, claimer, now)) return 0;
  const auto end = std::find_if(rows.begin() + 1, rows.end(),
                                [&](const RowState& row) { return !may_follow(row, claimer, now); });
  return static_cast<std::size_t>(end - rows.begin());
}

Micros deferred_until(Micros head_due, Micros now) noexcept {
  return std::max(head_due, now + least_deferral);
}

}  // namespace postrider::mariadb
