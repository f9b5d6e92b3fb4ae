// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

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

[[nodiscard]] Micros due_at(const RowState& row) noexcept;
/// Available and not leased to another living owner: may follow a head that is taken, and may be a head that
/// continues.
[[nodiscard]] bool may_follow(const RowState& row, std::string_view claimer, Micros now) noexcept;
/// May be the first of a run.
[[nodiscard]] bool may_lead(const RowState& row, bool continues, std::string_view claimer,
                            Micros now) noexcept;
/// How many of a key's pending rows, in order of seq from its head, `claimer` may take.
[[nodiscard]] std::size_t run_length(std::span<const RowState> rows, bool continues, std::string_view claimer,
                                     Micros now) noexcept;
/// Until when rows wait that are blocked by a head which falls due at `head_due`.
[[nodiscard]] Micros deferred_until(Micros head_due, Micros now) noexcept;

}  // namespace postrider::mariadb
