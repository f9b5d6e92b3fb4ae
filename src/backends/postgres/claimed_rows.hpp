// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "backends/postgres/wire.hpp"
#include "storage/outbox_store.hpp"

namespace postrider::postgres {

inline constexpr std::string_view cannot_claim = "cannot claim outbox events";

/// A claimed row in a result and its place in the answer: by the time it (or its run's first row) fell due,
/// then by `tie`. The result must outlive it.
struct Place {
  TimePoint due;
  std::int64_t tie;
  const Result* result;
  int row;
};

/// The rows of a claim without order.
void add_unordered(const Result& result, std::vector<Place>& places);

/// Those due for longest first.
[[nodiscard]] std::vector<ClaimedEvent> read_sorted(std::vector<Place>& places);

/// The parameters of claim_unless_ordered and claim_unordered.
void bind_claim(Params& params, const ClaimRequest& request, std::size_t limit, std::optional<TimePoint> now);

}  // namespace postrider::postgres
