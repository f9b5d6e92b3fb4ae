// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "integration/stream_fixture.hpp"

namespace postrider {
namespace {

using Kind = CommandOutcome::Kind;

class StreamDecisionTest : public StreamTest {
 protected:
  /// Money in a wallet.
  static Projector<int> balance(const std::string& wallet) {
    return {.query = Query::tag("wallet", wallet),
            .apply = [](int& sum, const StoredEvent& event) { sum += std::stoi(std::string(event.data())); }};
  }
  static AppendEvent moved(const std::string& wallet, int amount) {
    return happened("Moved", {{"wallet", wallet}}, std::to_string(amount));
  }
  static CommandExecutorOptions without_pause(int attempts = 10) {
    class AtOnce final : public RetryPolicy {
     public:
      [[nodiscard]] Duration delay(Attempt, double) const override { return {}; }
    };
    static const AtOnce at_once;
    return {.max_attempts = attempts, .retry = &at_once};
  }
};
POSTRIDER_FOR_EACH_BACKEND(StreamDecisionTest);

TEST_P(StreamDecisionTest, CommutativeOnesAreAppendedWhateverHappens) {
  CommandExecutor executor(store());
  const CommandOutcome outcome = executor.execute([&](EventStore& there) {
    there.append({moved("1", 5)});  // somebody else, meanwhile
    return CommandResult::commutative({moved("1", 10)});
  });
  EXPECT_EQ(outcome.kind, Kind::appended);
  EXPECT_EQ(outcome.attempts, 1);
  EXPECT_EQ(outcome.appended, (Appended{Position{2}, Position{2}}));
}

TEST_P(StreamDecisionTest, ConditionalOnesAreDecidedAgainFromTheNewState) {
  store().append({moved("1", 10)});
  int disturbances = 2;
  const DecisionModel model(Query::tag("wallet", "1"));
  const CommandOutcome outcome = CommandExecutor(store(), without_pause()).execute([&](EventStore& there) {
    const auto seen = model.project(there, balance("1"));
    if (disturbances-- > 0) there.append({moved("1", -2)});
    return CommandResult::conditional({moved("1", -seen.state())}, model.to_append_condition(seen.cursor));
  });
  EXPECT_EQ(outcome.kind, Kind::appended);
  EXPECT_EQ(outcome.attempts, 3);
  EXPECT_FALSE(outcome.conflict.has_value());
  EXPECT_EQ(store().project(balance("1")).state(), 0) << "decided by what was there at last: 10 - 2 - 2";
}

TEST_P(StreamDecisionTest, AfterTooManyConflictsItSaysSo) {
  const CommandOutcome outcome = CommandExecutor(store(), without_pause(3)).execute([&](EventStore& there) {
    const auto seen = there.project(balance("1"));
    there.append({moved("1", 1)});
    return CommandResult::conditional({moved("1", 100)}, seen.condition());
  });
  EXPECT_EQ(outcome.kind, Kind::conflict);
  EXPECT_EQ(outcome.attempts, 3);
  EXPECT_EQ(outcome.conflict, (Conflict{Position{3}, "Moved"}));
  EXPECT_FALSE(outcome.is_done());
}

TEST_P(StreamDecisionTest, NothingToBeDoneIsAnAnswer) {
  const CommandOutcome outcome =
      CommandExecutor(store()).execute([](EventStore&) { return CommandResult::nothing("no money left"); });
  EXPECT_EQ(outcome.kind, Kind::nothing);
  EXPECT_EQ(outcome.reason, "no money left");
  EXPECT_EQ(store().head(), Position{0});
}

TEST_P(StreamDecisionTest, IdempotentByATagHappensOnce) {
  CommandExecutor executor(store());
  const Tag tag{"payment", "77"};
  const auto pay = [&](EventStore&) { return CommandResult::idempotent_by({moved("1", 5).with(tag)}, tag); };
  EXPECT_EQ(executor.execute(pay).kind, Kind::appended);
  const CommandOutcome again = executor.execute(pay);
  EXPECT_EQ(again.kind, Kind::already_done);
  EXPECT_EQ(again.conflict->position, Position{1});
  EXPECT_EQ(store().head(), Position{1});
  EXPECT_EQ(
      refusal([&] {
        executor.execute([&](EventStore&) { return CommandResult::idempotent_by({moved("1", 5)}, tag); });
      }),
      ErrorCode::invalid_argument)
      << "without the tag nobody would know";
}

TEST_P(StreamDecisionTest, ACommandIdIsUsedOnce) {
  CommandExecutor executor(store(), without_pause());
  store().append({moved("1", 10)});
  int runs = 0;
  const auto withdraw_all = [&](EventStore& there) {
    ++runs;
    const auto seen = there.project(balance("1"));
    if (seen.state() == 0) throw std::runtime_error("no money");  // as a repeat would find
    return CommandResult::conditional({moved("1", -seen.state())}, seen.condition());
  };
  EXPECT_EQ(executor.execute("c-1", withdraw_all).kind, Kind::appended);
  const CommandOutcome again = executor.execute("c-1", withdraw_all);
  EXPECT_EQ(again.kind, Kind::already_done);
  EXPECT_EQ(again.attempts, 0);
  EXPECT_EQ(runs, 1) << "the handler is not asked again";
  EXPECT_TRUE(store().exists(Query::tag("command_id", "c-1")));
  EXPECT_EQ(
      executor.execute("c-2", [&](EventStore&) { return CommandResult::commutative({moved("1", 1)}); }).kind,
      Kind::appended);
  EXPECT_EQ(refusal([&] { executor.execute("", withdraw_all); }), ErrorCode::invalid_argument);
}

TEST_P(StreamDecisionTest, TheSameCommandFromSeveralThreadsHappensOnce) {
  std::atomic<int> appended{0};
  std::atomic<int> already{0};
  in_parallel(8, [&](int) {
    CommandExecutor executor(store());
    for (int round = 0; round < 10; ++round) {
      const CommandOutcome outcome = executor.execute("c" + std::to_string(round), [&](EventStore& there) {
        const auto seen = there.project(balance("1"));
        return round % 2 == 0 ? CommandResult::conditional({moved("1", 1)}, seen.condition())
                              : CommandResult::commutative({moved("1", 1)});
      });
      EXPECT_TRUE(outcome.is_done()) << to_string(outcome.kind);
      ++(outcome.kind == Kind::appended ? appended : already);
    }
  });
  EXPECT_EQ(appended, 10);
  EXPECT_EQ(already, 70);
  EXPECT_EQ(store().project(balance("1")).state(), 10);
}

TEST_P(StreamDecisionTest, PausesBetweenAttemptsByTheClockWithJitter) {
  ManualClock clock;
  const ExponentialBackoffRetryPolicy policy(100ms, 1s);
  std::atomic<int> asked{0};
  CommandExecutor executor(store(), {.max_attempts = 3, .retry = &policy, .clock = &clock, .random = [&] {
                                       ++asked;
                                       return 0.5;
                                     }});
  std::optional<CommandOutcome> outcome;
  std::jthread running([&] {
    outcome = executor.execute([&](EventStore& there) {
      const auto seen = there.project(balance("1"));
      there.append({moved("1", 1)});
      return CommandResult::conditional({moved("1", 100)}, seen.condition());
    });
  });
  ASSERT_TRUE(clock.await_waiters(1));
  EXPECT_EQ(store().head(), Position{1});
  clock.advance(99ms);
  EXPECT_EQ(store().head(), Position{1}) << "not yet";
  clock.advance(1ms);
  ASSERT_TRUE(clock.await_waiters(1));
  EXPECT_EQ(store().head(), Position{2});
  clock.advance(200ms);
  running.join();
  EXPECT_EQ(outcome->kind, Kind::conflict);
  EXPECT_EQ(asked, 2);
}

TEST_P(StreamDecisionTest, WhatAHandlerThrowsEndsTheCommand) {
  EXPECT_THROW(
      CommandExecutor(store()).execute([](EventStore&) -> CommandResult { throw std::logic_error("bug"); }),
      std::logic_error);
  EXPECT_EQ(refusal([&] { CommandExecutor(store(), {.max_attempts = 0}); }), ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace postrider
