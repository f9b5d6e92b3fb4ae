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

TEST(MariadbClaimPlan, ARunEndsBeforeTheFirstRowThatIsLeasedOrNotAvailable) {
  const std::vector<RowState> rows{row(1, 0), row(2, 0, now + 1), row(3, 0, now, "other"),
                                   row(4, 0, now + 1, "other"), row(5, 0)};
  EXPECT_EQ(run_length(rows, now), 3U);  // deferred and expired come along
  const std::vector<RowState> later{row(1, 0), row(2, now + 1), row(3, 0)};
  EXPECT_EQ(run_length(later, now), 1U);
  EXPECT_EQ(run_length({}, now), 0U);
}

TEST(MariadbClaimPlan, ADeferredHeadMayBeTakenALeasedOneNot) {
  const std::vector<RowState> deferred{row(1, 0, now + 1), row(2, 0)};
  EXPECT_EQ(run_length(deferred, now), 2U);
  const std::vector<RowState> leased{row(1, 0, now + 1, "anybody")};
  EXPECT_EQ(run_length(leased, now), 0U);
}

TEST(MariadbClaimPlan, BlockedRowsWaitForTheHeadButNotLongForANode) {
  EXPECT_EQ(deferred_until(row(1, now + 5'000'000), now), now + 5'000'000);
  EXPECT_EQ(deferred_until(row(1, now + 1), now), now + 100'000);
  EXPECT_EQ(deferred_until(row(1, 0, now + 500'000, "n"), now), now + 500'000);
  EXPECT_EQ(deferred_until(row(1, 0, now + 30'000'000, "n"), now), now + 1'000'000);
}

}  // namespace
}  // namespace postrider::mariadb
