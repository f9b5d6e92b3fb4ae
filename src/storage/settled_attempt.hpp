// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/attempts.hpp"
#include "storage/queue_store.hpp"

namespace postrider {

/// What event_attempt gets to know of a settlement.
struct SettledAttempt {
  Claim claim{};
  AttemptOutcome outcome = AttemptOutcome::retry;
  std::string error{};  ///< cut, and valid UTF-8
};

/// Not set for an event that simply succeeded, and for one that is given back.
[[nodiscard]] std::optional<AttemptOutcome> failed_outcome(const Settlement& settlement) noexcept;
[[nodiscard]] SettledAttempt settled_attempt(const Settlement& settlement, AttemptOutcome outcome);

}  // namespace postrider
