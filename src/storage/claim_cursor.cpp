// SPDX-License-Identifier: Apache-2.0
#include "storage/claim_cursor.hpp"

#include <algorithm>

namespace postrider {

Duration ScanThrottle::cost() const noexcept {
  return *std::min_element(costs_.begin(), costs_.end());
}

bool ScanThrottle::allowed(SteadyPoint now) const noexcept {
  return cost() < cheap || now - last_ >= rest * cost();
}

void ScanThrottle::took(Duration cost, SteadyPoint now) noexcept {
  costs_[next_] = cost;
  next_ = (next_ + 1) % costs_.size();
  last_ = now;
}

ClaimCursor::Scan ClaimCursor::next(SteadyPoint now) const noexcept {
  if (full_.allowed(now)) return {};
  return {.full = false, .after = positions_};
}

void ClaimCursor::claimed(int priority, const Position& position) noexcept {
  std::optional<Position>& known =
      positions_[static_cast<std::size_t>(std::clamp(priority, 0, max_priority))];
  if (!known || *known < position) known = position;
}

}  // namespace postrider
