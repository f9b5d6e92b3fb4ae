// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/claim_plan.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace postrider::mariadb {
namespace {

constexpr Micros now = 1'000'000;

RowState row(std::int64_t seq, Micros available_at, std::optional<Micros> lease_until = {},
             std::string owner = {}) {
  return {.seq = seq, .available_at = available_at, .lease_until = lease_until, .owner = std::move(owner)};
}

TEST(MariadbClaimPlan, ARunEndsBeforeTheFirstRowThatIsNotOurs) {
  const std::vector<RowState> rows{row(1, 0),
                                   row(2, 0, now + 1),
                                   row(3, 0, now + 1, "me"),
                                   row(4, 0, now, "other"),
                                   row(5, 0, now + 1, "other"),
                                   row(6, 0)};
  EXPECT_EQ(run_length(rows, false, "me", now), 4U);  // deferred, ours, expired: all come along
  const std::vector<RowState> later{row(1, 0), row(2, now + 1), row(3, 0)};
  EXPECT_EQ(run_length(later, false, "me", now), 1U);
}

TEST(MariadbClaimPlan, AHeadMustBeDueUnlessTheRunContinues) {
  const std::vector<RowState> deferred{row(1, 0, now + 1), row(2, 0)};
  EXPECT_EQ(run_length(deferred, false, "me", now), 0U);
  EXPECT_EQ(run_length(deferred, true, "me", now), 2U);
  const std::vector<RowState> leased{row(1, 0, now + 1, "other")};
  EXPECT_EQ(run_length(leased, true, "me", now), 0U);
  const std::vector<RowState> delayed{row(1, now + 1)};
  EXPECT_EQ(run_length(delayed, true, "me", now), 0U);
  EXPECT_EQ(run_length({}, true, "me", now), 0U);
}

TEST(MariadbClaimPlan, BlockedRowsWaitForTheHeadAndAWhileAtLeast) {
  EXPECT_EQ(deferred_until(now + 5'000'000, now), now + 5'000'000);
  EXPECT_EQ(deferred_until(now - 1, now), now + 100'000);
}

}  // namespace
}  // namespace postrider::mariadb
