// SPDX-License-Identifier: Apache-2.0
// What becomes of an event that is given back: after a failure, or as if nobody had had it.
#include "core/utf8.hpp"
#include "storage/conformance/queue_fixture.hpp"
#include "storage/outbox_store.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class QueueRetry : public QueueConformance {};
POSTRIDER_FOR_EACH_BACKEND(QueueRetry);

TEST_P(QueueRetry, RetryComesBackAfterItsDelayWithItsStates) {
  publish("a");
  claim();
  const TimePoint started = clock_.now();
  clock_.advance(1s);
  EXPECT_EQ(retry(held("a"), 5s, three_results, "busy"), Settled::applied);
  const QueueRow after = row("a");
  EXPECT_EQ(after.status, QueueStatus::pending);
  EXPECT_EQ(after.available, clock_.now() + 5s);
  EXPECT_EQ(after.owner, "");
  EXPECT_FALSE(after.lease_until.has_value());
  EXPECT_EQ(after.error, "busy");
  EXPECT_EQ(after.attempts, 1);
  EXPECT_EQ(after.token, 1);
  EXPECT_EQ(after.started, started);
  EXPECT_EQ(updated_at("a"), clock_.now());
  const std::int64_t id = after.id;
  EXPECT_THAT(state_rows(),
              ::testing::UnorderedElementsAre(StateRow{id, three_results[0]}, StateRow{id, three_results[1]},
                                              StateRow{id, three_results[2]}));
  clock_.advance(5s - 1us);
  EXPECT_THAT(claim(), IsEmpty());
  clock_.advance(1us);
  const auto claimed = claim_events();
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(claimed[0].attempts, 2);
  const HandlerResult done{.handler = "bill", .failed = Attempt{5}};
  EXPECT_EQ(retry(held("a"), 0s, {done}, ""), Settled::applied);
  EXPECT_THAT(state_rows(),
              ::testing::UnorderedElementsAre(StateRow{id, three_results[0]}, StateRow{id, done},
                                              StateRow{id, three_results[2]}))
      << "replaced by handler";
  EXPECT_EQ(row("a").error, "");
}

TEST_P(QueueRetry, ARetryGoesToThePlaceOfItsNewTime) {
  publish_all({"a", "b"});
  claim({.limit = 1});
  clock_.advance(1s);
  retry("a", 0s);
  EXPECT_THAT(claim(), ElementsAre("b", "a"));
}

TEST_P(QueueRetry, ReleaseIsAsIfItHadNotBeenClaimed) {
  publish("first");
  publish("a", {.priority = 1});
  const QueueRow before = row("a");
  claim({.limit = 1});
  clock_.advance(1s);
  EXPECT_EQ(release("a"), Settled::applied);
  QueueRow expected = before;
  expected.token = 1;  // stays raised
  expected.started = clock_.now() - 1s;
  EXPECT_EQ(row("a"), expected);
  const auto claimed = claim_events();
  ASSERT_EQ(claimed.size(), 2U);
  EXPECT_EQ(claimed[0].event->id(), EventId("a")) << "in its old place";
  EXPECT_EQ(claimed[0].attempts, 1);
  EXPECT_EQ(claimed[0].claim.token, Token{2});
}

TEST_P(QueueRetry, AReleaseMayBringADelay) {
  publish("a");
  claim();
  EXPECT_EQ(settle({.claim = held("a"), .kind = Settlement::Kind::release, .delay = 5s}), Settled::applied);
  EXPECT_EQ(row("a").attempts, 0);
  clock_.advance(5s - 1us);
  EXPECT_THAT(claim(), IsEmpty());
  clock_.advance(1us);
  EXPECT_THAT(claim(), ElementsAre("a"));
}

TEST_P(QueueRetry, WhatWasGivenBackCannotBeGivenBackAgain) {
  publish_all({"released", "retried"});
  claim();
  release("released");
  retry("retried", 5s);
  const auto before = all_rows();
  clock_.advance(1s);
  for (const char* name : {"released", "retried"}) {
    EXPECT_EQ(release(name), Settled::repeated) << "attempts must not fall again";
    EXPECT_EQ(retry(held(name), 1h, three_results), Settled::repeated);
    EXPECT_EQ(finalize(name), Settled::stale) << "it is anybody's now";
  }
  EXPECT_EQ(all_rows(), before);
}

TEST_P(QueueRetry, LongErrorsAreCutOnACharacter) {
  publish_all({"a", "b"});
  claim();
  std::string error;
  for (std::size_t i = 0; i < max_error_chars + 1; ++i) error += "é";
  const HandlerResult failed{
      .handler = "h", .verdict = HandlerVerdict::transient_error, .failed = Attempt{1}, .error = error};
  retry(held("a"), 0s, {failed}, error);
  EXPECT_EQ(row("a").error, error.substr(0, 2 * max_error_chars));
  EXPECT_EQ(state_rows().at(0).result.error, error.substr(0, 2 * max_error_chars));
  finalize(held("b"), QueueStatus::failed, {failed});
  EXPECT_EQ(logged("b").results.at(0).error, error.substr(0, 2 * max_error_chars));
}

TEST_P(QueueRetry, WhatIsNoTextIsRepaired) {
  publish("a");
  claim();
  const std::string broken("a\0b\xff", 4);
  const HandlerResult failed{
      .handler = "h", .verdict = HandlerVerdict::transient_error, .failed = Attempt{1}, .error = broken};
  EXPECT_EQ(retry(held("a"), 0s, {failed}, broken), Settled::applied);
  EXPECT_EQ(row("a").error, utf8_repaired(broken));
  EXPECT_EQ(state_rows().at(0).result.error, utf8_repaired(broken));
}

}  // namespace
}  // namespace postrider::conformance
