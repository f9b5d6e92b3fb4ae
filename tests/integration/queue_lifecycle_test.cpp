// SPDX-License-Identifier: Apache-2.0
// The queue as the two seeds describe it: publish, poll, finalize, abandonment; EventBus.
#include <thread>

#include "integration/queue_fixture.hpp"
#include "postrider/error.hpp"
#include "postrider/event_bus.hpp"
#include "storage/queue_store.hpp"
#include "support/speechless.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class QueueLifecycle : public QueueTest {};
POSTRIDER_FOR_EACH_BACKEND(QueueLifecycle);

TEST_P(QueueLifecycle, PublishPollFinalize) {
  open(true);
  const QueueId id = queue()
                         .publish(Event::builder("OrderPlaced")
                                      .json(R"({"total": 12.50})")
                                      .aggregate("order", "7")
                                      .tenant("acme")
                                      .header("trace", "1")
                                      .build())
                         .id();
  EXPECT_EQ(count("event_queue", "status = 0 and attempts = 0"), 1);
  clock_.advance(1s);
  const std::optional<QueuedEvent> claimed = queue().poll();
  ASSERT_TRUE(claimed.has_value());
  EXPECT_EQ(claimed->claim.id, id);
  EXPECT_EQ(claimed->attempts, 1);
  EXPECT_EQ(claimed->crashes, 0);
  EXPECT_EQ(claimed->event->payload(), R"({"total": 12.50})");
  EXPECT_EQ(claimed->processing_started_at, clock_.now());
  EXPECT_EQ(count("event_queue", "status = 1 and attempts = 1"), 1);
  EXPECT_FALSE(queue().poll().has_value());
  clock_.advance(2s);
  EXPECT_EQ(queue().finalize(claimed->claim), Settled::applied);
  EXPECT_EQ(count("event_queue"), 0);

  const LogEntry entry = only_entry();
  EXPECT_EQ(entry.seq, LogSeq{1});
  EXPECT_EQ(entry.id, id);
  EXPECT_EQ(entry.status, QueueStatus::completed);
  EXPECT_EQ(entry.attempts, 1);
  EXPECT_EQ(entry.finalized_at, clock_.now());
  EXPECT_EQ(entry.processing_started_at, clock_.now() - 2s);
  EXPECT_EQ(entry.created_at, clock_.now() - 3s);
  ASSERT_TRUE(entry.event.has_value());
  EXPECT_EQ(entry.event->aggregate_id(), "7");
  EXPECT_EQ(entry.event->tenant_id(), "acme");
  EXPECT_EQ(entry.event->headers().at("trace"), "1");
  EXPECT_EQ(entry.event->payload(), R"({"total": 12.50})");
}

TEST_P(QueueLifecycle, HazardQ2FinalizeTwiceIsOneRow) {
  open();
  queue().publish(event());
  const Claim claim = queue().poll().value().claim;
  const std::vector<HandlerResult> errors{
      {.handler = "mail", .verdict = HandlerVerdict::unrecoverable_error, .error = "no such box"}};
  EXPECT_EQ(queue().finalize(claim, errors), Settled::applied);
  EXPECT_EQ(queue().finalize(claim, errors), Settled::repeated);
  const LogEntry entry = only_entry();
  EXPECT_EQ(entry.status, QueueStatus::completed_with_errors);
  EXPECT_EQ(entry.results, errors);
}

TEST_P(QueueLifecycle, TwoFinalizersAtOnceAreOneRow) {
  open();
  for (int round = 0; round < 20; ++round) {
    queue().publish(event());
    const Claim claim = queue().poll().value().claim;
    std::atomic<int> applied{0};
    std::atomic<int> repeated{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const Settled settled = queue().finalize(claim);
        if (settled == Settled::applied) ++applied;
        if (settled == Settled::repeated) ++repeated;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(applied, 1);
    EXPECT_EQ(repeated, 3);
  }
  EXPECT_EQ(count("event_log"), 20);
}

TEST_P(QueueLifecycle, AnUnknownIdIsAnErrorThatSaysSo) {
  open();
  try {
    (void)queue().finalize({QueueId{4711}, Token{1}});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("event 4711: neither the queue nor the log has this id"));
  }
}

TEST_P(QueueLifecycle, PastTheTimeoutTheSameEventComesAheadOfNewerOnes) {
  open(true);
  const QueueId first = queue().publish(event("1")).id();
  const Claim lost = queue().poll().value().claim;
  clock_.advance(1s);
  queue().publish(event("2"));
  clock_.advance(58s);
  EXPECT_EQ(queue().heartbeat(lost), true);
  clock_.advance(61s);
  const std::optional<QueuedEvent> again = queue().poll();
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->claim.id, first);
  EXPECT_EQ(again->attempts, 2);
  EXPECT_EQ(again->crashes, 1);
  // HazardQ1: whoever had it before can do nothing any more.
  EXPECT_FALSE(queue().heartbeat(lost));
  EXPECT_EQ(queue().finalize(lost), Settled::stale);
  EXPECT_EQ(queue().retry(lost, 0s), Settled::stale);
  EXPECT_EQ(queue().release(lost), Settled::stale);
  EXPECT_EQ(queue().finalize(again->claim), Settled::applied);
  EXPECT_EQ(queue().finalize(lost), Settled::stale);
  EXPECT_EQ(queue().poll()->event->payload(), "2");
}

TEST_P(QueueLifecycle, FivePollersAndOneRowHaveOneWinner) {
  open();
  for (int round = 0; round < 10; ++round) {
    queue().publish(event());
    std::atomic<int> winners{0};
    std::vector<std::thread> pollers;
    for (int i = 0; i < 5; ++i) {
      pollers.emplace_back([&] {
        if (const auto claimed = queue().poll()) {
          ++winners;
          (void)queue().finalize(claimed->claim);
        }
      });
    }
    for (std::thread& poller : pollers) poller.join();
    EXPECT_EQ(winners, 1);
  }
}

TEST_P(QueueLifecycle, InTheUsersTransactionOrNotAtAll) {
  open();
  {
    Transaction tx = storage().begin();
    queue().publish(tx, event());
    EXPECT_FALSE(queue().poll().has_value());
  }
  EXPECT_FALSE(queue().poll().has_value());
  Transaction tx = storage().begin();
  queue().publish(tx, event());
  tx.commit();
  EXPECT_TRUE(queue().poll().has_value());
}

TEST_P(QueueLifecycle, CompleteInTheUsersTransaction) {
  open();
  queue().publish(event());
  const Claim claim = queue().poll().value().claim;
  {
    Transaction tx = storage().begin();
    EXPECT_EQ(queue().complete(tx, claim), Settled::applied);
  }
  EXPECT_EQ(count("event_log"), 0);
  Transaction tx = storage().begin();
  EXPECT_EQ(queue().complete(tx, claim), Settled::applied);
  tx.commit();
  EXPECT_EQ(queue().finalize(claim), Settled::repeated);
  EXPECT_EQ(only_entry().status, QueueStatus::completed);
}

TEST_P(QueueLifecycle, PrioritiesDelaysAndDedupe) {
  open(true);
  queue().publish(event(R"("low")"));
  queue().publish(Event::builder("T").json(R"("later")").deliver_at(clock_.now() + 10s).build(),
                  {.priority = 9});
  const QueueId high = queue().publish(event(R"("high")"), {.priority = 5, .dedupe_key = "only one"}).id();
  const Published again = queue().publish(event(R"("again")"), {.dedupe_key = "only one"});
  EXPECT_TRUE(again.duplicate);
  EXPECT_EQ(again.id(), high);
  const auto payload = [&] { return std::string(queue().poll()->event->payload()); };
  EXPECT_EQ(payload(), R"("high")");
  EXPECT_EQ(payload(), R"("low")");
  EXPECT_FALSE(queue().poll().has_value());
  clock_.advance(10s);
  EXPECT_EQ(payload(), R"("later")");
}

TEST_P(QueueLifecycle, OptionsOutOfBoundsAreNamed) {
  open();
  const auto message = [&](auto change) -> std::string {
    QueueOptions options;
    change(options);
    try {
      EventQueue refused(storage(), options);
    } catch (const Error& error) {
      return error.what();
    }
    return "not refused";
  };
  EXPECT_THAT(message([](QueueOptions& o) { o.abandoned_timeout = 1ms; }),
              HasSubstr("abandoned_timeout = 1 ms"));
  EXPECT_THAT(message([](QueueOptions& o) { o.max_crashes = -1; }), HasSubstr("max_crashes = -1"));
  EXPECT_THROW(queue().publish(event(), {.priority = 10}), Error);
  EXPECT_THROW(queue().publish(std::span<const Event>{}), Error);
  EXPECT_THROW((void)queue().poll(0), Error);
  EXPECT_THROW((void)queue().poll(10'001), Error);
}

TEST_P(QueueLifecycle, AnExceptionWithoutAMessageIsAFailureNotTheEnd) {
  open(true);
  EventManager manager(queue(), manager_options());
  manager.register_handler("speechless", "T", [](const Event&) { throw test::Speechless{}; });
  queue().publish(event());
  EXPECT_EQ(manager.process_available(), 1U);
  EXPECT_EQ(count("event_queue", "status = 0 and last_error like '%an exception without a message%'"), 1);

  QueueOptions options;
  options.clock = &clock_;
  options.log = [](LogLevel, std::string_view) {};
  EventBus bus(storage(), options);
  EventRouter router;
  router.on("Bus", [](const Event&) { throw test::Speechless{}; });
  bus.publish(event("{}", "Bus"));
  EXPECT_TRUE(bus.process_one(router));
  EXPECT_EQ(only_entry().status, QueueStatus::failed);
}

TEST_P(QueueLifecycle, TheBusKeepsWhatWentWrongInTheLog) {
  open(true);
  EventBus bus(storage(), options_);
  EventRouter router;
  router.on("Thrown", [](const Event&) { throw std::runtime_error("no such customer"); });
  router.on("Odd", [](const Event&) { throw 7; });
  for (const char* type : {"Told", "Silent", "Thrown", "Odd"}) bus.publish(event("{}", type));
  EXPECT_TRUE(bus.finalize(bus.poll().value().id, false, "the printer is out of paper"));
  EXPECT_TRUE(bus.finalize(bus.poll().value().id, false));
  EXPECT_TRUE(bus.process_one(router));
  EXPECT_TRUE(bus.process_one(router));
  std::vector<std::string> errors;
  for (const LogEntry& entry : log_entries()) {
    EXPECT_EQ(entry.status, QueueStatus::failed);
    ASSERT_EQ(entry.results.size(), 1U);
    errors.push_back(entry.results[0].error);
  }
  EXPECT_THAT(errors, ::testing::ElementsAre("the printer is out of paper", "the handler failed",
                                             "no such customer", "an exception that is no std::exception"));
  bus.publish(event());
  const QueueId id = bus.poll().value().id;
  EXPECT_THROW(bus.finalize(id, true, "but it failed"), Error);
  EXPECT_TRUE(bus.finalize(id, true)) << "and is still ours to finalise";
}

TEST_P(QueueLifecycle, TheBus) {
  open(true);
  QueueOptions options;
  options.clock = &clock_;
  options.abandoned_timeout = EventBus::default_timeout;
  options.log = [](LogLevel, std::string_view) {};
  EventBus bus(storage(), options);
  std::vector<std::string> routed;
  EventRouter router;
  router.on("Good", [&](const Event& e) { routed.emplace_back(e.payload()); });
  router.on("Bad", [](const Event&) { throw std::runtime_error("no"); });
  EXPECT_THROW(router.on("Good", [](const Event&) {}), Error);

  bus.publish(event("1", "Good"));
  bus.publish(event("2", "Bad"));
  bus.publish(event("3", "Unknown"));
  while (bus.process_one(router)) {
  }
  EXPECT_THAT(routed, ElementsAre("1"));
  const std::vector<LogEntry> entries = log_entries();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].status, QueueStatus::completed);
  EXPECT_EQ(entries[1].status, QueueStatus::failed);
  EXPECT_EQ(entries[2].status, QueueStatus::failed);

  bus.publish(event("4", "Good"));
  const auto polled = bus.poll();
  ASSERT_TRUE(polled.has_value());
  clock_.advance(4min);
  EXPECT_FALSE(bus.poll().has_value());
  EXPECT_TRUE(bus.finalize(polled->id, true));
  EXPECT_TRUE(bus.finalize(polled->id, true)) << "idempotent";
  EXPECT_THROW(bus.finalize(QueueId{9999}, true), Error);

  bus.publish(event("5", "Good"));
  const auto slow = bus.poll();
  clock_.advance(5min + 1s);
  EventBus other(storage(), options);
  const auto taken = other.poll();
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->attempts, 2);
  EXPECT_FALSE(bus.finalize(slow->id, true)) << "it belongs to the other one now";
  EXPECT_TRUE(other.finalize(taken->id, true));
}

}  // namespace
}  // namespace postrider
