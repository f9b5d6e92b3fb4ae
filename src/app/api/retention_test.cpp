// SPDX-License-Identifier: Apache-2.0
#include "app/api/retention.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "postrider/error.hpp"
#include "postrider/testing.hpp"

namespace postrider::api {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A number of old entries, and who asks for them.
class PurgedStore final : public EntryStore {
 public:
  std::vector<InsertedEntry> insert(std::span<const Entry> /*entries*/) override { return {}; }
  EntryPage find(const EntryQuery& /*query*/) override { return {}; }
  std::optional<StoredEntry> get(EntryId /*id*/) override { return std::nullopt; }
  std::int64_t count_before(TimePoint /*time*/) override { return old; }
  std::int64_t purge_before(TimePoint time, std::size_t limit) override {
    const std::lock_guard lock(mutex);
    times.push_back(time);
    ++calls;
    calls.notify_all();
    if (failing) throw Error(ErrorCode::unavailable, {.retryable = true}, "the database is away");
    const std::int64_t now = std::min(old.load(), static_cast<std::int64_t>(limit));
    old -= now;
    return now;
  }
  void await_calls(int count) {
    for (int now = calls; now < count; now = calls) calls.wait(now);
  }

  std::mutex mutex;
  std::vector<TimePoint> times;
  std::atomic<std::int64_t> old{0};
  std::atomic<int> calls{0};
  std::atomic<bool> failing{false};
};

TEST(PurgeEntries, GoesOnUntilThereAreNoneAndSaysHowFarItIs) {
  PurgedStore store;
  store.old = 2 * static_cast<std::int64_t>(purge_batch) + 7;
  std::vector<std::int64_t> seen;
  EXPECT_EQ(purge_entries(store, TimePoint{5s},
                          [&](std::int64_t removed) {
                            seen.push_back(removed);
                            return true;
                          }),
            1007);
  EXPECT_THAT(seen, ElementsAre(500, 1000, 1007));
  EXPECT_THAT(store.times, ::testing::Each(TimePoint{5s}));
}

TEST(PurgeEntries, CanBeEnded) {
  PurgedStore store;
  store.old = 5000;
  EXPECT_EQ(purge_entries(store, {}, [](std::int64_t removed) { return removed < 1000; }), 1000);
  EXPECT_EQ(store.old, 4000);
}

TEST(Retention, RemovesWhatIsTooOldAtTheStartAndOnceAMinute) {
  PurgedStore store;
  ManualClock clock;
  Retention retention(store, 24h, clock, {});
  store.old = 700;
  retention.start();
  store.await_calls(2);  // a full batch, and the rest
  ASSERT_TRUE(clock.await_waiters(1));
  EXPECT_EQ(retention.removed(), 700);
  EXPECT_EQ(store.times.front(), clock.now() - 24h);
  store.old = 1;
  clock.advance(60s);
  store.await_calls(3);
  ASSERT_TRUE(clock.await_waiters(1));
  EXPECT_EQ(retention.removed(), 701);
  retention.stop();
}

TEST(Retention, AnOutageIsToldOnceAndTriedAgain) {
  PurgedStore store;
  ManualClock clock;
  std::mutex mutex;
  std::vector<std::string> lines;
  Retention retention(store, 24h, clock, [&](LogLevel, std::string_view line) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(line);
  });
  store.failing = true;
  retention.start();
  store.await_calls(1);
  for (int minute = 1; minute <= 2; ++minute) {
    ASSERT_TRUE(clock.await_waiters(1));
    clock.advance(60s);
    store.await_calls(minute + 1);
  }
  ASSERT_TRUE(clock.await_waiters(1));
  store.failing = false;
  store.old = 3;
  clock.advance(60s);
  store.await_calls(4);
  retention.stop();
  EXPECT_THAT(lines, ElementsAre(HasSubstr("the database is away"), HasSubstr("again"),
                                 HasSubstr("removed 3 old events")));
}

}  // namespace
}  // namespace postrider::api
