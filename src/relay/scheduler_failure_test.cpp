// SPDX-License-Identifier: Apache-2.0
// Publishers that refuse, throw, are away or cannot count.
#include <stdexcept>

#include "relay/scheduler_fixture.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Counter = testing::RecordingMetrics::Counter;

TEST_F(SchedulerTest, TheLogSaysOnceThatAPublisherIsNotHealthyAndOnceThatItIs) {
  make();
  const auto latch = add("t", "p");
  add("u", "p");
  lead("t", "p");
  lead("u", "p");
  run();
  (void)logged();
  for (int round = 0; round < 2; ++round) {
    latch->set_healthy(false);
    for (int i = 0; i < 5; ++i) {
      append_and_run(1);
      clock_.advance(1s);
    }
    EXPECT_THAT(logged(), ElementsAre(HasSubstr("publisher 'p' is not healthy")));
    latch->set_healthy(true);
    for (int i = 0; i < 5; ++i) {
      clock_.advance(1s);
      append_and_run(1);
    }
    EXPECT_THAT(logged(), ElementsAre(HasSubstr("publisher 'p' is healthy again")));
  }
}

TEST_F(SchedulerTest, AResumeThatOvertakesTheWriteOfAStopIsNotForgotten) {
  make();
  PairOptions options;
  options.max_failures = 1;
  const auto latch = add("t", "p", options);
  lead("t", "p");
  run();
  latch->answer([](auto) { return PublishResult::refused(0, "bad"); });
  stream_.add(1);
  scheduler_->wake();
  while (scheduler_->step()) {
  }
  latch->answer({});
  // FAILED here, not yet in the database, where somebody raises the epoch.
  progress_.set({"t", "p"}, Epoch{2}, Position{0});
  scheduler_->reconcile({{.name = {"t", "p"}, .epoch = Epoch{2}}});
  run();
  EXPECT_EQ(latch->positions(), range(1, 1));
}

TEST_F(SchedulerTest, HazardS11OneBadEventStopsThePairWithItsReason) {
  make();
  PairOptions options;
  options.max_failures = 2;
  const auto latch = add("t", "p", options);
  const auto other = add("t", "q");
  latch->answer([](std::span<const StoredEvent> events) -> PublishResult {
    for (const StoredEvent& event : events) {
      if (event.position() == Position{3}) throw std::runtime_error("bad");
    }
    return PublishResult::all();
  });
  lead("t", "p");
  lead("t", "q");
  run();
  append_and_run(5);
  for (int i = 0; i < 20; ++i) {
    clock_.advance(60s);
    run();
  }
  EXPECT_EQ(latch->positions(), range(1, 2));
  EXPECT_EQ(other->positions(), range(1, 5)) << "its own failure, nobody else's";
  EXPECT_TRUE(progress_.row({"t", "p"}).failed);
  EXPECT_EQ(progress_.row({"t", "p"}).errors, 2);
  EXPECT_EQ(progress_.row({"t", "p"}).position, Position{2});
  latch->answer({});
  scheduler_->set_at_rest({}, scheduler_->ticket());  // resumed
  run();
  EXPECT_EQ(latch->positions(), range(1, 5));
}

TEST_F(SchedulerTest, HazardS11AFailureThatComesTooLateToBeWrittenDoesNotStopThePair) {
  make();
  PairOptions options;
  options.max_failures = 1;
  const auto latch = add("t", "p", options);
  latch->answer([](std::span<const StoredEvent>) { return PublishResult::refused(0, "bad"); });
  lead("t", "p");
  run();
  stream_.add(2);
  scheduler_->wake();
  while (scheduler_->step()) {  // the writer has yet to write that it has failed
  }
  latch->answer({});
  // An operator has moved it behind the bad one meanwhile.
  progress_.set({"t", "p"}, Epoch{2}, Position{1});
  scheduler_->reconcile({{.name = {"t", "p"}, .epoch = Epoch{2}, .position = Position{1}}});
  run();
  EXPECT_EQ(latch->positions(), range(2, 2));
}

TEST_F(SchedulerTest, APublisherWhoseHealthThrowsAnythingIsAskedAgain) {
  class Odd final : public Publisher {
   public:
    PublishResult publish_batch(std::span<const StoredEvent> events, const PublishContext&) override {
      taken += events.size();
      return PublishResult::all();
    }
    std::string name() const override { return "odd"; }
    bool healthy() const override {
      if (++asked == 1) throw 42;  // NOLINT(hicpp-exception-baseclass)
      return true;
    }
    mutable int asked = 0;
    std::size_t taken = 0;
  };
  make();
  const auto odd = std::make_shared<Odd>();
  scheduler_->add({.name = "t"}, odd, {});
  lead("t", "odd");
  run();
  append_and_run(3);
  clock_.advance(60s);
  run();
  EXPECT_EQ(odd->taken, 3U);
}

TEST_F(SchedulerTest, AFailureThatClaimsMoreThanItWasGivenHasDeliveredNothing) {
  make();
  const auto latch = add("t", "p");
  int calls = 0;
  latch->answer([&](std::span<const StoredEvent>) {
    return ++calls == 1 ? PublishResult::refused(static_cast<std::size_t>(-1), "off by one")
                        : PublishResult::all();
  });
  lead("t", "p");
  run();
  append_and_run(3);
  EXPECT_EQ(progress_.row({"t", "p"}).position, Position{0});
  clock_.advance(600s);
  run();
  EXPECT_EQ(progress_.row({"t", "p"}).position, Position{3});
}

TEST_F(SchedulerTest, HazardS11OrItGoesToTheDeadLettersAndThePairGoesOn) {
  make();
  PairOptions options;
  options.max_failures = 3;
  options.poison = PoisonAction::dead_letter;
  const auto latch = add("t", "p", options);
  latch->answer([](std::span<const StoredEvent> events) -> PublishResult {
    for (std::size_t i = 0; i < events.size(); ++i) {
      const auto position = static_cast<std::int64_t>(events[i].position());
      if (position == 3 || position == 5) return PublishResult::refused(i, "bad");
    }
    return PublishResult::all();
  });
  lead("t", "p");
  run();
  append_and_run(6);
  for (int i = 0; i < 20; ++i) {
    clock_.advance(60s);
    run();
  }
  EXPECT_THAT(latch->positions(), ElementsAre(Position{1}, Position{2}, Position{4}, Position{6}));
  EXPECT_THAT(progress_.row({"t", "p"}).dead, ElementsAre(Position{3}, Position{5}));
  EXPECT_EQ(progress_.row({"t", "p"}).position, Position{6});
  EXPECT_EQ(metrics_.get(Counter::relay_dead_letters), 2U);
}

TEST_F(SchedulerTest, AReceiverThatIsAwayLosesNothingToTheDeadLetters) {
  make();
  PairOptions options;
  options.max_failures = 1;
  options.poison = PoisonAction::dead_letter;
  const auto latch = add("t", "p", options);
  latch->answer([](auto) { return PublishResult::unavailable(0, "away"); });
  lead("t", "p");
  append_and_run(3);
  for (int i = 0; i < 10; ++i) {
    clock_.advance(90s);
    run();
  }
  EXPECT_THAT(progress_.row({"t", "p"}).dead, IsEmpty());
  EXPECT_EQ(progress_.row({"t", "p"}).errors, 0);
  latch->answer({});
  clock_.advance(90s);
  run();
  EXPECT_EQ(latch->positions(), range(1, 3));
}

}  // namespace
}  // namespace postrider
