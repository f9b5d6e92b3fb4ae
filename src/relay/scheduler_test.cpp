// SPDX-License-Identifier: Apache-2.0

#include "relay/leader.hpp"
#include "relay/scheduler_fixture.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Counter = testing::RecordingMetrics::Counter;

TEST_F(SchedulerTest, ALaggardReadsForItselfThenLivesOffTheTail) {
  make();
  stream_.add(250);
  const auto latch = add("t", "p");
  lead("t", "p");
  run();
  EXPECT_EQ(latch->positions(), range(1, 250));
  EXPECT_EQ(latch->batches(), 3U) << "of 100";
  EXPECT_EQ(metrics_.get(Counter::relay_own_reads), 1U);
  append_and_run(5);
  EXPECT_EQ(latch->positions(), range(1, 255));
  EXPECT_EQ(metrics_.get(Counter::relay_own_reads), 1U) << "from the tail";
  EXPECT_EQ(progress_.row({"t", "p"}).position, Position{255});
}

TEST_F(SchedulerTest, HazardS16FiftyPairsAtTheHeadReadOnce) {
  make();
  for (int i = 0; i < 50; ++i) {
    add("t" + std::to_string(i % 10), "p" + std::to_string(i / 10));
    lead("t" + std::to_string(i % 10), "p" + std::to_string(i / 10));
  }
  run();
  const int before = stream_.reads();
  for (int i = 0; i < 20; ++i) append_and_run(3);
  EXPECT_EQ(stream_.reads() - before, 20);
  for (const auto& [name, latch] : latches_) EXPECT_THAT(latch->received(), SizeIs(10 * 60)) << name;
  const int polls = stream_.reads();
  clock_.advance(1s);
  run();
  EXPECT_LE(stream_.reads() - polls, 2) << "fifty polls";
}

TEST_F(SchedulerTest, HazardS16TenThousandIdlePairsDoNotPollTenThousandTimes) {
  make();
  for (int i = 0; i < 10'000; ++i) {
    add("t" + std::to_string(i), "p" + std::to_string(i % 7));
    lead("t" + std::to_string(i), "p" + std::to_string(i % 7));
  }
  run();
  const int before = stream_.reads();
  for (int i = 0; i < 100; ++i) {
    clock_.advance(1s);
    run();
  }
  EXPECT_LE(stream_.reads() - before, 20) << "3 polls at 1 s, then 2, 4, 8 …";
}

TEST_F(SchedulerTest, EventsOfOtherTopicsAreStepsWithoutABatch) {
  make();
  const auto latch = add("t", "p", {}, {"Wanted"});
  lead("t", "p");
  run();
  append_and_run(10);
  EXPECT_THAT(latch->received(), IsEmpty());
  const int writes = progress_.writes();
  scheduler_->checkpoint();
  writer_->flush();
  EXPECT_EQ(progress_.writes(), writes + 1);
  EXPECT_EQ(progress_.row({"t", "p"}).position, Position{10}) << "where it stands is stored now and then";
  append_and_run(1, "Wanted");
  EXPECT_EQ(latch->positions(), range(11, 11));
}

TEST_F(SchedulerTest, ATailThatIsTooSmallMakesLaggardsNotLosses) {
  make({.tail_bytes = 2000});
  const auto slow = add("t", "slow");
  const auto quick = add("t", "quick");
  lead("t", "slow");
  lead("t", "quick");
  run();
  slow->set_healthy(false);
  for (int i = 0; i < 30; ++i) append_and_run(1);
  EXPECT_EQ(quick->positions(), range(1, 30));
  slow->set_healthy(true);
  clock_.advance(1s);
  run();
  EXPECT_EQ(slow->positions(), range(1, 30));
}

TEST_F(SchedulerTest, HazardS14PollsThatFailAreNotEmpty) {
  make();
  add("t", "p");
  lead("t", "p");
  run();
  stream_.break_down(true);
  for (int i = 0; i < 100; ++i) {
    clock_.advance(500ms);
    run();
  }
  EXPECT_LE(scheduler_->backoff({"t", "p"})->empty_polls, 1);
  stream_.break_down(false);
  stream_.add(1);
  clock_.advance(1s);
  run();
  EXPECT_EQ(latches_["p"]->positions(), range(1, 1));
}

TEST_F(SchedulerTest, IdlePollsBecomeRarerAndAPublishEndsIt) {
  make();
  const auto latch = add("t", "p");
  lead("t", "p");
  run();
  int reads = stream_.reads();
  std::vector<int> polled_at;
  for (int second = 1; second <= 30; ++second) {
    clock_.advance(1s);
    run();
    if (stream_.reads() > reads) polled_at.push_back(second);
    reads = stream_.reads();
  }
  EXPECT_THAT(polled_at, ElementsAre(1, 2, 3, 5, 9, 17)) << "the first empty poll was at 0";
  EXPECT_TRUE(scheduler_->backoff({"t", "p"})->backing_off);
  append_and_run(1);
  EXPECT_THAT(latch->received(), SizeIs(1)) << "woken at once";
  EXPECT_EQ(scheduler_->backoff({"t", "p"})->empty_polls, 0);
}

TEST_F(SchedulerTest, HazardS10WhoseLeaseIsNotSureDoesNotPublish) {
  make();
  const auto latch = add("t", "p");
  lead("t", "p");
  run();
  may_publish_ = false;
  append_and_run(1);
  EXPECT_THAT(latch->received(), IsEmpty());
  may_publish_ = true;
  clock_.advance(1s);
  run();
  EXPECT_THAT(latch->received(), SizeIs(1));
}

TEST_F(SchedulerTest, HazardS10ARefusedWriteStopsThePairUntilTheLeaderKnows) {
  make();
  const auto latch = add("t", "p");
  lead("t", "p");
  run();
  progress_.set({"t", "p"}, Epoch{2}, Position{0});  // somebody else has it
  append_and_run(1);
  EXPECT_EQ(doubts_, 1);
  append_and_run(1);
  clock_.advance(100s);
  run();
  EXPECT_THAT(latch->received(), SizeIs(1)) << "nothing after the refusal";
  EXPECT_TRUE(scheduler_->digest().doubtful);
  scheduler_->reconcile({});
  EXPECT_EQ(scheduler_->digest().pairs, 0);
  EXPECT_EQ(progress_.row({"t", "p"}).position, Position{0});
}

TEST_F(SchedulerTest, IndividualModeGetsOneAtATime) {
  make();
  const auto latch = add("t", "p");
  latch->set_mode(PublishMode::individual);
  lead("t", "p");
  append_and_run(7);
  EXPECT_EQ(latch->positions(), range(1, 7));
  EXPECT_EQ(latch->batches(), 7U);
}

TEST_F(SchedulerTest, APausedPairStandsStillAndGoesOnWhereItStood) {
  make();
  const auto latch = add("t", "p");
  lead("t", "p");
  append_and_run(2);
  scheduler_->set_at_rest({{.name = {"t", "p"}, .state = PairState::paused}}, scheduler_->ticket());
  append_and_run(2);
  clock_.advance(100s);
  run();
  EXPECT_EQ(latch->positions(), range(1, 2));
  scheduler_->set_at_rest({}, scheduler_->ticket());
  run();
  EXPECT_EQ(latch->positions(), range(1, 4));
}

TEST_F(SchedulerTest, APairIsNotFurtherAheadOfItsProgressThanAllowed) {
  make({.unwritten_batches = 2});
  stream_.add(1000);
  PairOptions options;
  options.batch_size = 10;
  const auto latch = add("t", "p", options);
  lead("t", "p");
  while (scheduler_->step()) {
  }
  EXPECT_EQ(latch->positions(), range(1, 20)) << "nothing is written yet";
  run();
  EXPECT_EQ(latch->positions(), range(1, 1000));
}

TEST_F(SchedulerTest, ALaggardsNextPagesAreReadWhileOneIsPublished) {
  make({}, &Clock::system());
  stream_.add(5000);
  testing::Signal release;
  const auto latch = add_held(release);
  writer_->start();
  scheduler_->start();
  lead("t", "p");
  // Its own page and two more, and no further as long as the first batch is not published.
  EXPECT_TRUE(stream_.await_events(3000));
  release.set();
  EXPECT_TRUE(latch->await(5000));
  scheduler_->stop();
  EXPECT_EQ(latch->positions(), range(1, 5000));
  EXPECT_LE(metrics_.get(Counter::relay_own_reads), 6U) << "no page twice";
}

TEST_F(SchedulerTest, PagesReadAheadAreForgottenWhenThePairIsMoved) {
  make({}, &Clock::system());
  stream_.add(3000);
  testing::Signal release;
  const auto latch = add_held(release);
  writer_->start();
  scheduler_->start();
  lead("t", "p", 500);
  EXPECT_TRUE(held_.await());
  EXPECT_TRUE(stream_.await_events(2500));
  lead("t", "p", 0, 2);  // rewound, as the leader sees it
  release.set();
  EXPECT_TRUE(latch->await(100 + 3000)) << "the batch that was begun, and then all";
  scheduler_->stop();
  std::vector<Position> expected = range(501, 600);
  for (const Position one : range(1, 3000)) expected.push_back(one);
  EXPECT_EQ(latch->positions(), expected);
}

TEST_F(SchedulerTest, BatchesEndWhereTheirBytesDo) {
  make({.batch_bytes = 2000});
  const auto latch = add("t", "p");
  lead("t", "p");
  run();
  append_and_run(40);
  EXPECT_EQ(latch->positions(), range(1, 40));
  EXPECT_GE(latch->batches(), 8U);
}

TEST_F(SchedulerTest, OnePublisherObjectServesManyTopicsOneCallAtATime) {
  make({}, &Clock::system());
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::shared_ptr<Latch> latch;
  for (int i = 0; i < 20; ++i) latch = add("t" + std::to_string(i), "p");
  latch->answer([&](auto) {
    most = std::max(most.load(), ++inside);
    std::this_thread::yield();
    --inside;
    return PublishResult::all();
  });
  writer_->start();
  scheduler_->start();
  for (int i = 0; i < 20; ++i) lead("t" + std::to_string(i), "p");
  for (int i = 0; i < 20; ++i) {
    stream_.add(1);
    scheduler_->wake();
  }
  EXPECT_TRUE(latch->await(400));
  EXPECT_EQ(most, 1);
}

TEST_F(SchedulerTest, SlowPublishersNeverDelayAnother) {
  make({.workers = 2, .max_workers = 16}, &Clock::system());
  testing::Signal release;
  for (int i = 0; i < 10; ++i) add_held(release, "slow" + std::to_string(i));
  const auto quick = add("t", "quick");
  writer_->start();
  scheduler_->start();
  for (int i = 0; i < 10; ++i) lead("t", "slow" + std::to_string(i));
  lead("t", "quick");
  for (std::size_t i = 1; i <= 5; ++i) {
    stream_.add(1);
    scheduler_->wake();
    EXPECT_TRUE(quick->await(i)) << "while ten others hang";
  }
  EXPECT_GE(scheduler_->threads(), 11U);
  EXPECT_LE(scheduler_->threads(), 16U);
  release.set();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(latches_["slow" + std::to_string(i)]->await(5));
  scheduler_->stop();
  EXPECT_EQ(scheduler_->threads(), 0U);
}

TEST_F(SchedulerTest, WhatIsWrongWithAPairIsSaidAtOnce) {
  make();
  add("t", "p");
  EXPECT_THROW(add("t", "p"), Error) << "twice";
  EXPECT_THROW(add("t", "q", {}, {"Other"}), Error) << "another topic of that name";
  EXPECT_THROW(scheduler_->add({.name = "u"}, std::make_shared<Latch>("p"), {}), Error) << "another object";
  EXPECT_THROW(scheduler_->add({.name = "u"}, nullptr, {}), Error);
  EXPECT_THROW(scheduler_->add({.name = "u"}, std::make_shared<Latch>(""), {}), Error);
}

TEST(SharePlan, NodesEndUpWithinOneOfEachOther) {
  EXPECT_EQ(plan_share(10, 0, {}).take, 10U);
  EXPECT_EQ(plan_share(10, 10, {0}).give, 5U);
  EXPECT_EQ(plan_share(10, 0, {10}).take, 5U);
  EXPECT_EQ(plan_share(10, 4, {4, 2}).give, 1U) << "4, 4, 2 is not fair";
  EXPECT_EQ(plan_share(10, 4, {3, 3}).give, 0U);
  EXPECT_EQ(plan_share(0, 0, {0, 0}).take, 0U);
  for (std::size_t total : {0U, 1U, 7U, 50U, 101U}) {
    for (std::size_t nodes = 1; nodes <= 5; ++nodes) {
      std::vector<std::size_t> led(nodes, 0);
      led[0] = total;
      for (int round = 0; round < 50; ++round) {
        for (std::size_t me = 0; me < nodes; ++me) {
          std::vector<std::size_t> others(led);
          others.erase(others.begin() + static_cast<std::ptrdiff_t>(me));
          std::size_t free = total;
          for (const std::size_t one : led) free -= one;
          const SharePlan plan = plan_share(total, led[me], others);
          led[me] += std::min(free, plan.take);
          led[me] -= plan.give;
        }
      }
      std::size_t sum = 0;
      for (const std::size_t one : led) sum += one;
      EXPECT_EQ(sum, total);
      EXPECT_LE(*std::max_element(led.begin(), led.end()) - *std::min_element(led.begin(), led.end()), 1U)
          << total << " pairs, " << nodes << " nodes";
    }
  }
}

}  // namespace
}  // namespace postrider
