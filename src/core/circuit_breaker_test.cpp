// SPDX-License-Identifier: Apache-2.0
#include "core/circuit_breaker.hpp"

#include <gtest/gtest.h>

namespace postrider {
namespace {

using namespace std::chrono_literals;
using Permit = CircuitBreaker::Permit;
using State = CircuitBreaker::State;

struct CircuitBreakerTest : ::testing::Test {
  CircuitBreaker breaker{{.threshold = 3, .window = 10s, .reset = 30s}};
  SteadyPoint now{1000s};

  void fail() {
    ASSERT_EQ(breaker.try_acquire(now), Permit::granted);
    breaker.on_failure(now);
  }
  void succeed() {
    ASSERT_EQ(breaker.try_acquire(now), Permit::granted);
    breaker.on_success(now);
  }
  void open() {
    for (int i = 0; i < 3; ++i) fail();
    ASSERT_EQ(breaker.state(), State::open);
  }
};

TEST_F(CircuitBreakerTest, OpensAfterSoManyFailuresAndStaysSo) {
  fail();
  fail();
  EXPECT_EQ(breaker.state(), State::closed);
  fail();
  EXPECT_EQ(breaker.try_acquire(now), Permit::open);
  EXPECT_EQ(breaker.reopens_at(), now + 30s);
  EXPECT_EQ(breaker.try_acquire(now + 30s - 1ns), Permit::open);
}

TEST_F(CircuitBreakerTest, FewFailuresAmongManySuccessesDoNotOpenIt) {
  for (int i = 0; i < 50; ++i) {
    fail();
    succeed();
    succeed();
  }
  EXPECT_EQ(breaker.state(), State::closed);
}

TEST_F(CircuitBreakerTest, OldFailuresAreForgotten) {
  fail();
  fail();
  now += 11s;
  fail();
  EXPECT_EQ(breaker.state(), State::closed);
}

TEST_F(CircuitBreakerTest, HazardL11OneProbeThenARamp) {
  open();
  now += 30s;
  ASSERT_EQ(breaker.try_acquire(now), Permit::granted);
  EXPECT_EQ(breaker.try_acquire(now), Permit::busy) << "one probe, not all senders and the replay";
  breaker.on_success(now);
  std::size_t at_once = 0;
  while (breaker.try_acquire(now) == Permit::granted) ++at_once;
  EXPECT_EQ(at_once, 2U);
  breaker.on_success(now);
  EXPECT_EQ(breaker.state(), State::ramp);
  breaker.on_success(now);
  for (int i = 0; i < 6; ++i) succeed();
  EXPECT_EQ(breaker.state(), State::closed);
}

TEST_F(CircuitBreakerTest, AFailedProbeOrRampOpensItAgain) {
  open();
  now += 30s;
  fail();
  EXPECT_EQ(breaker.try_acquire(now), Permit::open);
  now += 30s;
  succeed();
  EXPECT_EQ(breaker.state(), State::ramp);
  fail();
  EXPECT_EQ(breaker.state(), State::open);
}

TEST_F(CircuitBreakerTest, AProbeThatSaysNothingLetsTheNextOneTry) {
  open();
  now += 30s;
  ASSERT_EQ(breaker.try_acquire(now), Permit::granted);
  breaker.on_neutral();
  EXPECT_EQ(breaker.try_acquire(now), Permit::granted);
}

TEST_F(CircuitBreakerTest, LateAnswersOfOldRequestsDoNotCount) {
  ASSERT_EQ(breaker.try_acquire(now), Permit::granted);  // a slow one
  open();
  breaker.on_success(now);
  EXPECT_EQ(breaker.state(), State::open);
}

}  // namespace
}  // namespace postrider
