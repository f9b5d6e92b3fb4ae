// SPDX-License-Identifier: Apache-2.0
// What operators and programs do with projections, and what is left when it is refused.
#include "integration/projection_fixture.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ProjectionOperating : public ProjectionTest {};
POSTRIDER_FOR_EACH_BACKEND(ProjectionOperating);

TEST_P(ProjectionOperating, ARefusedResetLeavesItAsItWas) {
  finish(4);
  std::atomic<bool> broken{false};
  ProjectionRunner runner{storage(), options()};
  ProjectionOptions once = projection();
  once.max_failures = 1;
  runner.add(once,
             writer(1,
                    [&](const LogEntry& entry) {
                      if (broken && entry.seq == LogSeq{6}) throw std::runtime_error("poison");
                    }),
             [](Tx&) { throw std::runtime_error("cannot empty it"); });
  drain(runner);
  const auto refused = [&] { EXPECT_THROW(runner.reset("p", 1), std::runtime_error); };
  refused();
  EXPECT_EQ(runner.admin().status("p").state, ProjectionState::active);
  finish(1);
  EXPECT_EQ(drain(runner), 1U) << "it goes on at once, without anybody's help";
  runner.admin().pause("p");
  refused();
  EXPECT_EQ(runner.admin().status("p").state, ProjectionState::paused);
  runner.admin().resume("p");
  broken = true;
  finish(1);
  drain(runner);
  refused();
  const ProjectionStatus status = runner.admin().status("p");
  EXPECT_EQ(status.state, ProjectionState::failed);
  EXPECT_EQ(status.failures, 1);
  EXPECT_THAT(status.last_error, HasSubstr("poison"));
  EXPECT_EQ(status.owner, "");
  EXPECT_THAT(seen(), ElementsAreArray(up_to(5)));
}

TEST_P(ProjectionOperating, OneThatRunsIsNotForgottenAndOneThatIsForgottenDoesNotComeBack) {
  finish(3);
  ProjectionRunner runner{storage(), options()};
  runner.add(projection(), writer());
  runner.add(projection(2), writer(2));
  drain(runner);
  try {
    runner.admin().forget("p", 2);
    ADD_FAILURE() << "it is running";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::conflict);
    EXPECT_THAT(error.what(), HasSubstr("a node runs it"));
  }
  finish(1);
  drain(runner);
  EXPECT_THAT(seen(2), ElementsAreArray(up_to(4)));
  runner.admin().pause("p", 2);
  runner.admin().forget("p", 2);
  finish(1);
  drain(runner);
  runner.start();
  runner.stop();
  drain(runner);
  EXPECT_THAT(seen(1), ElementsAreArray(up_to(5)));
  EXPECT_THAT(seen(2), ElementsAreArray(up_to(4))) << "not a second time from the beginning";
  EXPECT_THAT(runner.admin().list(), SizeIs(1));
}

TEST_P(ProjectionOperating, ItsStatusIsKnownBeforeItHasRun) {
  finish(3);
  ProjectionRunner runner{storage(), options()};
  runner.add(projection(), writer());
  const ProjectionStatus status = runner.admin().status("p");
  EXPECT_EQ(status.version, 1);
  EXPECT_TRUE(status.live);
  EXPECT_EQ(status.position, LogSeq{0});
  EXPECT_EQ(status.lag_events, 3);
  EXPECT_EQ(status.owner, "");
  EXPECT_EQ(ProjectionAdmin(storage(), &clock_).list().size(), 1U) << "in any process";
}

TEST_P(ProjectionOperating, OneThatIsAddedWhileTheDatabaseIsAwayIsKnownOnceStarted) {
  ProjectionRunner runner{storage(), options()};
  // PostgreSQL takes the new name without its schema.
  const auto named = [&](const std::string& name) {
    return backend() == "postgres" ? name : database_->table(name);
  };
  define("alter table " + database_->table("event_projection") + " rename to " + named("hidden"));
  runner.add(projection(), writer());
  EXPECT_THROW(runner.start(), Error);
  EXPECT_FALSE(runner.running());
  define("alter table " + database_->table("hidden") + " rename to " + named("event_projection"));
  runner.start();
  EXPECT_EQ(runner.admin().status("p").version, 1);
  runner.stop();
}

TEST_P(ProjectionOperating, RunOnceGivesEachItsTurnAndTellsAllFailures) {
  finish(4);
  ProjectionRunner runner{storage(), options()};
  const auto failing = [this](const std::string& why) {
    return writer(1, [why](const LogEntry& entry) {
      if (entry.seq == LogSeq{2}) throw std::runtime_error(why);
    });
  };
  ProjectionOptions first = projection();
  first.name = "first";
  ProjectionOptions last = projection();
  last.name = "last";
  runner.add(first, failing("one"));
  runner.add(projection(), writer(2));
  runner.add(last, failing("two"));
  std::size_t handled = 0;
  std::vector<std::string> failures;
  for (ProjectionRun run = runner.run_once(); run.handled > 0; run = runner.run_once()) {
    handled += run.handled;
    for (const auto& one : run.failures) failures.push_back(one.name + ": " + one.error);
  }
  EXPECT_EQ(handled, 6U) << "entry 1 twice, and all four";
  EXPECT_THAT(seen(2), ElementsAreArray(up_to(4)));
  EXPECT_THAT(failures, ElementsAre(HasSubstr("first: entry 2"), HasSubstr("last: entry 2")))
      << "the batches";
  EXPECT_THAT(failures[1], HasSubstr("two"));
  clock_.advance(1s);
  const ProjectionRun again = runner.run_once();
  ASSERT_THAT(again.failures, SizeIs(2));
  EXPECT_EQ(again.failures[0].name, "first");
  EXPECT_EQ(again.failures[0].version, 1);
  EXPECT_THAT(again.failures[0].error, HasSubstr("one"));
  EXPECT_EQ(again.failures[1].name, "last");
}

TEST_P(ProjectionOperating, AStartThatFailsLeavesNothingRunning) {
  ProjectionRunner runner{storage(), options()};
  runner.add(projection(), writer());
  failpoints::set("projection.start", [&] {
    EXPECT_TRUE(clock_.await_waiters(3)) << "the threads that there are have nothing to do";
    throw std::runtime_error("no more threads");
  });
  EXPECT_THROW(runner.start(), std::runtime_error);
  failpoints::clear();
  EXPECT_FALSE(runner.running());
  EXPECT_EQ(clock_.waiters(), 0U) << "a thread is left";
  finish(2);
  EXPECT_EQ(drain(runner), 2U) << "nobody else has it";
  runner.start();
  EXPECT_TRUE(runner.running());
  finish(1);
  runner.wake();
  EXPECT_TRUE(runner.admin().wait_until("p", LogSeq{3}, 1h));
  runner.stop();
  EXPECT_THAT(seen(), ElementsAreArray(up_to(3)));
}

TEST_P(ProjectionOperating, CountsWhatItDoes) {
  finish(4);
  testing::RecordingMetrics metrics;
  ProjectionRunnerOptions counted = options();
  counted.metrics = &metrics;
  ProjectionRunner runner{storage(), counted};
  ProjectionOptions skipping = projection();
  skipping.poison = PoisonPolicy::skip;
  skipping.max_failures = 1;
  skipping.batch_size = 3;
  runner.add(skipping, writer(1, [](const LogEntry& entry) {
               if (entry.seq == LogSeq{2}) throw std::runtime_error("poison");
             }));
  using Counter = testing::RecordingMetrics::Counter;
  runner.run_once();
  EXPECT_EQ(metrics.get(Counter::projection_handled), 1U);
  EXPECT_EQ(metrics.get(Counter::projection_failures), 1U) << "the batch";
  EXPECT_EQ(metrics.projection_lag(), 3);
  drain(runner);
  EXPECT_EQ(metrics.get(Counter::projection_handled), 3U);
  EXPECT_EQ(metrics.get(Counter::projection_failures), 2U) << "and the entry";
  EXPECT_EQ(metrics.get(Counter::projection_skipped), 1U);
  EXPECT_EQ(metrics.projection_lag(), 0);
  const std::uint64_t before = metrics.get(Counter::projection_records);
  runner.start();
  ASSERT_TRUE(clock_.await_waiters(3));
  finish(2);
  runner.admin().pause("p");
  ASSERT_TRUE(clock_.await_waiters(3));
  clock_.advance(5s);  // a sixth of the lease
  EXPECT_TRUE(metrics.await(Counter::projection_records, before + 1));
  EXPECT_EQ(metrics.projection_lag(), 2) << "told also while it stands still";
  runner.stop();
}

}  // namespace
}  // namespace postrider
