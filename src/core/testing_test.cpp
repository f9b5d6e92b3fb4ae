// SPDX-License-Identifier: Apache-2.0
#include "postrider/testing.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace postrider::testing {
namespace {

using namespace std::chrono_literals;
using Counter = RecordingMetrics::Counter;

/// An await that misses its wake-up still finds what it waited for when its time is up, but late.
class Promptly {
 public:
  ~Promptly() {
    EXPECT_LT(std::chrono::steady_clock::now() - begin_, patience / 2) << "a wake-up was missed";
  }

 private:
  SteadyPoint begin_ = std::chrono::steady_clock::now();
};

constexpr Delivery first_delivery{Attempt{0}, Source::hot};

TEST(Signal, IsAwaitedAcrossThreads) {
  const Promptly promptly;
  Signal signal;
  EXPECT_FALSE(signal.await(1ms));
  std::jthread setter([&] { signal.set(); });
  EXPECT_TRUE(signal.await());
  EXPECT_TRUE(signal.is_set());
  setter.join();
  signal.reset();
  EXPECT_FALSE(signal.is_set());
}

TEST(RecordingListener, RecordsWhatItIsGivenThroughAnyCopy) {
  RecordingListener seen;
  const Listener listener = seen;
  const Event event = Event::json("T", "[1]");
  EXPECT_EQ(listener(event, first_delivery).kind(), Outcome::Kind::done);
  listener(Event::json("U", "[2]"), {Attempt{3}, Source::cold});
  ASSERT_EQ(seen.count(), 2U);
  EXPECT_EQ(seen.events()[0].id(), event.id());
  EXPECT_EQ(seen.received()[1].event.type(), "U");
  EXPECT_EQ(seen.received()[1].delivery.failed, Attempt{3});
  EXPECT_EQ(seen.received()[1].delivery.source, Source::cold);
}

TEST(RecordingListener, AnswersAsToldOnePlanAfterTheOther) {
  RecordingListener seen;
  const Listener listener = seen;
  const auto answer = [&] { return listener(Event::json("T", "1"), first_delivery); };
  seen.fail_next(2);
  seen.answer_next(0, Outcome::dead("never"));
  seen.answer_next(1, Outcome::retry_after(5s));
  seen.answer(Outcome::dead("from now on"));
  EXPECT_EQ(answer().reason(), "told to fail");
  EXPECT_EQ(answer().kind(), Outcome::Kind::failed);
  EXPECT_EQ(answer().delay(), 5s);
  EXPECT_EQ(answer().reason(), "from now on");
  EXPECT_EQ(answer().kind(), Outcome::Kind::dead);
  EXPECT_EQ(seen.count(), 5U) << "failures are recorded too";
}

TEST(RecordingListener, IsAwaitedAcrossThreads) {
  const Promptly promptly;
  RecordingListener seen;
  EXPECT_FALSE(seen.await(1, 1ms));
  std::vector<std::jthread> workers;
  for (int t = 0; t < 4; ++t) {
    workers.emplace_back([listener = Listener(seen)] {
      for (int i = 0; i < 250; ++i) listener(Event::json("T", "1"), first_delivery);
    });
  }
  EXPECT_TRUE(seen.await(1000));
  EXPECT_EQ(seen.count(), 1000U);
}

TEST(RecordingMetrics, CountsEverything) {
  RecordingMetrics recorded;
  MetricsExporter& metrics = recorded;
  metrics.increment_hot_enqueued();
  metrics.increment_hot_dropped();
  metrics.increment_cold_enqueued();
  metrics.increment_dispatch_success();
  metrics.increment_dispatch_failure();
  metrics.increment_dispatch_dead();
  metrics.increment_flush_failures();
  metrics.increment_poll_failures();
  metrics.observe_queue_wait(1ms);
  metrics.observe_listener_time(1ms);
  for (const Counter counter :
       {Counter::hot_enqueued, Counter::hot_dropped, Counter::cold_enqueued, Counter::dispatch_success,
        Counter::dispatch_failure, Counter::dispatch_dead, Counter::flush_failures, Counter::poll_failures,
        Counter::queue_waits, Counter::listener_runs}) {
    EXPECT_EQ(recorded.get(counter), 1U) << static_cast<int>(counter);
  }
  metrics.increment_stale_completions(4);
  metrics.observe_flush(5, 1ms);
  metrics.observe_claim(6, 1ms);
  EXPECT_EQ(recorded.get(Counter::stale_completions), 4U);
  EXPECT_EQ(recorded.get(Counter::flushes), 1U);
  EXPECT_EQ(recorded.get(Counter::flushed_events), 5U);
  EXPECT_EQ(recorded.get(Counter::claims), 1U);
  EXPECT_EQ(recorded.get(Counter::claimed_events), 6U);
  metrics.record_queue_depths(7, 8);
  metrics.record_in_flight(9);
  metrics.record_oldest_lag(10s);
  EXPECT_EQ(recorded.hot_depth(), 7U);
  EXPECT_EQ(recorded.cold_depth(), 8U);
  EXPECT_EQ(recorded.in_flight(), 9U);
  EXPECT_EQ(recorded.oldest_lag(), 10s);
}

TEST(RecordingMetrics, IsAwaitedAcrossThreads) {
  const Promptly promptly;
  RecordingMetrics metrics;
  EXPECT_FALSE(metrics.await(Counter::dispatch_success, 1, 1ms));
  EXPECT_TRUE(metrics.await(Counter::dispatch_success, 0));
  std::vector<std::jthread> workers;
  for (int t = 0; t < 4; ++t) {
    workers.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) metrics.increment_dispatch_success();
    });
  }
  // Await each step on the way, so that awaiting and counting meet in many orders.
  for (std::uint64_t n = 1; n <= 4000; n += 7) ASSERT_TRUE(metrics.await(Counter::dispatch_success, n));
  EXPECT_TRUE(metrics.await(Counter::dispatch_success, 4000));
}

}  // namespace
}  // namespace postrider::testing
