// SPDX-License-Identifier: Apache-2.0
#include "postrider/event_log.hpp"

#include <thread>

#include "integration/projection_fixture.hpp"

namespace postrider {
namespace {

class EventLogs : public ProjectionTest {};
POSTRIDER_FOR_EACH_BACKEND(EventLogs);

TEST_P(EventLogs, ReadsAndFinds) {
  finish(5);
  EventLog log{storage(), &clock_};
  EXPECT_EQ(log.head(), LogSeq{5});
  const LogPage page = log.read(LogSeq{1}, 2);
  ASSERT_EQ(page.entries.size(), 2U);
  EXPECT_EQ(page.entries[0].seq, LogSeq{2});
  EXPECT_EQ(page.scanned_to, LogSeq{3});
  EXPECT_EQ(log.read(LogSeq{0}, 100, {.types = {"Even"}}).entries.size(), 2U);
  EXPECT_EQ(log.find(QueueId{1004}).value().seq, LogSeq{4});
  EXPECT_THROW((void)log.read(LogSeq{0}, 0), Error);
  EXPECT_THROW((void)log.read(LogSeq{0}, 10'001), Error);
}

TEST_P(EventLogs, WaitEndsWithAnEntryOrWithTheTime) {
  finish(2);
  EventLog log{storage(), &clock_};
  EXPECT_EQ(log.wait(LogSeq{1}, 1h), LogSeq{2}) << "it is there already";
  EXPECT_EQ(log.wait(LogSeq{2}, 0s), LogSeq{2}) << "not above: the time was over";
  LogSeq found{};
  std::thread waiter([&] { found = log.wait(LogSeq{2}, 1h); });
  EXPECT_TRUE(clock_.await_waiters(1));
  finish(1);
  log.wake();  // the clock stands still
  waiter.join();
  EXPECT_EQ(found, LogSeq{3});
  std::thread poller([&] { found = log.wait(LogSeq{3}, 1h); });
  EXPECT_TRUE(clock_.await_waiters(1));
  finish(1);
  clock_.advance(100ms);  // and without a wake
  poller.join();
  EXPECT_EQ(found, LogSeq{4});
}

}  // namespace
}  // namespace postrider
