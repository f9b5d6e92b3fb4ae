// SPDX-License-Identifier: Apache-2.0
#include <semaphore>
#include <thread>

#include "integration/projection_fixture.hpp"
#include "postrider/event_manager.hpp"
#include "postrider/event_queue.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Projections : public ProjectionTest {};
POSTRIDER_FOR_EACH_BACKEND(Projections);

TEST_P(Projections, MakesAViewOfTheLog) {
  finish(5);
  ProjectionRunner runner{storage(), options()};
  runner.add(projection(), writer());
  EXPECT_EQ(drain(runner), 5U);
  EXPECT_THAT(seen(), ElementsAreArray(up_to(5)));
  finish(2);
  EXPECT_EQ(drain(runner), 2U);
  EXPECT_EQ(drain(runner), 0U);
  EXPECT_THAT(seen(), ElementsAreArray(up_to(7)));
  const ProjectionStatus status = runner.admin().status("p");
  EXPECT_EQ(status.position, LogSeq{7});
  EXPECT_EQ(status.lag_events, 0);
  EXPECT_TRUE(status.live);
  EXPECT_THAT(status.owner, HasSubstr("node"));
}

TEST_P(Projections, AClassWillDoToo) {
  struct Counter : Projection {
    explicit Counter(std::string table) : Projection({.name = "counter"}), table_(std::move(table)) {}
    void handle(Tx& tx, const LogEntry& entry) override {
      tx.execute("insert into " + table_ + " (nth, seq) values (1, ?)", static_cast<std::int64_t>(entry.seq));
    }
    std::string table_;
  };
  finish(3);
  ProjectionRunner runner{storage(), options()};
  runner.add(std::make_shared<Counter>(view()));
  EXPECT_EQ(drain(runner), 3U);
  EXPECT_THAT(seen(), SizeIs(3));
}

TEST_P(Projections, HazardQ5_ALowIdFinalisedLateIsProjected) {
  rows_->log({.id = 50});
  rows_->log({.id = 60});
  ProjectionRunner runner{storage(), options()};
  std::vector<std::int64_t> ids;
  runner.add(projection(),
             writer(1, [&](const LogEntry& e) { ids.push_back(static_cast<std::int64_t>(e.id)); }));
  drain(runner);
  rows_->log({.id = 1});  // published first, finished last
  drain(runner);
  EXPECT_THAT(ids, ElementsAre(50, 60, 1));
}

TEST_P(Projections, HazardQ6_EntriesWithErrorsAreProjectedUnlessUnwanted) {
  rows_->log({.id = 1, .status = QueueStatus::completed});
  rows_->log({.id = 2, .status = QueueStatus::completed_with_errors});
  rows_->log({.id = 3, .status = QueueStatus::failed});
  ProjectionRunner runner{storage(), options()};
  runner.add(projection(), writer());
  ProjectionOptions picky = projection(2);
  picky.statuses = {QueueStatus::failed, QueueStatus::completed};
  runner.add(picky, writer(2));
  drain(runner);
  EXPECT_THAT(seen(1), ElementsAre(1, 2, 3)) << "all of them by default";
  EXPECT_THAT(seen(2), ElementsAre(1, 3));
}

TEST_P(Projections, ThePositionPassesWhatIsNotWanted) {
  finish(6);
  ProjectionRunner runner{storage(), options()};
  ProjectionOptions even = projection();
  even.types = {"Even"};
  even.batch_size = 2;
  runner.add(even, writer());
  EXPECT_EQ(drain(runner), 3U);
  finish(1);
  drain(runner);
  EXPECT_THAT(seen(), ElementsAre(2, 4, 6));
  EXPECT_EQ(runner.admin().status("p").position, LogSeq{7});
  EXPECT_EQ(runner.admin().status("p").lag_events, 0);
}

TEST_P(Projections, ViewAndPositionAreOneTransactionWhateverBreaks) {
  for (const std::string point :
       {"projection.read.after", "projection.handle.after", "projection.commit.before",
        "projection.commit.after", "<backend>.commit.before", "<backend>.commit.after"}) {
    SCOPED_TRACE(point);
    open(true);
    finish(10);
    ProjectionRunner runner{storage(), options()};
    ProjectionOptions small = projection();
    small.batch_size = 4;
    runner.add(small, writer());
    std::string name = point;
    if (name.starts_with('<')) name.replace(0, name.find('>') + 1, backend());
    int passed = 0;
    failpoints::set(name, [&] {
      if (++passed % 2 == 1) throw Error(ErrorCode::unavailable, {.retryable = true}, "told to fail");
    });
    for (int i = 0; i < 30; ++i) {
      runner.run_once();
      clock_.advance(1s);
    }
    failpoints::clear();
    EXPECT_GT(passed, 1);
    EXPECT_THAT(seen(), ElementsAreArray(up_to(10)));
    EXPECT_EQ(runner.admin().status("p").failures, 0);
  }
}

TEST_P(Projections, AThrowingOneBacksOffAndSaysWhereItStands) {
  finish(5);
  std::atomic<bool> broken{true};
  ProjectionRunner runner{storage(), options()};
  runner.add(projection(), writer(1, [&](const LogEntry& entry) {
               if (broken && entry.seq == LogSeq{3}) throw std::runtime_error("no such customer");
             }));
  for (int i = 0; i < 6; ++i) runner.run_once();
  ProjectionStatus status = runner.admin().status("p");
  EXPECT_EQ(status.position, LogSeq{2}) << "those before it are in the view";
  EXPECT_EQ(status.failures, 1) << "backing off";
  EXPECT_THAT(status.last_error, HasSubstr("entry 3 (Odd, event e1003): no such customer"));
  EXPECT_EQ(status.state, ProjectionState::active);
  EXPECT_EQ(status.lag_events, 3);
  clock_.advance(999ms);
  runner.run_once();
  EXPECT_EQ(runner.admin().status("p").failures, 1);
  clock_.advance(1ms);
  runner.run_once();
  EXPECT_EQ(runner.admin().status("p").failures, 2);
  broken = false;
  clock_.advance(1s);
  drain(runner);
  EXPECT_THAT(seen(), ElementsAreArray(up_to(5)));
  status = runner.admin().status("p");
  EXPECT_EQ(status.failures, 0);
  EXPECT_EQ(status.last_error, "");
}

TEST_P(Projections, PoisonStopsItUntilItIsResumed) {
  finish(5);
  std::atomic<bool> broken{true};
  ProjectionRunner runner{storage(), options()};
  ProjectionOptions three = projection();
  three.max_failures = 3;
  runner.add(three, writer(1, [&](const LogEntry& entry) {
               if (broken && entry.seq == LogSeq{3}) throw std::runtime_error("poison");
             }));
  runner.add(projection(2), writer(2));
  for (int i = 0; i < 10; ++i) {
    runner.run_once();
    clock_.advance(1s);
  }
  const ProjectionStatus status = runner.admin().status("p", 1);
  EXPECT_EQ(status.state, ProjectionState::failed);
  EXPECT_EQ(status.failures, 3);
  EXPECT_EQ(status.position, LogSeq{2});
  EXPECT_EQ(status.owner, "");
  EXPECT_THAT(seen(2), ElementsAreArray(up_to(5))) << "others go on";
  broken = false;
  EXPECT_EQ(drain(runner), 0U);
  runner.admin().resume("p", 1);
  drain(runner);
  EXPECT_THAT(seen(1), ElementsAreArray(up_to(5)));
}

TEST_P(Projections, PoisonIsSkippedAloneWhenToldSo) {
  finish(10);
  ProjectionRunner runner{storage(), options()};
  ProjectionOptions skipping = projection();
  skipping.poison = PoisonPolicy::skip;
  skipping.max_failures = 2;
  runner.add(skipping, writer(1, [&](const LogEntry& entry) {
               if (entry.seq == LogSeq{4} || entry.seq == LogSeq{9}) throw std::runtime_error("poison");
             }));
  for (int i = 0; i < 40; ++i) {
    runner.run_once();
    clock_.advance(1s);
  }
  EXPECT_THAT(seen(), ElementsAreArray(up_to(10, {4, 9})));
  const ProjectionStatus status = runner.admin().status("p");
  EXPECT_EQ(status.state, ProjectionState::active);
  EXPECT_EQ(status.position, LogSeq{10});
  EXPECT_EQ(status.skipped, 2);
  const auto skipped = runner.admin().skipped("p");
  ASSERT_THAT(skipped, SizeIs(2));
  EXPECT_EQ(skipped[0].seq, LogSeq{4});
  EXPECT_THAT(skipped[0].error, HasSubstr("poison"));
  EXPECT_EQ(skipped[1].seq, LogSeq{9});
}

TEST_P(Projections, TheDatabasesOwnFailuresAreNobodysPoison) {
  finish(2);
  std::atomic<int> away{5};
  ProjectionRunner runner{storage(), options()};
  ProjectionOptions impatient = projection();
  impatient.max_failures = 1;
  runner.add(impatient, writer(1, [&](const LogEntry&) {
               if (--away >= 0)
                 throw Error(ErrorCode::unavailable, {.retryable = true}, "the server is away");
             }));
  runner.run_once();
  EXPECT_EQ(runner.admin().status("p").failures, 0);
  EXPECT_THAT(runner.admin().status("p").last_error, HasSubstr("the server is away")) << "yet it is told";
  EXPECT_EQ(runner.run_once().handled, 0U) << "backs off";
  for (int i = 0; i < 8; ++i) {
    clock_.advance(1s);
    runner.run_once();
  }
  EXPECT_THAT(seen(), ElementsAre(1, 2));
}

TEST_P(Projections, APausedViewStandsStill) {
  finish(3);
  ProjectionRunner runner{storage(), options()};
  runner.add(projection(), writer());
  drain(runner);
  finish(3);
  failpoints::set("projection.read.after", [&] { runner.admin().pause("p"); });
  EXPECT_EQ(runner.run_once().handled, 0U) << "a batch that had begun is undone";
  failpoints::clear();
  EXPECT_EQ(drain(runner), 0U);
  EXPECT_THAT(seen(), ElementsAreArray(up_to(3)));
  EXPECT_EQ(runner.admin().status("p").state, ProjectionState::paused);
  runner.admin().resume("p");
  EXPECT_EQ(drain(runner), 3U);
  EXPECT_THAT(seen(), ElementsAreArray(up_to(6)));
}

TEST_P(Projections, ANewVersionIsBuiltBesideTheOldOneAndSwitchedTo) {
  finish(10);
  ProjectionRunner runner{storage(), options()};
  ProjectionOptions small = projection();
  small.batch_size = 4;
  runner.add(small, writer());
  drain(runner);
  small.version = 2;
  runner.add(small, writer(2));
  finish(1);
  runner.run_once();
  EXPECT_EQ(runner.admin().live_version("p"), 1);
  EXPECT_THAT(seen(1), ElementsAreArray(up_to(11))) << "the old one goes on meanwhile";
  EXPECT_THAT(seen(2), ElementsAreArray(up_to(4)));
  EXPECT_FALSE(runner.admin().switch_to("p", 2)) << "readers would see an older view";
  EXPECT_EQ(runner.admin().live_version("p"), 1);
  while (!runner.admin().switch_to("p", 2)) {
    finish(1);
    runner.run_once();
  }
  EXPECT_EQ(runner.admin().live_version("p"), 2);
  EXPECT_EQ(runner.admin().status("p").version, 2);
  drain(runner);
  EXPECT_EQ(seen(1), seen(2));
  EXPECT_THROW(runner.admin().forget("p", 2), Error) << "it is live";
  runner.admin().pause("p", 1);
  runner.admin().forget("p", 1);
  EXPECT_THAT(runner.admin().list(), SizeIs(1));
  EXPECT_THROW((void)runner.admin().switch_to("p", 3), Error);
}

TEST_P(Projections, ANewVersionGoesLiveByItselfWhenToldSo) {
  finish(6);
  ProjectionRunner runner{storage(), options()};
  runner.add(projection(), writer());
  drain(runner);
  ProjectionOptions next = projection(2);
  next.switch_when_caught_up = true;
  next.batch_size = 4;
  runner.add(next, writer(2));
  runner.run_once();
  EXPECT_EQ(runner.admin().live_version("p"), 1) << "not yet";
  drain(runner);
  EXPECT_EQ(runner.admin().live_version("p"), 2);
  EXPECT_THAT(seen(2), ElementsAreArray(up_to(6)));
}

TEST_P(Projections, ResetEmptiesTheViewAndBeginsAgain) {
  finish(5);
  ProjectionRunner runner{storage(), options()};
  runner.add(projection(), writer(), eraser());
  drain(runner);
  runner.reset("p", 1);
  EXPECT_THAT(seen(), IsEmpty());
  EXPECT_EQ(runner.admin().status("p").position, LogSeq{0});
  EXPECT_EQ(drain(runner), 5U);
  EXPECT_THAT(seen(), ElementsAreArray(up_to(5)));
  EXPECT_THROW(runner.reset("p", 2), Error) << "not here";
}

TEST_P(Projections, AResetInTheMiddleOfABatchUndoesTheBatch) {
  finish(5);
  ProjectionRunner runner{storage(), options()};
  runner.add(projection(), writer(), eraser());
  failpoints::set("projection.read.after", [&] {
    failpoints::clear();
    runner.reset("p", 1);
  });
  EXPECT_EQ(runner.run_once().handled, 0U);
  EXPECT_THAT(seen(), IsEmpty());
  drain(runner);
  EXPECT_THAT(seen(), ElementsAreArray(up_to(5)));
}

TEST_P(Projections, ResetNeedsToKnowHowToEmptyTheView) {
  finish(2);
  ProjectionRunner runner{storage(), options()};
  runner.add(projection(), writer());
  drain(runner);
  EXPECT_THROW(runner.reset("p", 1), Error);
  EXPECT_THAT(seen(), ElementsAre(1, 2));
}

TEST_P(Projections, WaitsForAPlaceInTheLog) {
  finish(3);
  ProjectionRunner runner{storage(), options()};
  runner.add(projection(), writer());
  EXPECT_THROW((void)runner.admin().wait_until("nobody", LogSeq{3}, 0s), Error);
  EXPECT_FALSE(runner.admin().wait_until("p", LogSeq{3}, 0s)) << "nobody has run it yet";
  drain(runner);
  EXPECT_TRUE(runner.admin().wait_until("p", LogSeq{3}, 0s));
  EXPECT_FALSE(runner.admin().wait_until("p", LogSeq{4}, 0s));
  finish(1);
  bool reached = false;
  std::thread waiter([&] { reached = runner.admin().wait_until("p", LogSeq{4}, 1h); });
  EXPECT_TRUE(clock_.await_waiters(1));
  drain(runner);  // wakes it: the clock stands still
  waiter.join();
  EXPECT_TRUE(reached);
  std::thread in_vain([&] { reached = runner.admin().wait_until("p", LogSeq{5}, 50ms); });
  EXPECT_TRUE(clock_.await_waiters(1));
  clock_.advance(50ms);
  in_vain.join();
  EXPECT_FALSE(reached);
}

TEST_P(Projections, IsWokenByEveryWayToFinishAnEvent) {
  ProjectionRunnerOptions one_worker = options();
  one_worker.workers = 1;
  ProjectionRunner runner{storage(), one_worker};
  std::counting_semaphore<> handled{0};
  runner.add(projection(), writer(1, [&](const LogEntry&) { handled.release(); }));
  runner.start();

  EventQueue queue{storage(), {.clock = &clock_}};
  EventManager manager{queue};
  manager.register_handler("h", EventType("E"), [](const Event&) {});
  const std::vector<std::function<void()>> ways{
      [&] { queue.finalize(queue.poll()->claim); },
      [&] { queue.fail(queue.poll()->claim, "why"); },
      [&] {
        const QueuedEvent event = *queue.poll();
        Transaction tx = storage().begin();
        queue.complete(tx, event.claim);
        tx.commit();
      },
      [&] { EXPECT_EQ(manager.process_available(), 1U); },
  };
  for (std::size_t i = 0; i < ways.size(); ++i) {
    // The keeper and the worker have nothing to do until time passes, and it does not.
    ASSERT_TRUE(clock_.await_waiters(2));
    queue.publish(Event::json("E", "1"));
    ways[i]();
    EXPECT_TRUE(handled.try_acquire_for(30s)) << "way " << i;
  }
  runner.stop();
  EXPECT_EQ(seen(), up_to(4));
}

TEST_P(Projections, WhatCannotBeIsRefused) {
  ProjectionRunner runner{storage(), options()};
  runner.add(projection(), writer());
  EXPECT_THROW(runner.add(projection(), writer()), Error) << "doubled";
  EXPECT_THROW(runner.add(std::shared_ptr<Projection>()), Error);
  EXPECT_THROW(runner.add({.name = ""}, writer()), Error);
  EXPECT_THROW(runner.add({.name = std::string(129, 'x')}, writer()), Error);
  EXPECT_THROW(runner.add({.name = "x", .version = 0}, writer()), Error);
  EXPECT_THROW(runner.add({.name = "x", .statuses = {QueueStatus::pending}}, writer()), Error);
  EXPECT_THROW(runner.add({.name = "x", .batch_size = 0}, writer()), Error);
  EXPECT_THROW(runner.add({.name = "x"}, nullptr), Error);
  EXPECT_THROW(runner.admin().pause("nobody"), Error);
  EXPECT_EQ(runner.admin().live_version("nobody"), std::nullopt);
}

}  // namespace
}  // namespace postrider
