// SPDX-License-Identifier: Apache-2.0
// The event store loses its newest events while the relay runs: a backup is restored, or a standby without
// the last commits takes over. Then other events get the positions of those that were lost, and none of these
// may be missed because of what this process remembers.
#include "relay/scheduler_fixture.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SetBackTest : public SchedulerTest {
 protected:
  const PairName pair_{"t", "p"};

  /// Ten events, of which the backup has all, and twenty that it has not; all published.
  std::shared_ptr<Latch> publish_all() {
    make();
    stream_.add(10, "Old");
    const auto latch = add("t", "p");
    lead("t", "p");
    run();
    append_and_run(20, "Lost");
    EXPECT_EQ(progress_.row(pair_).position, Position{30});
    return latch;
  }
  /// The backup is restored, and its progress with it.
  void set_back() {
    stream_.set_back(10);
    progress_.set(pair_, Epoch{1}, Position{10});
  }
  /// What the leader does when it is told of doubts.
  void reconcile() {
    const auto row = progress_.row(pair_);
    scheduler_->reconcile({{.name = pair_, .epoch = row.epoch, .position = row.position}});
    run();
  }
  static std::vector<std::string> types_behind(const Latch& latch, std::size_t first) {
    std::vector<std::string> types;
    const auto received = latch.received();
    for (std::size_t i = first; i < received.size(); ++i) types.emplace_back(received[i].event.type());
    return types;
  }
};

TEST_F(SetBackTest, HazardS1WhatComesInPlaceOfLostEventsIsPublished) {
  const auto latch = publish_all();
  set_back();
  append_and_run(10, "New");  // up to 20, below the 30 that the tail knows
  EXPECT_EQ(doubts_, 1);
  EXPECT_THAT(logged(), ::testing::Contains(HasSubstr("the event store was set back")));
  reconcile();
  EXPECT_THAT(types_behind(*latch, 30), Each("New"));
  EXPECT_THAT(latch->positions(), SizeIs(40));
  EXPECT_EQ(progress_.row(pair_).position, Position{20});
  append_and_run(30, "Later");
  EXPECT_THAT(latch->positions(), SizeIs(70));
  EXPECT_EQ(progress_.row(pair_).position, Position{50});
  EXPECT_EQ(doubts_, 1);
}

TEST_F(SetBackTest, AStoreThatHasGrownBeyondItsOldHeadIsFoundOutByTheEventThere) {
  const auto latch = publish_all();
  set_back();
  append_and_run(40, "New");
  EXPECT_EQ(doubts_, 1);
  reconcile();
  EXPECT_THAT(types_behind(*latch, 30), Each("New"));
  EXPECT_THAT(latch->positions(), SizeIs(70));
}

TEST_F(SetBackTest, AnEmptyStoreIsOneToo) {
  make();
  const auto latch = add("t", "p");
  stream_.add(3, "Lost");
  lead("t", "p");
  run();
  stream_.set_back(0);
  progress_.set(pair_, Epoch{1}, Position{0});
  append_and_run(2, "New");
  reconcile();
  EXPECT_THAT(types_behind(*latch, 3), Each("New"));
  EXPECT_THAT(latch->positions(), SizeIs(5));
}

TEST_F(SetBackTest, WhereAnIdlePairStandsIsNotWrittenUnseen) {
  make();
  (void)add("t", "p", {}, {"Other"});
  const auto all = add("all", "q");
  stream_.add(10);
  lead("t", "p");
  lead("all", "q");
  run();
  append_and_run(20);  // none of them for the first
  scheduler_->checkpoint();
  writer_->flush();
  ASSERT_EQ(progress_.row(pair_).position, Position{30}) << "is written while the store is as it was";
  append_and_run(20);
  set_back();
  clock_.advance(10s);
  scheduler_->checkpoint();
  run();
  writer_->flush();
  EXPECT_EQ(progress_.row(pair_).position, Position{10});
  EXPECT_GE(doubts_, 1);
}

TEST_F(SetBackTest, ABatchThatWasBegunBeforeDoesNotCount) {
  make();
  stream_.add(10, "Old");
  const auto latch = add("t", "p");
  lead("t", "p");
  run();
  stream_.add(20, "Lost");
  latch->answer([&](std::span<const StoredEvent>) {
    latch->answer({});
    set_back();
    stream_.add(5, "New");
    lead("t", "p", 10, 1);  // the same epoch: it came out of the backup
    return PublishResult::all();
  });
  scheduler_->wake();
  run();
  reconcile();
  EXPECT_THAT(types_behind(*latch, 30), Each("New"));
  EXPECT_THAT(latch->positions(), SizeIs(35));
  EXPECT_EQ(progress_.row(pair_).position, Position{15});
}

TEST_F(SetBackTest, WhatWaitedForItsNextAttemptIsReadAgain) {
  make();
  stream_.add(10, "Old");
  const auto latch = add("t", "p");
  lead("t", "p");
  run();
  latch->answer([](std::span<const StoredEvent>) { return PublishResult::unavailable(0, "away"); });
  append_and_run(20, "Lost");
  set_back();
  stream_.add(5, "New");  // nobody tells the scheduler
  latch->answer({});
  const std::size_t before = latch->positions().size();
  clock_.advance(1min);
  run();
  reconcile();
  EXPECT_THAT(types_behind(*latch, before), Each("New"));
  EXPECT_THAT(latch->positions(), SizeIs(before + 5));
}

TEST_F(SetBackTest, WhoLeadsAgainAfterAWhileLooksAtTheStoreFirst) {
  const auto latch = publish_all();
  scheduler_->leave_all();
  set_back();
  stream_.add(5, "New");
  lead("t", "p", 10, 2);
  run();
  reconcile();
  EXPECT_THAT(types_behind(*latch, 30), Each("New"));
  EXPECT_THAT(latch->positions(), SizeIs(35));
}

}  // namespace
}  // namespace postrider
