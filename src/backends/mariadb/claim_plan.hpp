// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace postrider::mariadb {

/// Microseconds since 1970 on the database's clock.
using Micros = std::int64_t;

/// What decides whether a pending row may be taken.
struct RowState {
  std::int64_t seq = 0;
  Micros available_at = 0;
  std::optional<Micros> lease_until{};
  std::string owner{};  ///< empty: a lease without an owner is a deferral
};

[[nodiscard]] Micros due_time(const RowState& row) noexcept;
/// Available, and not leased to a living owner (not even to the claimer: it has the row in memory).
[[nodiscard]] bool claimable(const RowState& row, Micros now) noexcept;
/// How many of a key's pending rows, in order of seq from its head, may be taken.
[[nodiscard]] std::size_t run_length(std::span<const RowState> rows, Micros now) noexcept;
/// Until when rows wait that are blocked by this head.
[[nodiscard]] Micros deferred_until(const RowState& head, Micros now) noexcept;

}  // namespace postrider::mariadb
