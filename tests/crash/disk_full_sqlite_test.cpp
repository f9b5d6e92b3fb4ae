// SPDX-License-Identifier: Apache-2.0
// SQLite on a disk that is full, and then has room again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "postrider/open.hpp"
#include "postrider/postrider.hpp"
#include "postrider/testing.hpp"
#include "support/small_disk.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;
using testing::RecordingListener;
using testing::RecordingMetrics;

class DiskFull : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = disk_.mount("2m"); !why.empty()) {
      std::cerr << "\n*** DiskFull is SKIPPED: a small file system cannot be mounted (" << why
                << "). Hint: run it as root.\n\n";
      GTEST_SKIP() << why;
    }
    storage_ = open("sqlite:" + disk_.file("shop.db"));
    storage_->migrate();
    auto tx = storage_->begin();
    tx.execute("create table shop_order (id text primary key)");
    tx.execute("create table small (n integer)");
    tx.execute("insert into small values (0)");
    tx.commit();
  }

  /// One order with its event.
  EventId place_order(Outbox& outbox, std::size_t bytes, const char* type = "OrderPlaced") {
    const Event event = Event::bytes(type, std::string(bytes, 'o'));
    auto tx = storage_->begin();
    tx.execute("insert into shop_order values (?)", event.id().view());
    outbox.publish(tx, event);
    tx.commit();
    return event.id();
  }

  /// True when it was, with an error that tells what to do.
  bool publish_until_refused(Outbox& outbox, std::size_t bytes, std::set<EventId>& committed) {
    for (int i = 0; i < 1000; ++i) {
      try {
        committed.insert(place_order(outbox, bytes));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::storage_full) << error.what();
        EXPECT_TRUE(error.retryable()) << error.what();
        EXPECT_FALSE(error.in_doubt()) << error.what();
        EXPECT_THAT(error.what(), ::testing::HasSubstr("Hint:"));
        return true;
      }
    }
    return false;
  }

  /// One page at a time.
  bool write_until_refused() {
    for (int i = 0; i < 1000; ++i) {
      try {
        auto tx = storage_->begin();
        tx.execute("update small set n = n + 1");
        tx.commit();
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::storage_full) << error.what();
        return true;
      }
    }
    return false;
  }

  void runs_full(Duration lease);

  SmallDisk disk_;
  std::unique_ptr<Storage> storage_;
};

void DiskFull::runs_full(Duration lease) {
  const RecordingListener listener;
  RecordingMetrics metrics;
  testing::Signal full;
  Outbox outbox(*storage_, {.poller_interval = 50ms, .lease = lease, .metrics = &metrics, .log = {}});
  outbox.on("OrderPlaced", listener);
  outbox.on("HeldOrderPlaced", [&](const Event& event, const Delivery& delivery) {
    if (!full.await()) throw std::runtime_error("the disk does not get full");
    return listener(event, delivery);
  });
  outbox.start();

  std::set<EventId> committed;
  committed.insert(place_order(outbox, 100));
  ASSERT_TRUE(metrics.await(RecordingMetrics::Counter::flushed_events, 1));

  // This one's listener runs when the disk is full: its result cannot be written.
  committed.insert(place_order(outbox, 100, "HeldOrderPlaced"));

  // The log grows until there is no room left, not for the smallest write.
  disk_.fill();
  int refused = 0;
  for (const std::size_t bytes : {20'000, 100}) refused += publish_until_refused(outbox, bytes, committed);
  EXPECT_EQ(refused, 2) << "the disk never got full";
  EXPECT_TRUE(write_until_refused());
  EXPECT_TRUE(listener.await(committed.size() - 1)) << "what was committed is delivered";
  full.set();

  // What was committed is delivered, though nothing can be written about it, and reading goes on.
  EXPECT_TRUE(listener.await(committed.size()));
  // The pauses between its attempts double from 20 ms on: after six of them more than a second has passed.
  ASSERT_TRUE(metrics.await(RecordingMetrics::Counter::flush_failures, 7))
      << "results should fail to be written";
  const OutboxCounts meanwhile = outbox.admin().counts();
  EXPECT_GE(meanwhile.pending, 1);
  EXPECT_EQ(meanwhile.pending + meanwhile.done, static_cast<std::int64_t>(committed.size()));
  EXPECT_TRUE(outbox.admin().find(*committed.begin()).has_value());
  EXPECT_TRUE(outbox.running());

  disk_.make_room();
  committed.insert(place_order(outbox, 20'000));
  EXPECT_TRUE(listener.await(committed.size()));
  EXPECT_TRUE(metrics.await(RecordingMetrics::Counter::flushed_events, committed.size()));
  outbox.stop();

  std::set<EventId> delivered;
  for (const Event& event : listener.events()) delivered.insert(event.id());
  EXPECT_EQ(delivered, committed);
  EXPECT_EQ(listener.count(), committed.size()) << "duplicates, though no process died";
  const OutboxCounts after = outbox.admin().counts();
  EXPECT_EQ(after.pending, 0);
  EXPECT_EQ(after.done, static_cast<std::int64_t>(committed.size()));
  auto tx = storage_->begin();
  EXPECT_EQ(tx.execute("select count(*) from shop_order").integer(0, 0),
            static_cast<std::int64_t>(committed.size()));
  EXPECT_EQ(tx.execute("pragma integrity_check").text(0, 0), "ok");
  tx.rollback();
  std::cout << "[ balance  ] sqlite, disk full: committed " << committed.size() << ", refused " << refused
            << ", delivered " << listener.count() << ", done " << after.done << std::endl;
}

TEST_F(DiskFull, RefusesToPublishDeliversWhatIsThereAndResumes) {
  runs_full(30s);
}

TEST_F(DiskFull, ALeaseThatEndsMeanwhileMakesNoDuplicate) {
  runs_full(500ms);
}

}  // namespace
}  // namespace postrider::test
