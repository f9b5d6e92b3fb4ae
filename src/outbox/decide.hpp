// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postrider/listener.hpp"
#include "postrider/retry_policy.hpp"
#include "storage/outbox_store.hpp"

namespace postrider {

struct RetryRules {
  const RetryPolicy* policy = nullptr;
  int max_attempts = 10;
};

/// What is to be written after the listeners have run: the whole retry logic, without clock, luck or
/// database. `failed_before` counts the attempts that failed until now; `random` is uniform in [0, 1).
[[nodiscard]] Completion decide(const LeaseRef& lease, Attempt failed_before, const Outcome& outcome,
                                const RetryRules& rules, double random);

/// Done or dead: the row is not claimed again, unless somebody revives it.
[[nodiscard]] bool for_good(const Completion& completion) noexcept;

}  // namespace postrider
