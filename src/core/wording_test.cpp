// SPDX-License-Identifier: Apache-2.0
#include "core/wording.hpp"

#include <gtest/gtest.h>

namespace postrider {
namespace {

TEST(Wording, OneIsNoPlural) {
  EXPECT_EQ(counted(0, "listener"), "0 listeners");
  EXPECT_EQ(counted(1, "listener"), "1 listener");
  EXPECT_EQ(counted(2, "undelivered event"), "2 undelivered events");
  EXPECT_EQ(counted(21, "value"), "21 values");
}

}  // namespace
}  // namespace postrider
