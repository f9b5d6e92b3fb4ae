// SPDX-License-Identifier: Apache-2.0
// What fails between two steps leaves nothing half done. (The crash tests kill the process at the same
// places.)
#include "core/failpoint.hpp"
#include "storage/conformance/queue_fixture.hpp"

#if defined(POSTRIDER_FAILPOINTS)
namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class QueueFailpoint : public QueueConformance {
 protected:
  void TearDown() override { failpoints::clear(); }
  /// The error of `action` when the step of this name fails.
  template <class Action>
  Error failing(const std::string& step, Action action) {
    failpoints::set(step, [] { throw Error(ErrorCode::unavailable, "made to fail"); });
    const Error error = error_of(action);
    failpoints::clear();
    return error;
  }
  std::string step(const std::string& name) { return backend() + ".queue." + name; }
};
POSTRIDER_FOR_EACH_BACKEND(QueueFailpoint);

TEST_P(QueueFailpoint, AClaimThatCouldNotCommitTookNothing) {
  publish("a");
  publish("b", {.key = "k"});
  EXPECT_EQ(failing(step("claim.before_commit"), [&] { claim(); }).code(), ErrorCode::unavailable);
  for (const QueueRow& one : queue_rows()) EXPECT_EQ(one.token, 0);
  EXPECT_EQ(claim().size(), 2U);
}

TEST_P(QueueFailpoint, WhatSomebodyTookBetweenLookingAndTakingIsNotTakenTwice) {
  publish_all({"a", "b", "c"});
  auto other = database().open_another();
  std::vector<std::string> theirs;
  failpoints::set(step("claim.found"), [&] {
    failpoints::clear();
    theirs = names_of(other->queue_store().claim(request({.owner = "faster", .limit = 2})).events);
  });
  const std::vector<std::string> ours = claim({.owner = "slower"});
  if (backend() == "sqlite") {  // elsewhere looking and taking are one step
    EXPECT_THAT(theirs, ElementsAre("a", "b"));
    EXPECT_THAT(ours, ElementsAre("c"));
  }
  for (const QueueRow& one : queue_rows()) EXPECT_EQ(one.token, 1) << one.event_id;
}

TEST_P(QueueFailpoint, AClaimThatWasCommittedComesFreeWithItsLease) {
  publish("a");
  EXPECT_EQ(failing(step("claim.after_commit"), [&] { claim(); }).code(), ErrorCode::unavailable);
  EXPECT_THAT(claim(), IsEmpty());
  clock_.advance(30s);
  const auto claimed = claim_events();
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(claimed[0].attempts, 2);
}

TEST_P(QueueFailpoint, SettlementsAreAllOrNothing) {
  publish_all({"a", "b", "c"});
  claim();
  const std::vector<Settlement> batch{
      {.claim = held("a")},
      {.claim = held("b"), .kind = Settlement::Kind::retry, .results = {{.handler = "h"}}, .delay = 1s},
      {.claim = held("c"), .kind = Settlement::Kind::release}};
  const auto before = queue_rows();
  EXPECT_EQ(failing(step("settle.before_commit"), [&] { store().settle(batch); }).code(),
            ErrorCode::unavailable);
  EXPECT_EQ(queue_rows(), before);
  EXPECT_THAT(log_rows(), IsEmpty());
  EXPECT_THAT(state_rows(), IsEmpty());
  EXPECT_THAT(store().settle(batch), ElementsAre(Settled::applied, Settled::applied, Settled::applied));
}

TEST_P(QueueFailpoint, ASettlementInDoubtMayBeRepeated) {
  publish_all({"a", "b", "c"});
  claim();
  const std::vector<Settlement> batch{{.claim = held("a")},
                                      {.claim = held("b"), .kind = Settlement::Kind::retry, .delay = 1s},
                                      {.claim = held("c"), .kind = Settlement::Kind::release}};
  EXPECT_EQ(failing(step("settle.after_commit"), [&] { store().settle(batch); }).code(),
            ErrorCode::unavailable);
  const auto before = queue_rows();
  EXPECT_THAT(store().settle(batch), ElementsAre(Settled::repeated, Settled::repeated, Settled::repeated));
  EXPECT_EQ(queue_rows(), before);
  EXPECT_THAT(logged(), ElementsAre("a"));
}

}  // namespace
}  // namespace postrider::conformance
#endif
