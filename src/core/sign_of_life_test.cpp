// SPDX-License-Identifier: Apache-2.0
#include "core/sign_of_life.hpp"

#include <gtest/gtest.h>

namespace postrider {
namespace {

using namespace std::chrono_literals;

TEST(SignOfLife, OnlyWhoHangsInItsOwnCodeIsOverdue) {
  const SteadyPoint now{100h};
  SignOfLife sign;
  EXPECT_EQ(sign.overdue(now), 0s) << "does not run";
  sign.busy(now);
  EXPECT_EQ(sign.overdue(now), 0s);
  EXPECT_EQ(sign.overdue(now + 3s), 3s);
  sign.expect_by(now + 10s);
  EXPECT_EQ(sign.overdue(now + 10s), 0s) << "sleeps";
  EXPECT_EQ(sign.overdue(now + 11s), 1s) << "overslept";
  sign.elsewhere();
  EXPECT_EQ(sign.overdue(now + 1000h), 0s);
}

}  // namespace
}  // namespace postrider
