// SPDX-License-Identifier: Apache-2.0
// Handlers that misuse their context, and a database that fails while they run.
#include <atomic>
#include <optional>
#include <semaphore>
#include <thread>

#include "integration/queue_effects_fixture.hpp"
#include "postrider/queue_admin.hpp"

namespace postrider {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class QueueTrouble : public QueueEffects {};
POSTRIDER_FOR_EACH_BACKEND(QueueTrouble);

TEST_P(QueueTrouble, WhatWasClaimedInVainIsNotHeldForEver) {
  open(true);
  EventManager manager{queue(), manager_options()};
  int calls = 0;
  manager.register_handler("h", EventType("T"), [&](const Event&) {
    if (++calls == 1) throw std::runtime_error("once");
  });
  queue().publish(event());
  EXPECT_EQ(manager.process_available(), 1U);
  clock_.advance(2s);
  fail_once_at("queue.states.load");
  EXPECT_THROW((void)manager.process_available(), Error) << "claimed, but what is stored cannot be read";
  EXPECT_EQ(manager.process_available(), 1U) << "it was given back";
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(only_entry().crashes, 0);
}

TEST_P(QueueTrouble, AResultThatCannotBeStoredAtOnceComesWithTheSettlement) {
  open(true);
  EventManager manager{queue(), manager_options()};
  int first = 0;
  int second = 0;
  manager.register_handler("a", EventType("T"), [&](const Event&) {
    if (++first == 1) throw std::runtime_error("once");
  });
  manager.register_handler("b", EventType("T"), [&](const Event&) {
    if (++second < 3) throw std::runtime_error("twice");
  });
  queue().publish(event());
  (void)manager.process_available();
  clock_.advance(1min);
  fail_once_at("queue.result.store");
  (void)manager.process_available();
  clock_.advance(1min);
  (void)manager.process_available();
  EXPECT_EQ(only_entry().status, QueueStatus::completed);
  EXPECT_EQ(first, 2) << "its success was not forgotten";
  EXPECT_EQ(second, 3);
}

TEST_P(QueueTrouble, WorkersSurviveADatabaseThatFailsBetweenHandlerAndResult) {
  open_with_effects();
  EventManager manager{queue(), manager_options()};
  manager.register_handler("h", EventType("T"), [&](const Event&, HandlerContext& context) {
    Transaction tx = storage().begin();
    leave(tx);
    context.complete(tx);
    tx.commit();
  });
  queue().publish(event());
  fail_once_at("queue.result.load");
  EXPECT_EQ(manager.process_available(), 1U);
  EXPECT_THAT(log_lines(), Contains(HasSubstr("goes back to the queue")));
  clock_.advance(1min);
  (void)manager.process_available();
  EXPECT_EQ(only_entry().status, QueueStatus::completed);
  EXPECT_EQ(count("effects"), 1) << "what was committed is known the next time";
}

TEST_P(QueueTrouble, CompleteWithoutACommitIsNoSuccess) {
  open_with_effects();
  EventManager manager{queue(), manager_options()};
  int calls = 0;
  manager.register_handler("h", EventType("T"), [&](const Event&, HandlerContext& context) {
    Transaction tx = storage().begin();
    leave(tx);
    context.complete(tx);
    if (++calls == 2) tx.commit();  // the first time it is forgotten
  });
  queue().publish(event());
  (void)manager.process_available();
  EXPECT_TRUE(log_entries().empty());
  EXPECT_EQ(count("event_queue", "last_error like '%not committed%'"), 1);
  clock_.advance(1min);
  (void)manager.process_available();
  EXPECT_EQ(only_entry().status, QueueStatus::completed);
  EXPECT_EQ(count("effects"), 1);
}

TEST_P(QueueTrouble, OnceIsOnceWithinOneCallToo) {
  open_with_effects();
  EventManager manager{queue(), manager_options()};
  std::vector<bool> ran;
  manager.register_handler("h", EventType("T"), [&](const Event&, HandlerContext& context) {
    for (int i = 0; i < 2; ++i) {
      Transaction tx = storage().begin();
      ran.push_back(context.once(tx, "task", [&](Tx& inside) { leave(inside); }));
      tx.commit();
    }
    // What was rolled back may be done again.
    for (int i = 0; i < 2; ++i) {
      Transaction tx = storage().begin();
      ran.push_back(context.once(tx, "other", [&](Tx& inside) { leave(inside); }));
      i == 0 ? tx.rollback() : tx.commit();
    }
  });
  queue().publish(event());
  (void)manager.process_available();
  EXPECT_THAT(ran, ::testing::ElementsAre(true, false, true, true));
  EXPECT_EQ(count("effects"), 2);
}

TEST_P(QueueTrouble, WhatIsStoredIsKnownAlsoAfterARelease) {
  open_with_effects();
  EventManager manager{queue(), manager_options()};
  manager.register_handler("effect", EventType("T"), [&](const Event&, HandlerContext& context) {
    Transaction tx = storage().begin();
    leave(tx);
    context.complete(tx);
    tx.commit();
  });
  bool released = false;
  manager.register_handler("release", EventType("T"), [&](const Event&, HandlerContext& context) {
    // From another thread: on this one the manager would not let it happen.
    if (!std::exchange(released, true)) std::thread([&] { queue().release(context.claim()); }).join();
  });
  queue().publish(event());
  (void)manager.process_available();
  EXPECT_EQ(only_entry().status, QueueStatus::completed);
  EXPECT_EQ(count("effects"), 1);
}

TEST_P(QueueTrouble, AnEndedTransactionIsRefusedWithAHint) {
  open(true);
  queue().publish(event());
  const QueuedEvent claimed = queue().poll().value();
  Transaction tx = storage().begin();
  tx.commit();
  EXPECT_EQ(code_of([&] { queue().publish(tx, event()); }), ErrorCode::not_in_transaction);
  EXPECT_EQ(code_of([&] { (void)queue().complete(tx, claimed.claim); }), ErrorCode::not_in_transaction);
  EXPECT_EQ(count("event_queue"), 1);
}

TEST_P(QueueTrouble, AHandlerMayHaveMoreAttemptsThanTheOthers) {
  open(true);
  EventManagerOptions options = manager_options();
  options.max_attempts = 2;
  EventManager manager{queue(), options};
  int calls = 0;
  manager.register_handler("patient", EventType("T"),
                           [&](const Event&) -> void {
                             ++calls;
                             throw std::runtime_error("always");
                           },
                           {.max_attempts = 4});
  queue().publish(event());
  for (int i = 0; i < 6; ++i) {
    (void)manager.process_available();
    clock_.advance(1min);
  }
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(only_entry().status, QueueStatus::completed_with_errors);
}

TEST_P(QueueTrouble, AHandlerCannotStartOrDriveItsOwnManager) {
  open(true);
  EventManager manager{queue(), manager_options()};
  std::vector<ErrorCode> codes;
  manager.register_handler("h", EventType("T"), [&](const Event&) {
    codes.push_back(code_of([&] { manager.start(); }));
    codes.push_back(code_of([&] { (void)manager.process_available(); }));
  });
  queue().publish(event());
  (void)manager.process_available();
  EXPECT_THAT(codes, ::testing::Each(ErrorCode::invalid_argument));
  EXPECT_EQ(codes.size(), 2U);
}

TEST_P(QueueTrouble, AnotherQueueObjectAndTheOperatorWakeTheWorkersToo) {
  open(true);
  EventManagerOptions options = manager_options();
  options.workers = 1;
  options.listen = false;
  EventManager manager{queue(), options};
  std::counting_semaphore<> handled{0};
  manager.register_handler("h", EventType("T"), [&](const Event&) { handled.release(); });
  manager.start();
  const auto other = make_queue(storage());
  other->publish(event());
  EXPECT_TRUE(handled.try_acquire_for(30s)) << "the clock stands still: nobody looks by himself";
  while (log_entries().empty()) std::this_thread::yield();
  EXPECT_EQ(QueueAdmin(storage()).replay({}), 1);
  EXPECT_TRUE(handled.try_acquire_for(30s));
  manager.stop();
}

TEST_P(QueueTrouble, ATransactionThatAHandlerLeavesOpenHoldsUpNothingButItsOwnEvent) {
  open();
  if (storage().kind() == BackendKind::sqlite) return;  // there an open transaction holds up every writer
  std::optional<Transaction> left_open;
  std::atomic<int> calls{0};
  std::binary_semaphore is_open{0};
  EventManager manager(queue(), manager_options());
  manager.register_handler("h", "T", [&](const Event& event, HandlerContext& context) {
    ++calls;
    if (event.payload() != "0") return;
    left_open.emplace(storage().begin());
    context.complete(*left_open);
    is_open.release();
  });
  manager.register_handler("other", "T", [](const Event&) {});
  manager.start();
  for (int i = 0; i < 20; ++i) queue().publish(event(std::to_string(i)));
  EXPECT_TRUE(metrics_.await(QueueCounter::queue_completed, 19));
  ASSERT_TRUE(is_open.try_acquire_for(30s)) << "the handler has completed it";
  EXPECT_EQ(count("event_queue", "status = 1"), 1);
  left_open->commit();
  EXPECT_TRUE(metrics_.await(QueueCounter::queue_completed, 20));
  manager.stop();
  EXPECT_EQ(calls, 20) << "what was completed in the transaction is not done again";
  EXPECT_EQ(count("event_log", "status = 2"), 20);
}

}  // namespace
}  // namespace postrider
