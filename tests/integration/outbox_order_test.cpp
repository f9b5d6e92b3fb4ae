// SPDX-License-Identifier: Apache-2.0
// Order per key, hot and cold, across failures and nodes; and the two queues' precedence.
#include <algorithm>
#include <map>
#include <thread>
#include <vector>

#include "integration/outbox_fixture.hpp"

namespace postrider {
namespace {

class OutboxOrder : public OutboxTest {
 protected:
  /// The payloads of successful deliveries, per key, in order.
  class Book {
   public:
    void note(const Event& event) {
      const MutexLock lock(mutex_);
      lines_[event.ordering_key()].push_back(std::stoi(std::string(event.payload())));
    }
    std::map<std::string, std::vector<int>> lines() {
      const MutexLock lock(mutex_);
      return lines_;
    }

   private:
    Mutex mutex_;
    std::map<std::string, std::vector<int>> lines_ POSTRIDER_GUARDED_BY(mutex_);
  };

  static std::vector<int> count_to(int n) {
    std::vector<int> numbers(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) numbers[static_cast<std::size_t>(i)] = i;
    return numbers;
  }
};

TEST_P(OutboxOrder, EventsOfOneKeyFollowEachOtherOnTheHotPath) {
  open();
  Book book;
  Outbox outbox{*storage_, options()};
  outbox.on_all([&](const Event& event) { book.note(event); });
  start(outbox);
  constexpr int each = 30;
  for (int i = 0; i < each; ++i) {
    auto tx = storage_->begin();
    outbox.publish(tx, {keyed("a", i), keyed("b", i), keyed("c", i)});
    tx.commit();
  }
  ASSERT_TRUE(seen_.await(each * 3));
  for (const char* key : {"a", "b", "c"}) EXPECT_EQ(book.lines()[key], count_to(each)) << key;
}

TEST_P(OutboxOrder, AFailedKeyHoldsOnlyItselfBack) {
  open(true);
  Outbox outbox{*storage_, without_poller()};
  Book book;
  bool fail_a = true;
  outbox.on_all([&](const Event& event) {
    if (event.ordering_key() == "a" && event.payload() == "1" && fail_a) throw std::runtime_error("not now");
    book.note(event);
  });
  outbox.start();
  {
    auto tx = storage_->begin();
    outbox.publish(
        tx, {keyed("a", 0), keyed("a", 1), keyed("a", 2), keyed("b", 0), keyed("b", 1), keyed("a", 3)});
    tx.commit();
  }
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 6));
  EXPECT_EQ(book.lines()["a"], count_to(1));
  EXPECT_EQ(book.lines()["b"], count_to(2));
  EXPECT_EQ(outbox.poll(), 0U) << "2 and 3 must wait for 1";
  publish(outbox, keyed("a", 4));  // a late one must not overtake either
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 7));
  EXPECT_EQ(book.lines()["a"], count_to(1));

  fail_a = false;
  clock_.advance(90s);
  EXPECT_EQ(outbox.poll(), 4U) << "the whole run at once";
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 11));
  EXPECT_EQ(book.lines()["a"], count_to(5));
}

TEST_P(OutboxOrder, HoldsAcrossTwoNodesAndFailures) {
  open();
  const auto other_storage = database_->open_another();
  OutboxOptions quick = options();
  quick.retry_base_delay = 5ms;
  quick.retry_max_delay = 20ms;
  quick.retry_max_attempts = 1000;
  quick.hot_queue_capacity = 8;  // overflow is part of the game
  quick.poller_interval = 50ms;
  Book book;
  std::atomic<unsigned> calls = 0;
  const auto listener = [&](const Event& event) {
    if (calls++ % 7 == 3) throw std::runtime_error("at times");
    book.note(event);
    seen_(event, {Attempt{0}, Source::hot});
  };
  Outbox one{*storage_, quick};
  Outbox two{*other_storage, quick};
  one.on_all(listener);
  two.on_all(listener);
  one.start();
  two.start();
  constexpr int each = 60;
  // The publishers take turns, so that there is one order to keep; the nodes do not wait for each other's
  // deliveries.
  for (int i = 0; i < each; ++i) {
    Storage& storage = i % 2 == 0 ? *storage_ : *other_storage;
    Outbox& outbox = i % 2 == 0 ? one : two;
    auto tx = storage.begin();
    outbox.publish(tx, {keyed("a", i), keyed("b", i)});
    tx.commit();
  }
  ASSERT_TRUE(seen_.await(each * 2));
  one.stop();
  two.stop();
  EXPECT_EQ(book.lines()["a"], count_to(each));
  EXPECT_EQ(book.lines()["b"], count_to(each));
}

TEST_P(OutboxOrder, TheAggregateIsTheKeyWhenAskedFor) {
  open();
  OutboxOptions ordered = options();
  ordered.order_by_aggregate = true;
  Outbox outbox{*storage_, ordered};
  start(outbox);
  const EventId id = publish(outbox, Event::builder("T").aggregate("Order", "7").json("{}").build());
  EXPECT_EQ(row(id)->ordering_key, "Order:7");
  ASSERT_TRUE(seen_.await(1));
}

/// As docs/outbox.md has it.
TEST_P(OutboxOrder, AListenerOfTheColdPathSeesTheKeyThatWasUsedAndNoDelay) {
  open(true);
  OutboxOptions ordered = without_poller();
  ordered.order_by_aggregate = true;
  Outbox outbox{*storage_, ordered};
  start(outbox);
  publish(outbox, Event::builder("T").aggregate("Order", "7").json("{}").build());
  ASSERT_TRUE(seen_.await(1));
  EXPECT_EQ(seen_.events()[0].ordering_key(), "") << "as published";
  publish(outbox,
          Event::builder("T").aggregate("Order", "8").deliver_at(clock_.now() + 1s).json("{}").build());
  clock_.advance(1s);
  EXPECT_EQ(outbox.poll(), 1U);
  ASSERT_TRUE(seen_.await(2));
  EXPECT_EQ(seen_.events()[1].ordering_key(), "Order:8") << "as stored";
  EXPECT_FALSE(seen_.events()[1].deliver_at().has_value());
}

TEST_P(OutboxOrder, ALongRunOfOneKeyIsWorkedOffByThePoller) {
  open();
  OutboxOptions quick = options();
  quick.poller_batch_size = 20;
  quick.poller_interval = 1h;  // the next run must come from continuing the key, not from waiting
  constexpr int length = 150;
  {
    Outbox publisher{*storage_, options()};
    std::vector<Event> events;
    for (int i = 0; i < length; ++i) events.push_back(keyed("k", i));
    auto tx = storage_->begin();
    publisher.publish(tx, events);
    tx.commit();
  }
  Book book;
  Outbox outbox{*storage_, quick};
  outbox.on_all([&](const Event& event) { book.note(event); });
  start(outbox);
  ASSERT_TRUE(seen_.await(length));
  EXPECT_EQ(book.lines()["k"], count_to(length));
}

TEST_P(OutboxOrder, SeveralLongRunsNeverWaitForADeferralToEnd) {
  open(true);  // time stands still: what is deferred comes back only by being asked for
  OutboxOptions quick = options();
  quick.poller_batch_size = 20;
  constexpr int length = 120;
  const std::vector<std::string> keys{"a", "b", "c", "d"};
  {
    Outbox publisher{*storage_, options()};
    std::vector<Event> events;
    for (int i = 0; i < length; ++i) {
      for (const std::string& key : keys) events.push_back(keyed(key, i));
    }
    auto tx = storage_->begin();
    publisher.publish(tx, events);
    tx.commit();
  }
  Book book;
  Outbox outbox{*storage_, quick};
  outbox.on_all([&](const Event& event) { book.note(event); });
  start(outbox);
  ASSERT_TRUE(seen_.await(keys.size() * length));
  for (const std::string& key : keys) EXPECT_EQ(book.lines()[key], count_to(length)) << key;
}

TEST_P(OutboxOrder, TwoHotThenOneCold) {
  open();
  testing::Signal entered;
  testing::Signal go;
  OutboxOptions single = without_poller();
  single.workers = 1;
  Outbox outbox{*storage_, single};
  std::string order;
  outbox.on("Gate", [&](const Event&) {
    entered.set();
    EXPECT_TRUE(go.await());
  });
  outbox.on("T", [&](const Event&, const Delivery& delivery) {
    order += delivery.source == Source::hot ? 'h' : 'c';
  });
  {
    Outbox publisher{*storage_, options()};
    auto tx = storage_->begin();
    for (int i = 0; i < 4; ++i) publisher.publish(tx, event());
    tx.commit();
  }
  outbox.start();
  publish(outbox, event("Gate"));
  ASSERT_TRUE(entered.await());
  EXPECT_EQ(outbox.poll(), 4U);
  {
    auto tx = storage_->begin();
    for (int i = 0; i < 6; ++i) outbox.publish(tx, event());
    tx.commit();
  }
  go.set();
  ASSERT_TRUE(metrics_.await(Counter::flushed_events, 11));
  EXPECT_EQ(order, "hhchhchhcc");
}

POSTRIDER_FOR_EACH_BACKEND(OutboxOrder);

}  // namespace
}  // namespace postrider
