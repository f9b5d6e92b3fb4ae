// SPDX-License-Identifier: Apache-2.0
// What the queues may take in memory.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "core/failpoint.hpp"
#include "integration/outbox_fixture.hpp"

namespace postrider {
namespace {

constexpr std::size_t mebi = std::size_t{1} << 20;
constexpr std::size_t megabyte = 1'000'000;

class OutboxBytes : public OutboxTest {
 protected:
  void TearDown() override { failpoints::clear(); }

  static Event large(std::string name, const std::string& key = {}, std::size_t bytes = megabyte) {
    name.resize(bytes, ' ');
    EventBuilder builder = Event::builder("T");
    if (!key.empty()) builder.ordering_key(key);
    return builder.bytes(std::move(name)).build();
  }
  static std::vector<Event> many_large(std::size_t count) {
    std::vector<Event> events;
    for (std::size_t i = 0; i < count; ++i) events.push_back(large(std::to_string(i)));
    return events;
  }
  void publish_all(Outbox& outbox, const std::vector<Event>& events) {
    auto tx = storage_->begin();
    outbox.publish(tx, events);
    tx.commit();
  }
  /// By somebody who does not deliver.
  void leave_to_pollers(const std::vector<Event>& events) {
    Outbox publisher{*storage_, options()};
    publish_all(publisher, events);
  }
  /// Every event waits for `go_`; the first sets `entered_`.
  void hold_up(Outbox& outbox) {
    outbox.on_all([this](const Event& event, const Delivery& delivery) {
      entered_.set();
      EXPECT_TRUE(go_.await());
      return seen_(event, delivery);
    });
    outbox.start();
  }

  testing::Signal entered_;
  testing::Signal go_;
};

TEST_P(OutboxBytes, AHotQueueThatIsFullInBytesLeavesTheRestToThePoller) {
  open();
  OutboxOptions small = without_poller();
  small.hot_queue_bytes = 4 * mebi;
  Outbox outbox{*storage_, small};
  hold_up(outbox);
  const std::vector<Event> events = many_large(8);
  publish_all(outbox, events);
  EXPECT_EQ(metrics_.get(Counter::hot_enqueued), 4U);
  EXPECT_EQ(metrics_.get(Counter::hot_dropped), 4U);
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(row(events[i].id())->owner.empty(), i >= 4) << i;

  ASSERT_TRUE(entered_.await());  // workers have them all: no place is taken any more
  publish(outbox, event());
  EXPECT_EQ(metrics_.get(Counter::hot_enqueued), 5U) << "a small one fits beside them";
  publish(outbox, large("late"));
  EXPECT_EQ(metrics_.get(Counter::hot_dropped), 5U) << "what runs is in memory, too";

  go_.set();
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 5));
  publish_all(outbox, many_large(4));
  EXPECT_EQ(metrics_.get(Counter::hot_dropped), 5U) << "the room has come back";
  EXPECT_EQ(outbox.poll(), 5U);
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 14));
  EXPECT_EQ(times(seen_).size(), 14U);
}

TEST_P(OutboxBytes, ATransactionThatIsRolledBackGivesItsBytesBack) {
  open();
  OutboxOptions small = without_poller();
  small.hot_queue_bytes = 2 * mebi;
  Outbox outbox{*storage_, small};
  start(outbox);
  for (int i = 0; i < 3; ++i) {
    auto tx = storage_->begin();
    outbox.publish(tx, many_large(2));
    tx.rollback();
  }
  publish_all(outbox, many_large(2));
  EXPECT_EQ(metrics_.get(Counter::hot_dropped), 0U);
  ASSERT_TRUE(seen_.await(2));
}

TEST_P(OutboxBytes, AnEventThatIsLargerThanTheQueuesIsDelivered) {
  open();
  OutboxOptions small = without_poller();
  small.hot_queue_bytes = mebi;
  small.cold_queue_bytes = mebi;
  Outbox outbox{*storage_, small};
  hold_up(outbox);
  // With its names it has more bytes than the queue.
  publish_all(outbox, {large("hot", {}, mebi), large("cold 1", {}, mebi), large("cold 2", {}, mebi)});
  EXPECT_EQ(metrics_.get(Counter::hot_enqueued), 1U);
  EXPECT_EQ(metrics_.get(Counter::hot_dropped), 2U);
  EXPECT_EQ(outbox.poll(), 1U);
  EXPECT_EQ(outbox.poll(), 0U) << "one at a time";
  EXPECT_EQ(metrics_.get(Counter::claims), 1U) << "no room, no claim";
  go_.set();
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 2));
  EXPECT_EQ(outbox.poll(), 1U);
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 3));
  EXPECT_EQ(times(seen_).size(), 3U);
}

TEST_P(OutboxBytes, AClaimBringsNoMoreThanTheColdQueueMayHold) {
  open();
  leave_to_pollers(many_large(12));
  OutboxOptions small = without_poller();
  small.cold_queue_bytes = 4 * mebi;
  small.workers = 8;
  Outbox outbox{*storage_, small};
  hold_up(outbox);
  EXPECT_EQ(outbox.poll(), 4U) << "also the first, when nothing is known of the sizes";
  EXPECT_EQ(outbox.poll(), 0U);
  EXPECT_EQ(metrics_.get(Counter::claims), 1U) << "no room, no claim";
  go_.set();
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 4));
  EXPECT_EQ(outbox.poll(), 4U);
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 8));
  EXPECT_EQ(outbox.poll(), 4U);
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 12));
  EXPECT_EQ(times(seen_).size(), 12U);
}

TEST_P(OutboxBytes, WhatWaitsForItsResultToBeWrittenIsStillInMemory) {
  open();
  leave_to_pollers(many_large(4));
  testing::Signal may_write;
  failpoints::set("outbox.complete.before", [&] { EXPECT_TRUE(may_write.await()); });
  OutboxOptions small = without_poller();
  small.cold_queue_bytes = 2 * mebi;
  Outbox outbox{*storage_, small};
  start(outbox);
  EXPECT_EQ(outbox.poll(), 2U);
  ASSERT_TRUE(seen_.await(2));
  EXPECT_EQ(outbox.poll(), 0U);
  may_write.set();
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 2));
  EXPECT_EQ(outbox.poll(), 2U);
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 4));
}

// The clock stands still: what the poller does after its first look, it does because it was poked.

TEST_P(OutboxBytes, ThePollerSleepsWhileThereIsNoRoomAndGoesOnWhenThereIs) {
  open(true);
  constexpr std::size_t backlog = 9;
  leave_to_pollers(many_large(backlog));
  OutboxOptions small = options();
  small.cold_queue_bytes = 2 * mebi;
  small.workers = 2;
  Outbox outbox{*storage_, small};
  hold_up(outbox);
  ASSERT_TRUE(metrics_.await(Counter::claimed_events, 2));
  ASSERT_TRUE(entered_.await());
  EXPECT_TRUE(clock_.await_waiters(2)) << "the lease keeper sleeps, the poller does not";
  EXPECT_EQ(metrics_.get(Counter::claimed_events), 2U);
  go_.set();
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, backlog)) << seen_.count() << " were delivered";
  EXPECT_LE(metrics_.get(Counter::claims), backlog + 1) << "a claim brings something";
  EXPECT_EQ(times(seen_).size(), backlog);
}

TEST_P(OutboxBytes, ASmallEventThatLeavesIsEnoughToAskForALargeOne) {
  open(true);
  // After the large ones, what is expected does not fit beside the smaller one that runs, although that takes
  // less than half of the queue.
  std::vector<Event> events = many_large(2);
  events.push_back(large("slow", {}, 400'000));
  events.push_back(large("last"));
  leave_to_pollers(events);
  OutboxOptions small = options();
  small.cold_queue_bytes = mebi;
  Outbox outbox{*storage_, small};
  outbox.on_all([this](const Event& event, const Delivery& delivery) {
    if (event.payload().starts_with("slow")) {
      EXPECT_TRUE(go_.await());
    }
    return seen_(event, delivery);
  });
  outbox.start();
  ASSERT_TRUE(seen_.await(2));
  EXPECT_TRUE(metrics_.await(Counter::claimed_events, 3));
  EXPECT_TRUE(clock_.await_waiters(2));
  EXPECT_EQ(metrics_.get(Counter::claimed_events), 3U);
  go_.set();
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 4));
}

TEST_P(OutboxBytes, TheBytesStayBelowTheBoundsAndNothingIsLeftBehind) {
  open();
  constexpr std::size_t count = 30;
  constexpr std::size_t hot_fit = 3;
  constexpr std::size_t cold_fit = 2;
  OutboxOptions small = options();
  small.hot_queue_bytes = hot_fit * mebi;
  small.cold_queue_bytes = cold_fit * mebi;
  Outbox outbox{*storage_, small};
  std::atomic<std::uint64_t> hot_ended = 0;
  std::atomic<std::uint64_t> cold_ended = 0;
  std::atomic<bool> too_many = false;
  outbox.on_all([&](const Event& event, const Delivery& delivery) {
    // What has been queued, less what has ended by now: never more than what is in memory.
    const std::uint64_t hot = metrics_.get(Counter::hot_enqueued);
    const std::uint64_t cold = metrics_.get(Counter::cold_enqueued);
    if (hot > hot_ended + hot_fit || cold > cold_ended + cold_fit) too_many = true;
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    ++(delivery.source == Source::hot ? hot_ended : cold_ended);
    return seen_(event, delivery);
  });
  outbox.start();
  for (std::size_t i = 0; i < count; i += 6) publish_all(outbox, many_large(6));
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, count));
  EXPECT_FALSE(too_many);
  EXPECT_GE(cold_ended, 3U) << "of the first six";
  EXPECT_EQ(times(seen_).size(), count);
  EXPECT_EQ(counts().pending, 0);
}

TEST_P(OutboxBytes, KeysKeepTheirOrderWhereTheBytesRunOut) {
  open();
  constexpr int keys = 3;
  constexpr int each = 10;
  OutboxOptions small = options();
  small.hot_queue_bytes = 3 * mebi;
  small.cold_queue_bytes = 2 * mebi;
  Outbox outbox{*storage_, small};
  Mutex mutex;
  std::map<std::string, std::vector<int>> lines;
  outbox.on_all([&](const Event& event) {
    const MutexLock lock(mutex);
    lines[event.ordering_key()].push_back(std::stoi(std::string(event.payload().substr(0, 3))));
  });
  outbox.start();
  for (int i = 0; i < each; i += 2) {
    std::vector<Event> batch;
    for (int key = 0; key < keys; ++key) {
      for (int j = i; j < i + 2; ++j) batch.push_back(large(std::to_string(j), "k" + std::to_string(key)));
    }
    publish_all(outbox, batch);
  }
  ASSERT_TRUE(metrics_.await(Counter::dispatch_success, keys * each));
  outbox.stop();
  EXPECT_GT(metrics_.get(Counter::hot_dropped), 0U);
  std::vector<int> in_order;
  for (int i = 0; i < each; ++i) in_order.push_back(i);
  const MutexLock lock(mutex);
  for (int key = 0; key < keys; ++key) EXPECT_EQ(lines["k" + std::to_string(key)], in_order) << key;
  EXPECT_EQ(counts().pending, 0);
}

POSTRIDER_FOR_EACH_BACKEND(OutboxBytes);

}  // namespace
}  // namespace postrider
