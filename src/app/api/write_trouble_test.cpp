// SPDX-License-Identifier: Apache-2.0
#include "app/api/write_trouble.hpp"

#include <gtest/gtest.h>

#include "postrider/testing.hpp"

namespace postrider::api {
namespace {

using namespace std::chrono_literals;

TEST(WriteTrouble, ADatabaseThatTakesNothingCountsForTenSeconds) {
  for (const ErrorCode code : {ErrorCode::unavailable, ErrorCode::storage_full, ErrorCode::schema}) {
    ManualClock clock;
    WriteTrouble trouble(clock);
    EXPECT_FALSE(trouble.fresh());
    trouble.failed(Error(code, "no"));
    EXPECT_TRUE(trouble.fresh());
    clock.advance(10s - 1us);
    EXPECT_TRUE(trouble.fresh());
    clock.advance(1us);
    EXPECT_FALSE(trouble.fresh()) << "whoever is sent nothing would never hear that it works again";
  }
}

TEST(WriteTrouble, FaultsOfTheRequestAndLocksOfOthersSayNothingOfTheDatabase) {
  ManualClock clock;
  WriteTrouble trouble(clock);
  for (const ErrorCode code : {ErrorCode::invalid_argument, ErrorCode::conflict, ErrorCode::contention,
                               ErrorCode::timeout, ErrorCode::database}) {
    trouble.failed(Error(code, "no"));
  }
  EXPECT_FALSE(trouble.fresh());
}

}  // namespace
}  // namespace postrider::api
