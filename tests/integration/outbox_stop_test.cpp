// SPDX-License-Identifier: Apache-2.0
// The end of an outbox, and what runs into it.
#include <thread>

#include "core/failpoint.hpp"
#include "integration/outbox_fixture.hpp"

namespace postrider {
namespace {

class OutboxStop : public OutboxTest {
 protected:
  void TearDown() override { failpoints::clear(); }
};

TEST_P(OutboxStop, HazardO6_APollThatRacesStopLeavesNothingLeased) {
  open(true);
  constexpr int rows = 5;
  for (int round = 1; round <= 5; ++round) {
    {
      Outbox elsewhere{*storage_, without_poller()};
      for (int i = 0; i < rows; ++i) publish(elsewhere, event());
    }
    Outbox outbox{*storage_, without_poller()};
    start(outbox);
    testing::Signal claimed;
    failpoints::set("outbox.claim.after", [&] {
      claimed.set();
      // Gives a stop() that does not wait for this poll the chance to overtake it.
      for (int i = 0; i < 1000 && outbox.running(); ++i) std::this_thread::yield();
    });
    std::thread poller([&] { EXPECT_EQ(outbox.poll(), static_cast<std::size_t>(rows)); });
    EXPECT_TRUE(claimed.await());
    outbox.stop();
    poller.join();
    failpoints::clear();

    // No time has passed: what was not delivered is free now, not only when the lease ends.
    Outbox next{*storage_, without_poller()};
    start(next);
    next.poll();
    next.stop();
    EXPECT_EQ(counts().done, rows * round);
    EXPECT_EQ(counts().pending, 0);
  }
  EXPECT_EQ(times(seen_).size(), seen_.count());
}

POSTRIDER_FOR_EACH_BACKEND(OutboxStop);

}  // namespace
}  // namespace postrider
