// SPDX-License-Identifier: Apache-2.0
#include "app/cli/change.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace postrider::cli {
namespace {

using namespace std::chrono_literals;

TEST(ChangeTest, GoesOnUntilSomebodyWantsTheEndAndKnowsHowFarItGot) {
  Change change;
  EXPECT_FALSE(change.reached().events) << "not counted";
  change.begin();
  EXPECT_TRUE(change.go_on(10));
  EXPECT_TRUE(change.interrupt()) << "it has begun, so that its step is waited for";
  EXPECT_EQ(change.reached().events, 10);
  EXPECT_FALSE(change.reached().ended_early);
  EXPECT_FALSE(change.go_on(20));
  change.done(20);
  EXPECT_EQ(change.reached().events, 20);
  EXPECT_TRUE(change.reached().ended_early);
}

TEST(ChangeTest, WhatWasDoneBeforeItCouldEndIsWhole) {
  Change change;
  change.begin();
  EXPECT_TRUE(change.interrupt());
  change.done(5);
  EXPECT_FALSE(change.reached().ended_early) << "nothing was left out";
}

TEST(ChangeTest, WhatHasNotBegunNeedNotBeWaitedFor) {
  Change change;
  EXPECT_FALSE(change.interrupt());
}

TEST(ChangeTest, OneOfTheTwoTellsHowItEnded) {
  Change slow;
  EXPECT_FALSE(slow.await_finish(0s)) << "given up";
  EXPECT_FALSE(slow.finish()) << "so the other one tells";
  Change quick;
  EXPECT_TRUE(quick.finish());
  EXPECT_TRUE(quick.await_finish(0s));
  Change late;
  std::thread ends([&] { EXPECT_TRUE(late.finish()); });
  EXPECT_TRUE(late.await_finish(60s));
  ends.join();
}

}  // namespace
}  // namespace postrider::cli
