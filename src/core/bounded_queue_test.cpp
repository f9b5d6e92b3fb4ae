// SPDX-License-Identifier: Apache-2.0
#include "core/bounded_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>

#include "postrider/testing.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

RC_GTEST_PROP(Ring, BehavesLikeADeque, ()) {
  const auto capacity = *rc::gen::inRange<std::size_t>(1, 8);
  const auto pushes = *rc::gen::container<std::vector<bool>>(rc::gen::arbitrary<bool>());
  Ring<int> ring(capacity);
  std::deque<int> model;
  int next = 0;
  for (const bool push : pushes) {
    if (push && !ring.full()) {
      ring.push(next);
      model.push_back(next++);
    } else if (!push && !ring.empty()) {
      RC_ASSERT(ring.pop() == model.front());
      model.pop_front();
    }
    RC_ASSERT(ring.size() == model.size());
    RC_ASSERT(ring.empty() == model.empty());
    RC_ASSERT(ring.full() == (model.size() == capacity));
  }
  RC_ASSERT(ring.capacity() == capacity);
}

TEST(Ring, LetsGoOfWhatWasPopped) {
  Ring<std::shared_ptr<int>> ring(2);
  auto owned = std::make_shared<int>(1);
  ring.push(owned);
  ring.pop();
  EXPECT_EQ(owned.use_count(), 1);
}

TEST(BoundedQueue, TryPushFailsWhenFullOrClosed) {
  BoundedQueue<int> queue(2);
  EXPECT_TRUE(queue.try_push(1));
  EXPECT_TRUE(queue.try_push(2));
  EXPECT_FALSE(queue.try_push(3));
  std::vector<int> out;
  EXPECT_EQ(queue.drain(out), 2U);
  EXPECT_THAT(out, ElementsAre(1, 2));
  queue.close();
  EXPECT_FALSE(queue.try_push(4));
  EXPECT_FALSE(queue.push(4));
  EXPECT_EQ(queue.size(), 0U);
}

TEST(BoundedQueue, ClosingLetsPopsDrainWhatIsLeft) {
  BoundedQueue<int> queue(4);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue.try_push(i));
  queue.close();
  std::vector<int> out;
  EXPECT_TRUE(queue.pop_batch(out, 2, 1h)) << "no lingering after closing";
  EXPECT_THAT(out, ElementsAre(0, 1));
  EXPECT_TRUE(queue.pop_batch(out, 2, 1h));
  EXPECT_THAT(out, ElementsAre(0, 1, 2));
  EXPECT_FALSE(queue.pop_batch(out, 2, 1h));
}

TEST(BoundedQueue, ReopenedItTakesElementsAgain) {
  BoundedQueue<int> queue(4);
  queue.close();
  EXPECT_FALSE(queue.try_push(1));
  queue.reopen();
  EXPECT_TRUE(queue.try_push(2));
  std::vector<int> out;
  EXPECT_TRUE(queue.pop_batch(out, 4, 0s));
  EXPECT_THAT(out, ElementsAre(2));
}

TEST(BoundedQueue, CloseWakesPushersAndPoppers) {
  BoundedQueue<int> full(1);
  ASSERT_TRUE(full.try_push(0));
  BoundedQueue<int> empty(1);
  std::atomic<int> refused{0};
  std::vector<std::jthread> pool;
  for (int t = 0; t < 3; ++t) {
    pool.emplace_back([&] { refused += full.push(1) ? 0 : 1; });
    pool.emplace_back([&] {
      std::vector<int> out;
      refused += empty.pop_batch(out, 8, 1s) ? 0 : 1;
    });
  }
  full.close();
  empty.close();
  pool.clear();  // joins: hangs when somebody was not woken
  EXPECT_EQ(refused, 6);
  EXPECT_EQ(full.size(), 1U) << "what was in there stays";
}

TEST(BoundedQueue, LingersForMoreUntilTheTimeIsOver) {
  ManualClock clock;
  BoundedQueue<int> queue(10, clock);
  std::vector<int> out;
  testing::Signal done;
  std::jthread popper([&] {
    queue.pop_batch(out, 10, 1s);
    done.set();
  });
  ASSERT_TRUE(queue.push(1));
  ASSERT_TRUE(clock.await_waiters(1));
  clock.advance(999ms);
  EXPECT_FALSE(done.is_set());
  ASSERT_TRUE(queue.push(2));
  ASSERT_TRUE(queue.push(3));
  clock.advance(1ms);
  ASSERT_TRUE(done.await());
  EXPECT_THAT(out, ElementsAre(1, 2, 3));
}

TEST(BoundedQueue, AFullBatchEndsTheLinger) {
  ManualClock clock;  // never moves
  BoundedQueue<int> queue(10, clock);
  std::vector<int> out;
  std::jthread popper([&] { queue.pop_batch(out, 3, 1s); });
  ASSERT_TRUE(queue.push(1));
  ASSERT_TRUE(clock.await_waiters(1));
  ASSERT_TRUE(queue.push(2));
  ASSERT_TRUE(queue.push(3));
  ASSERT_TRUE(queue.push(4));
  popper.join();
  EXPECT_THAT(out, ElementsAre(1, 2, 3));
  EXPECT_EQ(queue.size(), 1U);
}

TEST(BoundedQueue, ClosingEndsTheLinger) {
  ManualClock clock;
  BoundedQueue<int> queue(10, clock);
  std::vector<int> out;
  std::jthread popper([&] { EXPECT_TRUE(queue.pop_batch(out, 3, 1s)); });
  ASSERT_TRUE(queue.push(1));
  ASSERT_TRUE(clock.await_waiters(1));
  queue.close();
  popper.join();
  EXPECT_THAT(out, ElementsAre(1));
}

TEST(BoundedQueue, ALingeringPopperMakesRoomForWaitingPushers) {
  ManualClock clock;
  BoundedQueue<int> queue(1, clock);
  std::vector<int> out;
  std::jthread popper([&] { queue.pop_batch(out, 3, 1s); });
  EXPECT_TRUE(queue.push(1) && queue.push(2) && queue.push(3));
  popper.join();
  EXPECT_THAT(out, ElementsAre(1, 2, 3));
}

TEST(BoundedQueue, MovesMoveOnlyElements) {
  BoundedQueue<std::unique_ptr<int>> queue(1);
  ASSERT_TRUE(queue.push(std::make_unique<int>(7)));
  std::vector<std::unique_ptr<int>> out;
  ASSERT_TRUE(queue.pop_batch(out, 1, 0us));
  EXPECT_EQ(*out.at(0), 7);
}

TEST(BoundedQueue, ManyThreadsLoseNothingAndKeepEachPushersOrder) {
  constexpr int pushers = 4;
  constexpr int each = 5000;
  BoundedQueue<std::pair<int, int>> queue(16);
  Mutex mutex;
  std::vector<std::pair<int, int>> all;
  std::atomic<int> disorder{0};
  {
    std::vector<std::jthread> poppers;
    for (int t = 0; t < 3; ++t) {
      poppers.emplace_back([&] {
        std::vector<std::pair<int, int>> mine;
        while (queue.pop_batch(mine, 7, 10us)) {
        }
        std::vector<int> last(pushers, -1);
        for (const auto& [from, number] : mine) {
          if (number <= last[static_cast<std::size_t>(from)]) ++disorder;
          last[static_cast<std::size_t>(from)] = number;
        }
        const MutexLock lock(mutex);
        all.insert(all.end(), mine.begin(), mine.end());
      });
    }
    {
      std::vector<std::jthread> pool;
      for (int from = 0; from < pushers; ++from) {
        pool.emplace_back([&, from] {
          for (int i = 0; i < each; ++i) ASSERT_TRUE(queue.push({from, i}));
        });
      }
    }
    queue.close();
  }
  EXPECT_EQ(disorder, 0);
  ASSERT_EQ(all.size(), std::size_t{pushers} * each);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end()) << "an element came out twice";
}

}  // namespace
}  // namespace postrider
