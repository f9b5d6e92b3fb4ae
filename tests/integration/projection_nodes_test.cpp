// SPDX-License-Identifier: Apache-2.0
// Projections on several nodes, and on threads.
#include <random>
#include <thread>

#include "integration/projection_fixture.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ProjectionNodes : public ProjectionTest {
 protected:
  bool servers() const { return backend() != "sqlite"; }
};
POSTRIDER_FOR_EACH_BACKEND(ProjectionNodes);

TEST_P(ProjectionNodes, OneNodeRunsItAnotherTakesOverWhenItsLeaseIsOver) {
  finish(3);
  const std::unique_ptr<Storage> other = database_->open_another();
  ProjectionRunner a{storage(), options("a")};
  ProjectionRunner b{*other, options("b")};
  a.add(projection(), writer());
  b.add(projection(), writer());
  EXPECT_EQ(drain(a), 3U);
  finish(3);
  EXPECT_EQ(drain(b), 0U) << "it is a's";
  EXPECT_THAT(b.admin().status("p").owner, HasSubstr("a/"));
  clock_.advance(30s);  // a is dead
  EXPECT_EQ(drain(b), 3U);
  EXPECT_EQ(drain(a), 0U) << "a lives after all: it is b's now";
  EXPECT_THAT(seen(), ElementsAreArray(up_to(6)));
}

TEST_P(ProjectionNodes, AStoppedNodeGivesItBackAtOnce) {
  finish(2);
  ProjectionRunner a{storage(), options("a")};
  ProjectionRunner b{storage(), options("b")};
  a.add(projection(), writer());
  b.add(projection(), writer());
  a.run_once();
  EXPECT_EQ(b.run_once().handled, 0U);
  a.stop();
  finish(1);
  EXPECT_EQ(b.run_once().handled, 1U);
}

TEST_P(ProjectionNodes, ALateNodeCannotWrite) {
  finish(4);
  ProjectionRunner a{storage(), options("a")};
  ProjectionRunner b{storage(), options("b")};
  a.add(projection(), writer());
  b.add(projection(), writer());
  failpoints::set("projection.read.after", [&] {
    failpoints::clear();
    clock_.advance(31s);  // a was frozen here, with its entries read
    EXPECT_EQ(drain(b), 4U);
  });
  EXPECT_EQ(a.run_once().handled, 0U);
  EXPECT_THAT(seen(), ElementsAreArray(up_to(4)));
  finish(1);
  EXPECT_EQ(drain(a), 0U);
  EXPECT_EQ(drain(b), 1U);
}

TEST_P(ProjectionNodes, ANodeThatIsOvertakenInTheMiddleOfABatchUndoesIt) {
  if (!servers()) return;  // nobody overtakes the one writer
  finish(4);
  ProjectionRunner a{storage(), options("a")};
  ProjectionRunner b{storage(), options("b")};
  b.add(projection(), writer());
  bool first = true;
  a.add(projection(), writer(1, [&](const LogEntry&) {
          if (!std::exchange(first, false)) return;
          clock_.advance(31s);
          EXPECT_EQ(drain(b), 4U);
        }));
  EXPECT_EQ(a.run_once().handled, 0U);
  EXPECT_THAT(seen(), ElementsAreArray(up_to(4)));
  EXPECT_EQ(b.admin().status("p").failures, 0);
}

TEST_P(ProjectionNodes, FailuresAreRememberedByWhoeverTakesOver) {
  finish(3);
  const auto broken = [](const LogEntry& entry) {
    if (entry.seq == LogSeq{2}) throw std::runtime_error("poison");
  };
  ProjectionOptions three = projection();
  three.max_failures = 3;
  {
    ProjectionRunner a{storage(), options("a")};
    a.add(three, writer(1, broken));
    for (int i = 0; i < 4; ++i) a.run_once();
    EXPECT_EQ(a.admin().status("p").failures, 1);
  }
  ProjectionRunner b{storage(), options("b")};
  b.add(three, writer(1, broken));
  b.run_once();
  EXPECT_EQ(b.admin().status("p").failures, 2);
  clock_.advance(1s);
  b.run_once();
  EXPECT_EQ(b.admin().status("p").state, ProjectionState::failed);
}

TEST_P(ProjectionNodes, ALongBatchKeepsItsLease) {
  finish(1);
  testing::Signal entered;
  testing::Signal leave;
  ProjectionRunner a{storage(), options("a")};
  a.add(projection(), writer(1, [&](const LogEntry&) {
          entered.set();
          EXPECT_TRUE(leave.await());
        }));
  a.start();
  ASSERT_TRUE(entered.await());
  for (int i = 0; i < 18; ++i) {  // 90 s, three leases
    ASSERT_TRUE(clock_.await_waiters(2)) << "the keeper and the other worker";
    clock_.advance(5s);
  }
  ASSERT_TRUE(clock_.await_waiters(2));
  if (servers()) {
    EXPECT_THAT(a.admin().status("p").owner, HasSubstr("a/"));
    ProjectionRunner b{storage(), options("b")};
    b.add(projection(), writer());
    EXPECT_EQ(b.run_once().handled, 0U) << "still a's";
  }
  leave.set();
  EXPECT_TRUE(a.admin().wait_until("p", LogSeq{1}, 1h));
  a.stop();
  EXPECT_THAT(seen(), ElementsAreArray(up_to(1)));
  EXPECT_EQ(handled_, 1) << "nobody else has tried it";
}

TEST_P(ProjectionNodes, RunsOnThreadsWakesAndStopsInAnyOrder) {
  ProjectionRunner runner{storage(), options()};
  runner.stop();
  runner.start();
  runner.start();
  EXPECT_TRUE(runner.running());
  runner.add(projection(), writer());  // after the start: picked up
  ASSERT_TRUE(clock_.await_waiters(3));
  finish(3);
  runner.wake();  // the clock stands still: nothing else makes it look
  EXPECT_TRUE(runner.admin().wait_until("p", LogSeq{3}, 1h));
  EXPECT_THROW(runner.run_once(), Error);
  runner.stop();
  EXPECT_FALSE(runner.running());
  EXPECT_EQ(runner.admin().status("p").owner, "");
  finish(2);
  runner.wake();
  runner.start();
  EXPECT_TRUE(runner.admin().wait_until("p", LogSeq{5}, 1h));
  finish(1);
  ASSERT_TRUE(clock_.await_waiters(3));
  clock_.advance(1s);  // without a wake it looks after a while
  EXPECT_TRUE(runner.admin().wait_until("p", LogSeq{6}, 1h));
  EXPECT_THAT(seen(), ElementsAreArray(up_to(6)));
}

TEST_P(ProjectionNodes, ARunnerCannotBeDrivenFromInsideAProjection) {
  finish(1);
  std::vector<std::string> messages;
  ProjectionRunner runner{storage(), options()};
  const std::vector<std::function<void()>> calls{[&] { runner.stop(); }, [&] { runner.start(); },
                                                 [&] { (void)runner.run_once(); }};
  runner.add(projection(), writer(1, [&](const LogEntry&) {
               for (const auto& call : calls) {
                 try {
                   call();
                 } catch (const Error& error) {
                   messages.emplace_back(error.what());
                 }
               }
             }));
  runner.run_once();
  EXPECT_THAT(messages, ElementsAre(HasSubstr("stop() was called from one of them"),
                                    HasSubstr("start() was called from one of them"),
                                    HasSubstr("run_once() was called from one of them")));
}

TEST_P(ProjectionNodes, NodesThatComeAndGoProjectEveryEntryOnceAndInOrder) {
  open(false);
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr int total = 200;
  ProjectionOptions small = projection();
  small.batch_size = 7;
  {
    ProjectionRunner first{storage(), options("first")};
    first.add(small, writer());
    first.run_once();  // from here on it is known by name
  }
  std::atomic<bool> done{false};
  std::vector<std::thread> nodes;
  for (unsigned n = 0; n < 3; ++n) {
    nodes.emplace_back([&, n] {
      std::mt19937 random(seed + n);
      const std::unique_ptr<Storage> mine = database_->open_another();
      ProjectionRunnerOptions quick = options("n" + std::to_string(n));
      quick.lease = 200ms;
      quick.poll_interval = 1ms;
      quick.poll_interval_max = 5ms;
      while (!done) {
        ProjectionRunner runner{*mine, quick};
        runner.add(small, writer());
        runner.start();
        // Bounded by the log, not by time: each life lasts until the view has moved on a little.
        const auto until = std::min<std::int64_t>(total, static_cast<std::int64_t>(random() % total) + 1);
        (void)runner.admin().wait_until("p", LogSeq{until}, 300ms);
      }
    });
  }
  finish(total);
  const bool reached = ProjectionAdmin(storage()).wait_until("p", LogSeq{total}, testing::patience);
  done = true;
  for (std::thread& node : nodes) node.join();
  EXPECT_TRUE(reached);
  EXPECT_THAT(seen(), ElementsAreArray(up_to(total)));
}

}  // namespace
}  // namespace postrider
