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
class FakeStore final : public EntryStore {
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

TEST(ParseAge, KnowsItsUnits) {
  EXPECT_EQ(parse_age("--x", "90d"), 24h * 90);
  EXPECT_EQ(parse_age("--x", "2w"), 24h * 14);
  EXPECT_EQ(parse_age("--x", "12h"), 12h);
  EXPECT_EQ(parse_age("--x", "30m"), 30min);
  EXPECT_EQ(parse_age("--x", "1s"), 1s);
  EXPECT_EQ(parse_age("--x", "365000d"), 24h * 365'000);
  for (const char* wrong : {"", "d", "90", "0d", "-1d", "+1d", "1.5d", "90 d", "90days", "1y", "365001d",
                            "99999999999999999999d", "9223372036854775807w", " 1d"}) {
    EXPECT_THROW((void)parse_age("--x", wrong), Error) << wrong;
  }
}

TEST(ParseAge, NoAgeIsRefusedForWhatItWouldDo) {
  try {
    (void)parse_age("--older-than", "0s");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("every event would be removed"), std::string::npos);
  }
}

TEST(PurgeEntries, GoesOnUntilThereAreNoneAndSaysHowFarItIs) {
  FakeStore store;
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
  FakeStore store;
  store.old = 5000;
  EXPECT_EQ(purge_entries(store, {}, [](std::int64_t removed) { return removed < 1000; }), 1000);
  EXPECT_EQ(store.old, 4000);
}

TEST(Retention, RemovesWhatIsTooOldOnceAMinute) {
  FakeStore store;
  ManualClock clock;
  Retention retention(store, 24h, clock, {});
  store.old = 700;
  retention.start();
  ASSERT_TRUE(clock.await_waiters(1));
  EXPECT_EQ(store.calls, 0);
  clock.advance(60s);
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
  FakeStore store;
  ManualClock clock;
  std::mutex mutex;
  std::vector<std::string> lines;
  Retention retention(store, 24h, clock, [&](LogLevel, std::string_view line) {
    const std::lock_guard lock(mutex);
    lines.emplace_back(line);
  });
  store.failing = true;
  retention.start();
  for (int minute = 1; minute <= 3; ++minute) {
    ASSERT_TRUE(clock.await_waiters(1));
    clock.advance(60s);
    store.await_calls(minute);
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
