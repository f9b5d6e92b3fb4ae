// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/claim_plan.hpp"

#include <algorithm>

namespace postrider::mariadb {
namespace {

constexpr Micros least_deferral = 100'000;
/// Whoever holds the head goes on with its key by itself; this is for the case that it dies on the way.
constexpr Micros longest_wait_for_a_node = 1'000'000;

}  // namespace

Micros due_time(const RowState& row) noexcept {
  return std::max(row.available_at, row.lease_until.value_or(row.available_at));
}

bool claimable(const RowState& row, Micros now) noexcept {
  const bool leased = row.lease_until.has_value() && *row.lease_until > now && !row.owner.empty();
  return row.available_at <= now && !leased;
}

std::size_t run_length(std::span<const RowState> rows, Micros now) noexcept {
  const auto end =
      std::find_if(rows.begin(), rows.end(), [&](const RowState& row) { return !claimable(row, now); });
  return static_cast<std::size_t>(end - rows.begin());
}

Micros deferred_until(const RowState& head, Micros now) noexcept {
  const Micros until =
      head.available_at > now ? head.available_at : std::min(due_time(head), now + longest_wait_for_a_node);
  return std::max(until, now + least_deferral);
}

}  // namespace postrider::mariadb
