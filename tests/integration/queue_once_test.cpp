// SPDX-License-Identifier: Apache-2.0
// Tasks that are done once per event, in a handler and without a manager.
#include "integration/queue_effects_fixture.hpp"

namespace postrider {
namespace {

class QueueOnce : public QueueEffects {
 protected:
  std::int64_t effects_left() { return count("effects"); }
};
POSTRIDER_FOR_EACH_BACKEND(QueueOnce);

TEST_P(QueueOnce, ATaskThatThrewIsNotDoneEvenIfItsTransactionCommits) {
  open_with_effects();
  EventManager manager{queue(), manager_options()};
  int tries = 0;
  manager.register_handler("h", EventType("T"), [&](const Event&, HandlerContext& context) {
    Transaction tx = storage().begin();
    try {
      context.once(tx, "x", [&](Tx& mine) {
        if (++tries == 1) throw std::runtime_error("before the effect");
        leave(mine);
      });
    } catch (const std::runtime_error&) {
      tx.commit();
      throw;
    }
    tx.commit();
  });
  queue().publish(event());
  (void)manager.process_available();
  clock_.advance(1s);
  (void)manager.process_available();
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(effects_left(), 1);
  EXPECT_EQ(only_entry().status, QueueStatus::completed);
}

TEST_P(QueueOnce, TwiceInOneOpenTransactionIsOnce) {
  open_with_effects();
  EventManager manager{queue(), manager_options()};
  std::vector<bool> ran;
  manager.register_handler("h", EventType("T"), [&](const Event&, HandlerContext& context) {
    Transaction tx = storage().begin();
    for (int i = 0; i < 2; ++i) ran.push_back(context.once(tx, "x", [&](Tx& mine) { leave(mine); }));
    tx.commit();
  });
  queue().publish(event());
  (void)manager.process_available();
  EXPECT_EQ(ran, (std::vector<bool>{true, false}));
  EXPECT_EQ(effects_left(), 1);
}

TEST_P(QueueOnce, WhatWasRolledBackIsDoneAgain) {
  open_with_effects();
  EventManager manager{queue(), manager_options()};
  manager.register_handler("h", EventType("T"), [&](const Event&, HandlerContext& context) {
    for (const bool commit : {false, true, true}) {
      Transaction tx = storage().begin();
      context.once(tx, "x", [&](Tx& mine) { leave(mine); });
      commit ? tx.commit() : tx.rollback();
    }
  });
  queue().publish(event());
  (void)manager.process_available();
  EXPECT_EQ(effects_left(), 1);
  EXPECT_EQ(only_entry().status, QueueStatus::completed);
}

TEST_P(QueueOnce, ATaskInsideItselfIsRefused) {
  open_with_effects();
  EventManager manager{queue(), manager_options()};
  int runs = 0;
  manager.register_handler("h", EventType("T"), [&](const Event&, HandlerContext& context) {
    context.once("n", [&] {
      ++runs;
      EXPECT_EQ(code_of([&] { context.once("n", [&] { ++runs; }); }), ErrorCode::invalid_argument);
    });
  });
  queue().publish(event());
  (void)manager.process_available();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(only_entry().status, QueueStatus::completed);
}

TEST_P(QueueOnce, WithoutAManagerItHoldsFromClaimToClaim) {
  open_with_effects();
  queue().publish(event());
  const Claim first = queue().poll().value().claim;
  int runs = 0;
  EXPECT_TRUE(queue().once(first, "mail", [&] { ++runs; }));
  EXPECT_FALSE(queue().once(first, "mail", [&] { ++runs; }));
  {
    Transaction tx = storage().begin();
    EXPECT_TRUE(queue().once(tx, first, "row", [&](Tx& mine) { leave(mine); }));
    EXPECT_FALSE(queue().once(tx, first, "row", [&](Tx& mine) { leave(mine); }));
    tx.commit();
  }
  queue().retry(first, 0s, "something else has failed");
  const Claim second = queue().poll().value().claim;
  EXPECT_FALSE(queue().once(second, "mail", [&] { ++runs; }));
  Transaction tx = storage().begin();
  EXPECT_FALSE(queue().once(tx, second, "row", [&](Tx& mine) { leave(mine); }));
  tx.rollback();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(effects_left(), 1);
  EXPECT_EQ(code_of([&] { queue().once(first, "late", [] {}); }), ErrorCode::conflict);
}

TEST_P(QueueOnce, AHandlerCannotSettleItsEventBehindTheManagersBack) {
  open_with_effects();
  EventManager manager{queue(), manager_options()};
  manager.register_handler("a", EventType("T"), [&](const Event&, HandlerContext& context) {
    const Claim claim = context.claim();
    EXPECT_EQ(code_of([&] { queue().release(claim); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { queue().retry(claim, 1s); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { queue().finalize(claim); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { queue().fail(claim, "no"); }), ErrorCode::invalid_argument);
    Transaction tx = storage().begin();
    EXPECT_EQ(code_of([&] { queue().complete(tx, claim); }), ErrorCode::invalid_argument);
  });
  manager.register_handler("b", EventType("T"),
                           [](const Event&) { return EventHandledResult::unrecoverable_error("b failed"); });
  queue().publish(event());
  (void)manager.process_available();
  const LogEntry entry = only_entry();
  EXPECT_EQ(entry.status, QueueStatus::completed_with_errors);
  EXPECT_EQ(entry.results.size(), 2U);
}

TEST_P(QueueOnce, ARowLockedByTheHandlerItselfIsNotWaitedForForEver) {
  open();
  EventManager manager{queue(), manager_options()};
  std::optional<Duration> waited;
  manager.register_handler("h", EventType("T"), [&](const Event&, HandlerContext& context) {
    Transaction tx = storage().begin();
    context.complete(tx);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_THROW(context.once("x", [] {}), Error);
    waited = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begin);
    tx.commit();
  });
  queue().publish(event());
  (void)manager.process_available();
  ASSERT_TRUE(waited.has_value());
  EXPECT_LT(*waited, 20s) << "the server's own patience is 50 s, and more when it is tried again";
  EXPECT_EQ(only_entry().status, QueueStatus::completed);
}

TEST_P(QueueOnce, AHandlersTypeIsNeverEmpty) {
  open();
  EventManager manager{queue(), manager_options()};
  const auto nothing = [](const Event&) {};
  EXPECT_EQ(code_of([&] { manager.register_handler("h", EventType(std::string()), nothing); }),
            ErrorCode::invalid_argument);
  EXPECT_EQ(code_of([&] { manager.register_handler("h", EventType(std::string(200, 'x')), nothing); }),
            ErrorCode::invalid_argument);
  manager.register_handler_for_all("h", nothing);
}

}  // namespace
}  // namespace postrider
