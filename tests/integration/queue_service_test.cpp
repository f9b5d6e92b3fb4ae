// SPDX-License-Identifier: Apache-2.0
// EventManager with its threads: start and stop, heartbeats, waking, clocks.
#include <atomic>
#include <latch>
#include <thread>

#include "core/failpoint.hpp"
#include "integration/queue_fixture.hpp"
#include "postrider/error.hpp"
#include "postrider/event_log.hpp"

namespace postrider {
namespace {

class QueueService : public QueueTest {};
POSTRIDER_FOR_EACH_BACKEND(QueueService);

TEST_P(QueueService, RunsEverythingOnceAndDrains) {
  open();
  EventManager manager(queue(), manager_options());
  std::atomic<int> handled{0};
  manager.register_handler("h", "T", [&](const Event&) { ++handled; });
  manager.start();
  std::vector<Event> events;
  for (int i = 0; i < 500; ++i) events.push_back(event(std::to_string(i)));
  queue().publish(events);
  for (int i = 0; i < 20; ++i) queue().publish(event());
  EXPECT_TRUE(metrics_.await(QueueCounter::queue_completed, 520));
  manager.stop();
  EXPECT_EQ(handled, 520);
  EXPECT_EQ(count("event_queue"), 0);
  EXPECT_EQ(count("event_log"), 520);
}

TEST_P(QueueService, StopAndStartInAnyOrder) {
  open();
  EventManager manager(queue(), manager_options());
  manager.register_handler("h", "T", [](const Event&) {});
  manager.stop();
  for (int i = 0; i < 3; ++i) {
    manager.start();
    manager.start();
    EXPECT_TRUE(manager.running());
    EXPECT_THROW((void)manager.process_available(), Error);
    manager.stop();
    EXPECT_FALSE(manager.running());
  }
  queue().publish(event());
  EXPECT_EQ(manager.process_available(), 1U);
}

TEST_P(QueueService, ARetryIsTakenUpWhenItFallsDueNotWhenThePollComes) {
  open();
  EventManagerOptions options = manager_options();
  options.retry_policy.reset();
  options.retry_base_delay = options.retry_max_delay = 20ms;
  options.poll_interval = options.poll_interval_max = 1h;
  EventManager manager(queue(), options);
  std::atomic<int> calls{0};
  manager.register_handler("h", "T", [&](const Event&) {
    if (++calls < 3) throw std::runtime_error("not yet");
  });
  manager.start();
  queue().publish(event());
  EXPECT_TRUE(metrics_.await(QueueCounter::queue_completed, 1));
  EXPECT_EQ(calls, 3);
}

TEST_P(QueueService, KeysThatWaitDoNotHideTheOneThatDoesNot) {
  open();
  EventManagerOptions options = manager_options();
  options.poll_interval = options.poll_interval_max = 1h;
  EventManager manager(queue(), options);
  manager.register_handler("h", "T", [](const Event&) {});
  constexpr int keys = 9'000;  // several times as many as one claim looks at
  std::vector<Event> events;
  for (int i = 0; i < keys; ++i) {
    EventBuilder builder = Event::builder("T");
    builder.ordering_key("k" + std::to_string(i)).json("{}");
    if (i != 5'555) builder.deliver_at(std::chrono::system_clock::now() + 24h);
    events.push_back(builder.build());
  }
  queue().publish(events);
  manager.start();
  EXPECT_TRUE(metrics_.await(QueueCounter::queue_completed, 1));
  manager.stop();
  EXPECT_EQ(count("event_queue"), keys - 1);
}

TEST_P(QueueService, AStartThatFailsLeavesNothingRunning) {
  open();
  EventManager manager(queue(), manager_options());
  std::atomic<int> handled{0};
  manager.register_handler_for_all("h", [&](const Event&) { ++handled; });
  failpoints::set("queue.start", [] { throw std::runtime_error("no more threads"); });
  EXPECT_THROW(manager.start(), std::runtime_error);
  failpoints::clear();
  EXPECT_FALSE(manager.running());
  queue().publish(event());
  EXPECT_EQ(manager.process_available(), 1U) << "no worker has taken it";
  manager.start();
  EXPECT_TRUE(manager.running());
  queue().publish(event());
  EXPECT_TRUE(metrics_.await(QueueCounter::queue_completed, 2));
  manager.stop();
  EXPECT_EQ(handled, 2);
}

TEST_P(QueueService, StopGivesBackWhatItDidNotHandle) {
  open();
  EventManagerOptions options = manager_options();
  options.workers = 1;
  options.drain_timeout = 0ms;
  EventManager manager(queue(), options);
  std::latch entered(1);
  std::latch go(1);
  manager.register_handler("h", "T", [&](const Event&) {
    entered.count_down();
    go.wait();
  });
  std::vector<Event> events;
  for (int i = 0; i < 4; ++i) events.push_back(event());
  queue().publish(events);
  manager.start();
  entered.wait();
  std::thread stopper([&] { manager.stop(); });
  while (manager.running()) std::this_thread::yield();
  go.count_down();
  stopper.join();
  EXPECT_EQ(count("event_log"), 1);
  EXPECT_EQ(count("event_queue", "status = 0 and attempts = 0 and owner is null"), 3);
}

TEST_P(QueueService, StopInsideAHandlerIsRefused) {
  open();
  EventManager manager(queue(), manager_options());
  std::atomic<bool> refused{false};
  manager.register_handler("h", "T", [&](const Event&) {
    try {
      manager.stop();
    } catch (const Error&) {
      refused = true;
    }
  });
  manager.start();
  queue().publish(event());
  EXPECT_TRUE(metrics_.await(QueueCounter::queue_completed, 1));
  manager.stop();
  EXPECT_TRUE(refused);
}

TEST_P(QueueService, AHandlerMayStopAnotherManager) {
  open();
  EventManager other(queue(), manager_options());
  EventManager manager(queue(), manager_options());
  manager.register_handler("h", "T", [&](const Event&) { other.stop(); });
  queue().publish(event());
  EXPECT_EQ(manager.process_available(), 1U);
  EXPECT_EQ(only_entry().status, QueueStatus::completed) << "stop() must not have thrown";
}

TEST_P(QueueService, TheProcessLoopEndsWhenAsked) {
  open();
  EventManager manager(queue(), manager_options());
  manager.register_handler("h", "T", [](const Event&) {});
  std::jthread loop([&](const std::stop_token& token) { manager.run_process_loop(token); });
  queue().publish(event());
  EXPECT_TRUE(metrics_.await(QueueCounter::queue_completed, 1));
  loop.request_stop();
  loop.join();
  EXPECT_FALSE(manager.running());
}

TEST_P(QueueService, HazardQ1AHandlerLongerThanTheTimeoutRunsOnce) {
  open(true);
  EventManager manager(queue(), manager_options());
  std::atomic<int> calls{0};
  std::latch entered(1);
  std::latch go(1);
  manager.register_handler("slow", "T", [&](const Event&) {
    ++calls;
    entered.count_down();
    go.wait();
  });
  queue().publish(event());
  manager.start();
  entered.wait();
  auto other_storage = database_->open_another();
  const auto other = make_queue(*other_storage);
  for (int i = 0; i < 9; ++i) {
    // The heartbeat's thread, the fetcher and the cleaner wait for the clock.
    ASSERT_TRUE(clock_.await_waiters(3));
    clock_.advance(20s);
    ASSERT_TRUE(clock_.await_waiters(3));
    EXPECT_FALSE(other->poll().has_value()) << "after " << (i + 1) * 20 << " s";
  }
  go.count_down();
  EXPECT_TRUE(metrics_.await(QueueCounter::queue_completed, 1));
  manager.stop();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(only_entry().attempts, 1);
}

TEST_P(QueueService, HazardQ4NoPauseBetweenEvents) {
  open(true);  // the clock stands still: every pause would last for ever
  EventManagerOptions options = manager_options();
  options.workers = 1;
  options.batch_size = 7;
  EventManager manager(queue(), options);
  manager.register_handler("h", "T", [](const Event&) {});
  std::vector<Event> events;
  for (int i = 0; i < 100; ++i) events.push_back(event());
  queue().publish(events);
  manager.start();
  EXPECT_TRUE(metrics_.await(QueueCounter::queue_completed, 98)) << "claims that are not full may pause";
  queue().wake();
  EXPECT_TRUE(metrics_.await(QueueCounter::queue_completed, 100));
  manager.stop();
}

TEST_P(QueueService, HazardQ9WithoutSignalsPollingFindsTheEvents) {
  open(true);
  EventManagerOptions options = manager_options();
  options.listen = false;
  EventManager manager(queue(), options);
  manager.register_handler("h", "T", [](const Event&) {});
  manager.start();
  ASSERT_TRUE(clock_.await_waiters(3));
  auto other_storage = database_->open_another();
  const auto other = make_queue(*other_storage);
  other->publish(event());
  clock_.advance(100ms);
  EXPECT_TRUE(metrics_.await(QueueCounter::queue_completed, 1));
  manager.stop();
}

TEST_P(QueueService, AbandonedOnesFollowEachOtherWithoutAPause) {
  open(true);
  for (int i = 0; i < 5; ++i) queue().publish(event());
  EXPECT_EQ(queue().poll(5).size(), 5U);
  clock_.advance(61s);
  EventManagerOptions options = manager_options();
  options.listen = false;
  EventManager manager(queue(), options);
  manager.register_handler("h", "T", [](const Event&) {});
  manager.start();
  // One at a time; but nobody moves the clock, so no pause between two looks ends by itself.
  EXPECT_TRUE(metrics_.await(QueueCounter::queue_completed, 5));
  manager.stop();
}

TEST_P(QueueService, HazardQ10AWallClockThatJumpsAbandonsNothing) {
  open();  // the database's own clock
  ManualClock process;
  QueueOptions options;
  options.clock = &process;
  options.log = [](LogLevel, std::string_view) {};
  options.metrics = &metrics_;
  EventQueue jumping(storage(), options);
  EventManager manager(jumping, manager_options());
  std::latch entered(1);
  std::latch go(1);
  std::atomic<int> calls{0};
  manager.register_handler("h", "T", [&](const Event&) {
    ++calls;
    entered.count_down();
    go.wait();
  });
  jumping.publish(event());
  manager.start();
  entered.wait();
  process.set_wall(process.now() + 24h * 365);
  EXPECT_FALSE(queue().poll().has_value());
  process.set_wall(process.now() - 24h * 3650);
  EXPECT_FALSE(queue().poll().has_value());
  go.count_down();
  EXPECT_TRUE(metrics_.await(QueueCounter::queue_completed, 1));
  manager.stop();
  EXPECT_EQ(calls, 1);
}

TEST_P(QueueService, WhoeverWaitsForTheLogIsWokenByWhatEndsHere) {
  open(true);
  queue().publish(event());
  const Claim claim = queue().poll().value().claim;
  EventLog log{storage(), &clock_};
  LogSeq found{};
  std::thread waiter([&] { found = log.wait(LogSeq{0}, 1h); });
  EXPECT_TRUE(clock_.await_waiters(1));
  queue().finalize(claim);  // the clock stands still
  waiter.join();
  EXPECT_EQ(found, LogSeq{1});
}

}  // namespace
}  // namespace postrider
