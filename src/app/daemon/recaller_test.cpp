// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/recaller.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "postrider/error.hpp"
#include "postrider/outbox.hpp"
#include "support/backend.hpp"
#include "support/eventually.hpp"

namespace postrider::daemon {
namespace {

using namespace std::chrono_literals;
using test::eventually;

class RecallerTest : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend());
    for (const char* name : {"hook", "other"}) parked_.add(name);
  }
  [[nodiscard]] Storage& storage() { return database_->storage(); }
  /// Events that were not taken with this error, to come again in four minutes.
  void put_off(int events, const std::string& error) {
    Outbox outbox(storage(), {.inline_dispatch = true});
    outbox.on_all([&](const Event&) { return Outcome::retry_after(4min, error); });
    outbox.start();
    Transaction tx = storage().begin();
    for (int i = 0; i < events; ++i) outbox.publish(tx, Event::json("T", "{}"));
    tx.commit();
  }
  [[nodiscard]] std::size_t waiting(const std::string& error) {
    return OutboxAdmin(storage()).pending({.error_contains = error, .delayed = true}, 10'000).size();
  }
  [[nodiscard]] Recaller recaller(std::function<void()> look = [] {}) {
    return {storage(), parked_, std::move(look), [this](LogLevel, std::string_view line) {
              const MutexLock lock(mutex_);
              lines_.emplace_back(line);
            }};
  }
  [[nodiscard]] std::size_t lines() {
    const MutexLock lock(mutex_);
    return lines_.size();
  }

  ManualClock clock_;
  ParkedSinks parked_{clock_};
  std::optional<test::TestDatabase> database_;
  Mutex mutex_;
  std::vector<std::string> lines_ POSTRIDER_GUARDED_BY(mutex_);
};
POSTRIDER_FOR_EACH_BACKEND(RecallerTest);

TEST_P(RecallerTest, RecallsWhatWaitsForThisSinkAndNothingElse) {
  if (IsSkipped() || HasFatalFailure()) return;
  put_off(450, "sink hook: refused; sink third: away");
  put_off(3, "sink other: refused");
  put_off(2, "sink hook refuses it: too large; sink third: away");
  {
    Outbox outbox(storage());
    Transaction tx = storage().begin();
    outbox.publish(tx, Event::builder("Planned").json("{}").deliver_at(Clock::system().now() + 1h).build());
    tx.commit();
  }
  std::atomic<int> looks = 0;
  Recaller recaller = this->recaller([&] { ++looks; });
  recaller.start();
  ASSERT_TRUE(clock_.await_waiters(1));
  EXPECT_EQ(waiting("sink hook: "), 450U) << "until it has taken an event";
  parked_.answered(0);
  EXPECT_TRUE(eventually([&] { return waiting("sink hook: ") == 0; }));
  EXPECT_TRUE(eventually([&] { return lines() == 1; }));
  EXPECT_GE(looks, 3) << "after each transaction";
  recaller.stop();
  EXPECT_EQ(waiting("sink other: "), 3U);
  EXPECT_EQ(waiting("refuses it"), 2U) << "attempts are counted, and come when their time has come";
  const auto planned = OutboxAdmin(storage()).pending({.types = {"Planned"}, .delayed = true});
  EXPECT_EQ(planned.size(), 1U);
  for (const OutboxRecord& record : OutboxAdmin(storage()).pending({.error_contains = "sink hook: "})) {
    EXPECT_EQ(record.attempts, Attempt{0});
    EXPECT_EQ(record.status, EventStatus::fresh);
  }
}

TEST_P(RecallerTest, TriesAgainWhenTheDatabaseFails) {
  if (IsSkipped() || HasFatalFailure()) return;
  put_off(300, "sink hook: refused");
  std::atomic<bool> failing = true;
  Recaller recaller = this->recaller([&] {
    if (failing) throw Error(ErrorCode::unavailable, "cannot claim", "no connection");
  });
  recaller.start();
  parked_.answered(0);
  ASSERT_TRUE(eventually([&] { return lines() == 1; }));
  ASSERT_TRUE(clock_.await_waiters(1));
  EXPECT_EQ(waiting("sink hook: "), 100U);
  failing = false;
  clock_.advance(Parking::between_recalls);
  EXPECT_TRUE(eventually([&] { return waiting("sink hook: ") == 0; }));
}

TEST_P(RecallerTest, EndsAfterTheTransactionThatIsUnderWayWhenItIsStoppedOrTheSinkHasGone) {
  if (IsSkipped() || HasFatalFailure()) return;
  put_off(700, "sink hook: refused");
  std::atomic<bool> stop = false;
  Recaller recaller = this->recaller([&] {
    if (stop) {
      parked_.close();
      return;
    }
    EXPECT_EQ(parked_.park(0, 1s), 1s);
    clock_.advance(Parking::flicker);
  });
  recaller.start();
  parked_.answered(0);
  ASSERT_TRUE(eventually([&] { return lines() == 1; }));
  ASSERT_TRUE(clock_.await_waiters(1));
  EXPECT_EQ(waiting("sink hook: "), 500U) << "it has gone";
  clock_.advance(1h);
  ASSERT_TRUE(clock_.await_waiters(1));
  EXPECT_EQ(waiting("sink hook: "), 500U) << "it is away still";
  stop = true;
  parked_.answered(0);
  ASSERT_TRUE(eventually([&] { return lines() == 2; }));
  recaller.stop();
  EXPECT_EQ(waiting("sink hook: "), 300U) << "it was stopped";
}

}  // namespace
}  // namespace postrider::daemon
