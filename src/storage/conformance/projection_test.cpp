// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "storage/projection_store.hpp"
#include "support/queue_rows.hpp"

namespace postrider::conformance {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Change = ProjectionChange;
using Changed = ProjectionChanged;

class ProjectionVerbs : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend(), test::TestDatabase::Options{.clock = &clock_});
    rows_.emplace(*database_, clock_);
  }
  Storage& storage() { return database_->storage(); }
  ProjectionStore& store() { return storage().projection_store(); }
  std::optional<ProjectionLease> acquire(std::string_view owner, int version = 1, Duration lease = 30s) {
    EXPECT_EQ(store().change("p", version, Change::enroll), Changed::done);
    return store().acquire("p", version, owner, lease);
  }
  ProjectionStatus status(int version = 1) {
    for (ProjectionStatus& one : store().list("p")) {
      if (one.version == version) return std::move(one);
    }
    ADD_FAILURE() << "no version " << version;
    return {};
  }
  bool advance(std::int64_t epoch, std::int64_t from, std::int64_t to, int version = 1) {
    Transaction tx = storage().begin();
    if (!store().advance(tx, {"p", version, epoch}, {.from = LogSeq{from}, .to = LogSeq{to}, .lease = 30s})) {
      return false;
    }
    tx.commit();
    return true;
  }

  ManualClock clock_;
  std::optional<test::TestDatabase> database_;
  std::optional<test::QueueRows> rows_;
};
POSTRIDER_FOR_EACH_BACKEND(ProjectionVerbs);

TEST_P(ProjectionVerbs, TheFirstVersionIsLiveAtOnceALaterOneIsNot) {
  const auto first = acquire("a", 1);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->position, LogSeq{0});
  EXPECT_TRUE(first->live);
  const auto second = acquire("a", 2);
  ASSERT_TRUE(second.has_value());
  EXPECT_FALSE(second->live);
  EXPECT_TRUE(status(1).live);
  EXPECT_FALSE(status(2).live);
  EXPECT_FALSE(store().acquire("other", 5, "a", 30s).has_value()) << "not enrolled";
  EXPECT_EQ(store().change("other", 5, Change::enroll), Changed::done);
  EXPECT_EQ(store().change("other", 5, Change::enroll), Changed::done) << "again";
  EXPECT_TRUE(store().acquire("other", 5, "a", 30s)->live);
  EXPECT_THAT(store().list(""), SizeIs(3));
  EXPECT_THAT(store().list("none"), IsEmpty());
}

TEST_P(ProjectionVerbs, OneOwnerAtATime) {
  const auto a = acquire("a");
  ASSERT_TRUE(a.has_value());
  EXPECT_EQ(a->epoch, 1);
  EXPECT_EQ(status().owner, "a");
  EXPECT_FALSE(acquire("b").has_value());
  clock_.advance(29s);
  EXPECT_FALSE(acquire("b").has_value());
  clock_.advance(1s);
  EXPECT_EQ(status().owner, "") << "its time is over";
  const auto b = acquire("b");
  ASSERT_TRUE(b.has_value());
  EXPECT_EQ(b->epoch, 2);
  EXPECT_FALSE(acquire("a").has_value());
}

TEST_P(ProjectionVerbs, TheOwnerItselfMayTakeItAgain) {
  ASSERT_TRUE(acquire("a").has_value());
  ASSERT_TRUE(advance(1, 0, 7));
  const auto again = acquire("a");
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->epoch, 2) << "what it began before is fenced";
  EXPECT_EQ(again->position, LogSeq{7});
  EXPECT_FALSE(advance(1, 7, 8));
}

TEST_P(ProjectionVerbs, RenewingKeepsItGivingBackFreesIt) {
  ASSERT_TRUE(acquire("a").has_value());
  EXPECT_TRUE(store().renew({"p", 1, 1}, 30s)) << "also when nothing changes by it";
  clock_.advance(20s);
  EXPECT_TRUE(store().renew({"p", 1, 1}, 30s));
  clock_.advance(20s);
  EXPECT_FALSE(acquire("b").has_value());
  EXPECT_TRUE(store().renew({"p", 1, 1}, 0s));
  EXPECT_EQ(status().owner, "");
  ASSERT_TRUE(acquire("b").has_value());
  EXPECT_FALSE(store().renew({"p", 1, 1}, 30s)) << "not any more";
  EXPECT_EQ(status().owner, "b");
}

TEST_P(ProjectionVerbs, OnlyTheEpochsHolderMovesThePosition) {
  ASSERT_TRUE(acquire("a").has_value());
  EXPECT_TRUE(advance(1, 0, 5));
  EXPECT_FALSE(advance(1, 0, 9)) << "it stands elsewhere";
  clock_.advance(31s);
  ASSERT_EQ(acquire("b").value().position, LogSeq{5});
  EXPECT_FALSE(advance(1, 5, 6)) << "late";
  EXPECT_TRUE(advance(2, 5, 6));
  EXPECT_EQ(status().position, LogSeq{6});
}

TEST_P(ProjectionVerbs, ThePositionIsPartOfTheTransaction) {
  ASSERT_TRUE(acquire("a").has_value());
  {
    Transaction tx = storage().begin();
    EXPECT_TRUE(store().advance(tx, {"p", 1, 1}, {.from = LogSeq{0}, .to = LogSeq{3}, .lease = 30s}));
    tx.rollback();
  }
  EXPECT_EQ(status().position, LogSeq{0});
}

TEST_P(ProjectionVerbs, AdvancingRenews) {
  ASSERT_TRUE(acquire("a").has_value());
  clock_.advance(29s);
  ASSERT_TRUE(advance(1, 0, 1));
  clock_.advance(29s);
  EXPECT_FALSE(acquire("b").has_value());
}

TEST_P(ProjectionVerbs, FailuresAreCountedUntilItMovesOn) {
  ASSERT_TRUE(acquire("a").has_value());
  EXPECT_TRUE(store().fail({"p", 1, 1}, {.error = "one"}));
  EXPECT_TRUE(store().fail({"p", 1, 1}, {.error = "two"}));
  EXPECT_TRUE(store().fail({"p", 1, 1}, {.error = "away", .counted = false}));
  EXPECT_FALSE(store().fail({"p", 1, 9}, {.error = "stale"}));
  EXPECT_EQ(status().failures, 2);
  EXPECT_EQ(status().last_error, "away");
  clock_.advance(1min);
  EXPECT_EQ(acquire("b").value().failures, 2) << "whoever takes over knows";
  ASSERT_TRUE(advance(2, 0, 1));
  EXPECT_EQ(status().failures, 0);
  EXPECT_EQ(status().last_error, "");
}

TEST_P(ProjectionVerbs, AFailedOneIsLeftAloneUntilResumed) {
  ASSERT_TRUE(acquire("a").has_value());
  EXPECT_TRUE(store().fail({"p", 1, 1}, {.error = "poison", .stop = true}));
  EXPECT_EQ(status().state, ProjectionState::failed);
  EXPECT_EQ(status().failures, 1);
  EXPECT_FALSE(acquire("a").has_value());
  EXPECT_FALSE(advance(1, 0, 1));
  EXPECT_EQ(store().change("p", 1, Change::resume), Changed::done);
  EXPECT_EQ(status().state, ProjectionState::active);
  EXPECT_EQ(status().failures, 0);
  EXPECT_TRUE(acquire("a").has_value());
}

TEST_P(ProjectionVerbs, APausedOneStandsStill) {
  ASSERT_TRUE(acquire("a").has_value());
  EXPECT_EQ(store().change("p", 1, Change::pause), Changed::done);
  EXPECT_EQ(store().change("p", 1, Change::pause), Changed::done) << "again";
  EXPECT_EQ(status().state, ProjectionState::paused);
  EXPECT_FALSE(advance(1, 0, 1)) << "a batch that was running";
  EXPECT_FALSE(acquire("a").has_value());
  EXPECT_EQ(store().change("p", 1, Change::resume), Changed::done);
  EXPECT_FALSE(advance(1, 0, 1)) << "nor afterwards";
  EXPECT_TRUE(acquire("a").has_value());
  EXPECT_EQ(store().change("p", 9, Change::pause), Changed::unknown);
  EXPECT_EQ(store().change("none", 1, Change::resume), Changed::unknown);
}

TEST_P(ProjectionVerbs, SwitchesOnlyToOneThatIsAsFar) {
  ASSERT_TRUE(acquire("a", 1).has_value());
  ASSERT_TRUE(advance(1, 0, 10));
  EXPECT_EQ(store().change("p", 2, Change::switch_to), Changed::unknown);
  ASSERT_TRUE(acquire("a", 2).has_value());
  ASSERT_TRUE(advance(1, 0, 9, 2));
  EXPECT_EQ(store().change("p", 2, Change::switch_to), Changed::refused);
  EXPECT_TRUE(status(1).live);
  ASSERT_TRUE(advance(1, 9, 10, 2));
  EXPECT_EQ(store().change("p", 2, Change::switch_to), Changed::done);
  EXPECT_FALSE(status(1).live);
  EXPECT_TRUE(status(2).live);
  EXPECT_EQ(store().change("p", 2, Change::switch_to), Changed::done) << "again";
  EXPECT_EQ(store().change("p", 1, Change::switch_to), Changed::done) << "and back";
  EXPECT_TRUE(status(1).live);
}

TEST_P(ProjectionVerbs, TheLiveOneCannotBeForgotten) {
  ASSERT_TRUE(acquire("a", 1).has_value());
  ASSERT_TRUE(acquire("a", 2).has_value());
  EXPECT_EQ(store().change("p", 1, Change::forget), Changed::refused);
  EXPECT_TRUE(store().renew({"p", 2, 1}, 0s));
  EXPECT_EQ(store().change("p", 2, Change::forget), Changed::done);
  EXPECT_EQ(store().change("p", 2, Change::forget), Changed::unknown);
  EXPECT_FALSE(advance(1, 0, 1, 2)) << "who ran it cannot write";
  EXPECT_THAT(store().list("p"), SizeIs(1));
}

TEST_P(ProjectionVerbs, OneThatIsRunCannotBeForgotten) {
  ASSERT_TRUE(acquire("a", 1).has_value());
  ASSERT_TRUE(acquire("a", 2).has_value());
  EXPECT_EQ(store().change("p", 2, Change::forget), Changed::busy);
  EXPECT_TRUE(advance(1, 0, 3, 2)) << "nothing has changed";
  clock_.advance(29s);
  EXPECT_EQ(store().change("p", 2, Change::forget), Changed::busy);
  clock_.advance(1s);  // its node is dead
  EXPECT_EQ(store().change("p", 2, Change::forget), Changed::done);
  ASSERT_TRUE(acquire("a", 3).has_value());
  EXPECT_EQ(store().change("p", 3, Change::pause), Changed::done);
  EXPECT_EQ(store().change("p", 3, Change::forget), Changed::done) << "pausing has ended its lease";
}

TEST_P(ProjectionVerbs, WhatWasForgottenIsNotTakenAgain) {
  ASSERT_TRUE(acquire("a", 1).has_value());
  ASSERT_TRUE(acquire("a", 2).has_value());
  EXPECT_TRUE(store().renew({"p", 2, 1}, 0s));
  ASSERT_EQ(store().change("p", 2, Change::forget), Changed::done);
  EXPECT_FALSE(store().acquire("p", 2, "a", 30s).has_value());
  EXPECT_FALSE(store().acquire("p", 2, "a", 30s, ProjectionTake::anyway).has_value());
  EXPECT_THAT(store().list("p"), SizeIs(1));
}

TEST_P(ProjectionVerbs, TakenAnywayItKeepsItsState) {
  ASSERT_TRUE(acquire("a").has_value());
  ASSERT_TRUE(advance(1, 0, 4));
  const auto taken = store().acquire("p", 1, "operator", 30s, ProjectionTake::anyway);
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->epoch, 2);
  EXPECT_EQ(taken->position, LogSeq{4});
  EXPECT_FALSE(advance(1, 4, 5)) << "who ran it is shut out";
  EXPECT_FALSE(acquire("a").has_value());
  EXPECT_TRUE(store().renew({"p", 1, 2}, 0s));
  ASSERT_TRUE(acquire("a").has_value());
  EXPECT_TRUE(store().fail({"p", 1, 3}, {.error = "poison", .stop = true}));
  ASSERT_TRUE(store().acquire("p", 1, "operator", 30s, ProjectionTake::anyway).has_value());
  EXPECT_TRUE(store().renew({"p", 1, 4}, 0s));
  EXPECT_EQ(status().state, ProjectionState::failed);
  EXPECT_EQ(status().failures, 1);
  EXPECT_EQ(status().last_error, "poison");
}

TEST_P(ProjectionVerbs, SkippedEntriesAreNoted) {
  ASSERT_TRUE(acquire("a").has_value());
  Transaction tx = storage().begin();
  EXPECT_TRUE(store().advance(
      tx, {"p", 1, 1}, {.from = LogSeq{0}, .to = LogSeq{4}, .lease = 30s, .skip_error = "cannot digest"}));
  tx.commit();
  EXPECT_EQ(status().position, LogSeq{4});
  EXPECT_EQ(status().skipped, 1);
  const auto skipped = store().skipped("p", 1, {}, 10);
  ASSERT_THAT(skipped, SizeIs(1));
  EXPECT_EQ(skipped[0].seq, LogSeq{4});
  EXPECT_EQ(skipped[0].error, "cannot digest");
  EXPECT_EQ(skipped[0].skipped_at, clock_.now());
  EXPECT_THAT(store().skipped("p", 1, LogSeq{4}, 10), IsEmpty());
}

TEST_P(ProjectionVerbs, RestartBeginsAtTheBeginningAndFences) {
  ASSERT_TRUE(acquire("a").has_value());
  ASSERT_TRUE(advance(1, 0, 5));
  Transaction tx = storage().begin();
  EXPECT_EQ(store().restart(tx, {"p", 1, 9}), Changed::refused) << "not its epoch";
  EXPECT_EQ(store().restart(tx, {"p", 1, 1}), Changed::done);
  EXPECT_EQ(store().restart(tx, {"p", 2, 1}), Changed::unknown);
  tx.commit();
  EXPECT_FALSE(advance(1, 0, 1));
  EXPECT_FALSE(advance(1, 5, 6));
  EXPECT_EQ(acquire("b").value().position, LogSeq{0});
}

TEST_P(ProjectionVerbs, LagInEventsAndTime) {
  ASSERT_TRUE(acquire("a").has_value());
  EXPECT_EQ(status().lag_events, 0);
  for (std::int64_t id = 1; id <= 5; ++id) {
    rows_->log({.id = id});
    clock_.advance(10s);
  }
  EXPECT_EQ(status().head, LogSeq{5});
  EXPECT_EQ(status().lag_events, 5);
  EXPECT_EQ(status().lag_time, 50s);
  ASSERT_TRUE(advance(1, 0, 3));
  EXPECT_EQ(status().lag_events, 2);
  EXPECT_EQ(status().lag_time, 20s);
  ASSERT_TRUE(advance(1, 3, 5));
  EXPECT_EQ(status().lag_events, 0);
  EXPECT_EQ(status().lag_time, 0s);
  rows_->run("delete from " + database_->table("event_log"));
  EXPECT_EQ(status().lag_events, 0) << "purged";
}

TEST_P(ProjectionVerbs, ManyNodesOneWinner) {
  std::atomic<int> winners{0};
  std::vector<std::thread> nodes;
  for (int i = 0; i < 8; ++i) {
    nodes.emplace_back([&, i] {
      if (acquire("node" + std::to_string(i)).has_value()) ++winners;
    });
  }
  for (std::thread& node : nodes) node.join();
  EXPECT_EQ(winners, 1);
}

TEST_P(ProjectionVerbs, WorksOnTheDatabasesOwnClock) {
  test::TestDatabase real(backend());
  ProjectionStore& verbs = real.storage().projection_store();
  ASSERT_EQ(verbs.change("p", 1, Change::enroll), Changed::done);
  ASSERT_TRUE(verbs.acquire("p", 1, "a", 1h).has_value());
  EXPECT_FALSE(verbs.acquire("p", 1, "b", 1h).has_value());
  EXPECT_EQ(verbs.list("p")[0].owner, "a");
  EXPECT_TRUE(verbs.renew({"p", 1, 1}, -1h));
  EXPECT_EQ(verbs.list("p")[0].owner, "");
  EXPECT_TRUE(verbs.acquire("p", 1, "b", 1h).has_value());
}

}  // namespace
}  // namespace postrider::conformance
