// SPDX-License-Identifier: Apache-2.0
// The management verbs, and what a person who uses them sees.
#include <functional>
#include <thread>

#include "integration/relay_fixture.hpp"

namespace postrider {
namespace {

using ::testing::HasSubstr;

class RelayIsLookedAfter : public RelayTest {};
POSTRIDER_FOR_EACH_BACKEND(RelayIsLookedAfter);

TEST_P(RelayIsLookedAfter, ResumeResetAndWakeEndAPauseAfterAFailure) {
  const auto other = database_->open_another();
  RelayAdmin elsewhere(*other);
  Relay relay(storage(), options("a"));
  relay.add({.name = "all"}, latch("p"),
            {.retry_policy = std::make_shared<ExponentialBackoffRetryPolicy>(30s, 60s)});
  relay.run_once();
  const PairSelector pair = PairSelector::pair("all", "p");
  const std::vector<std::function<void()>> verbs{[&] { relay.admin().resume(pair); },
                                                 [&] { relay.admin().reset(pair); },
                                                 [&] { elsewhere.resume(pair); },
                                                 [&] {
                                                   elsewhere.pause(pair);
                                                   elsewhere.resume(pair);  // before its leader looks
                                                 },
                                                 [&] { relay.wake(); }};
  for (const bool away : {false, true}) {
    for (std::size_t i = 0; i < verbs.size(); ++i) {
      SCOPED_TRACE(i);
      latch("p")->answer([&](auto) {
        return away ? PublishResult::unavailable(0, "away") : PublishResult::refused(0, "bad");
      });
      append(1);
      EXPECT_EQ(relay.run_once(), 0U);
      ASSERT_TRUE(relay.backoff("all", "p")->retrying);
      EXPECT_FALSE(relay.backoff("all", "p")->backing_off);
      EXPECT_GE(*relay.backoff("all", "p")->until, clock_.now() + 10s);
      EXPECT_EQ(*relay.backoff("all", "p")->until, clock_.now() + relay.backoff("all", "p")->delay);
      latch("p")->answer({});
      EXPECT_EQ(relay.run_once(), 0U) << "a look at the database is no reason";
      append(1);
      EXPECT_EQ(relay.run_once(), 0U) << "nor is an event";
      verbs[i]();
      EXPECT_EQ(relay.run_once(), 2U);
      EXPECT_FALSE(relay.backoff("all", "p")->retrying);
      EXPECT_EQ(status("all", "p").last_error, "");
    }
  }
  EXPECT_EQ(latch("p")->positions(), range(1, 20)) << "each once";
}

TEST_P(RelayIsLookedAfter, ResumeEndsAPauseAtOnceWithThreads) {
  open(false);
  RelayOptions slow = options("a");
  slow.heartbeat = 100s;  // nobody waits for it
  slow.lease = 300s;
  Relay relay(storage(), slow);
  relay.add({.name = "all"}, latch("p"),
            {.polling_interval = 100s,
             .retry_policy = std::make_shared<ExponentialBackoffRetryPolicy>(100s, 200s)});
  latch("p")->answer([](auto) { return PublishResult::refused(0, "bad"); });
  append(1);
  relay.start();
  const auto failed = [&] { return status("all", "p").error_count == 1; };
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  while (!failed() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  ASSERT_TRUE(failed());
  latch("p")->answer({});
  const auto other = database_->open_another();
  // The database of the others cannot tell other processes.
  (backend() == "postgres" ? RelayAdmin(*other) : admin()).reset(PairSelector::all());
  EXPECT_TRUE(latch("p")->await(1));
}

TEST_P(RelayIsLookedAfter, APauseInThisProcessIsHeardBeforeItReturns) {
  open(false);
  Relay relay(storage(), options("a"));
  relay.add({.name = "all"}, latch("paused"), {.polling_interval = 1ms});
  relay.add({.name = "all"}, latch("other"), {.polling_interval = 1ms});
  relay.start();
  const PairSelector pair = PairSelector::pair("all", "paused");
  std::size_t appended = 0;
  for (int round = 0; round < 50; ++round) {
    SCOPED_TRACE(round);
    appended = static_cast<std::size_t>(append(1));
    ASSERT_TRUE(latch("paused")->await(appended));
    relay.admin().pause(pair);
    append(1);
    ASSERT_TRUE(latch("other")->await(appended + 1)) << "which has seen it";
    ASSERT_EQ(latch("paused")->positions().size(), appended);
    relay.admin().resume(pair);
    ASSERT_TRUE(latch("paused")->await(++appended));
  }
}

TEST_P(RelayIsLookedAfter, MoveToGetsPastAnEventThatIsRefused) {
  append(5);
  Relay relay(storage(), options("a"));
  relay.add({.name = "all"}, latch("p"), {.max_failures = 1});
  latch("p")->answer([](std::span<const StoredEvent> events) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events[i].position() == Position{3}) return PublishResult::refused(i, "bad");
    }
    return PublishResult::all();
  });
  relay.run_once();
  ASSERT_EQ(status("all", "p").state, PairState::failed);
  relay.admin().move_to(PairSelector::pair("all", "p"), Position{3});
  EXPECT_EQ(status("all", "p").state, PairState::active);
  EXPECT_EQ(status("all", "p").last_error, "");
  EXPECT_EQ(relay.run_once(), 2U);
  EXPECT_EQ(latch("p")->positions(), (std::vector{Position{1}, Position{2}, Position{4}, Position{5}}));
  relay.admin().pause(PairSelector::all());
  relay.admin().move_to(PairSelector::all(), Position{3});
  EXPECT_EQ(status("all", "p").state, PairState::paused) << "somebody wants it so";
  EXPECT_EQ(relay.run_once(), 0U);
}

TEST_P(RelayIsLookedAfter, NothingIsMovedOrStartedBeyondTheHead) {
  append(5);
  Relay relay(storage(), options("a"));
  relay.add({.name = "all"}, latch("p"));
  relay.run_once();
  const auto refusal = [](const auto& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(refusal([&] { relay.admin().move_to(PairSelector::all(), Position{6}); }),
              HasSubstr("head is 5"));
  EXPECT_EQ(status("all", "p").position, Position{5});
  relay.admin().move_to(PairSelector::all(), Position{5});
  Relay late(storage(), options("b"));
  late.add({.name = "all"}, latch("q"), {.start = StartAt::after(Position{6})});
  EXPECT_THAT(refusal([&] { late.run_once(); }), HasSubstr("head is 5"));
  EXPECT_FALSE(admin().find("all", "q").has_value());
}

TEST_P(RelayIsLookedAfter, AReceiverThatIsAwayIsNotToldAsAnEventsFault) {
  append(1);
  Relay relay(storage(), options("a"));
  relay.add({.name = "all"}, latch("p"));
  latch("p")->answer([](auto) { return PublishResult::unavailable(0, "no route"); });
  relay.run_once();
  EXPECT_EQ(status("all", "p").last_error, "the receiver is unavailable: no route");
}

TEST_P(RelayIsLookedAfter, RefusalsReadWell) {
  Relay relay(storage(), options("a"));
  const auto refusal = [&](const std::string& topic, const std::string& publisher) {
    try {
      relay.add({.name = topic}, latch(publisher));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_THAT(refusal("", "p"), HasSubstr(": its name is empty"));
  EXPECT_THAT(refusal("t", ""), HasSubstr(": its name is empty"));
}

}  // namespace
}  // namespace postrider
