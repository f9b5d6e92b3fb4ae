// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "storage/conformance/outbox_fixture.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Kind = Completion::Kind;

class OutboxOrder : public OutboxConformance {
 protected:
  /// Until when the row is put off: a lease without an owner.
  [[nodiscard]] std::optional<TimePoint> deferred_until(const std::string& id) {
    Transaction tx = storage().begin();
    const Rows rows = tx.execute(
        "select owner, " + micros_sql("lease_until") + " from " + table() + " where event_id = ?", id);
    if (!rows.is_null(0, 0) || rows.is_null(0, 1)) return std::nullopt;
    return TimePoint(Duration(rows.integer(0, 1)));
  }
};
POSTRIDER_FOR_EACH_BACKEND(OutboxOrder);

TEST_P(OutboxOrder, ARunComesInOrderOfPublication) {
  publish_all({"c", "a", "b"}, {.key = "k"});
  EXPECT_THAT(claim("n1"), ElementsAre("c", "a", "b"));
}

TEST_P(OutboxOrder, HazardO7_ANegativeSeqIsAPlaceLikeAnyOther) {
  publish_all({"a", "b", "c"}, {.key = "k"});
  const std::string set_seq = "update " + table() + " set seq = ? where event_id = ?";
  sql(set_seq, std::numeric_limits<std::int64_t>::min(), "b");
  sql(set_seq, std::int64_t{-7}, "c");
  EXPECT_THAT(claim("n1", 2), ElementsAre("b", "c"));
  for (const char* id : {"b", "c"}) EXPECT_EQ(done(id), 1U);
  EXPECT_THAT(claim("n1", 2, 30s, {"k"}), ElementsAre("a"));
}

TEST_P(OutboxOrder, ARunIsCutByTheLimitAndWaitsForItsHead) {
  publish_all({"1", "2", "3", "4"}, {.key = "k"});
  EXPECT_THAT(claim("n1", 2), ElementsAre("1", "2"));
  EXPECT_EQ(claim("n2"), none()) << "3 and 4 wait for 1 and 2";
  done("1");
  done("2");
  EXPECT_THAT(claim("n1", 10, 30s, {"k"}), ElementsAre("3", "4")) << "at once, although n2 had put them off";
}

TEST_P(OutboxOrder, ARunIsNoLongerThanAskedForAndItsRestIsNotPutOff) {
  publish_all({"a1", "a2", "a3", "a4", "a5"}, {.key = "a"});
  publish("b1", {.key = "b"});
  publish("free");
  EXPECT_THAT(claim("n1", 100, 30s, {}, 2), UnorderedElementsAre("a1", "a2", "b1", "free"));
  for (const char* id : {"a1", "a2"}) done(id);
  EXPECT_THAT(claim("n1", 100, 30s, {"a"}, 2), ElementsAre("a3", "a4"));
  for (const char* id : {"a3", "a4"}) done(id);
  EXPECT_THAT(claim("n1", 100, 30s, {}, 2), ElementsAre("a5")) << "it was due all the time";
}

TEST_P(OutboxOrder, EveryKeyHasItsRun) {
  for (const std::string key : {"a", "b", "c"}) publish_all({key + "1", key + "2", key + "3"}, {.key = key});
  EXPECT_EQ(claim("n1", 100, 30s, {"b"}, 3).size(), 9U) << "the length of a run is no limit for all together";
}

TEST_P(OutboxOrder, KeysAreIndependent) {
  publish_all({"a1", "a2"}, {.key = "a"});
  clock_.advance(1ms);
  publish_all({"b1", "b2"}, {.key = "b"});
  clock_.advance(1ms);
  publish("free");
  EXPECT_THAT(claim("n1", 1), ElementsAre("a1"));
  EXPECT_THAT(claim("n2"), ElementsAre("b1", "b2", "free"));
}

TEST_P(OutboxOrder, AFailedKeyHoldsOnlyItselfBack) {
  publish_all({"a1", "a2"}, {.key = "a"});
  publish("b1", {.key = "b"});
  claim("n1");
  retry("a1", 10s);
  complete(held("a2"), Kind::release);
  complete(held("b1"), Kind::release);
  EXPECT_THAT(claim("n1"), ElementsAre("b1")) << "a2 must not overtake a1";
  clock_.advance(10s);
  EXPECT_THAT(claim("n1"), ElementsAre("a1", "a2")) << "together, also when a2 was put off";
}

TEST_P(OutboxOrder, BlockedByAnotherOwner) {
  publish("1", {.key = "k", .owner = "n1", .lease = 30s});
  publish("2", {.key = "k"});
  EXPECT_EQ(claim("n2"), none());
  clock_.advance(30s);
  EXPECT_THAT(claim("n2"), ElementsAre("1", "2"));
}

TEST_P(OutboxOrder, ARunEndsAtTheFirstRowOfAnotherLivingOwner) {
  publish("1", {.key = "k"});
  publish("2", {.key = "k", .owner = "n2", .lease = 30s});
  publish("3", {.key = "k"});
  EXPECT_THAT(claim("n1"), ElementsAre("1"));
  EXPECT_EQ(complete({EventId("2"), birth_token}, Kind::release), 1U) << "2 was left alone";
}

TEST_P(OutboxOrder, ARunEndsAtTheFirstRowOfItsOwnLivingLease) {
  publish("1", {.key = "k"});
  publish("2", {.key = "k", .owner = "n1", .lease = 30s});
  EXPECT_THAT(claim("n1"), ElementsAre("1")) << "n1 has 2 in memory: taking it again would deliver it twice";
  EXPECT_EQ(complete({EventId("2"), birth_token}, Kind::done), 1U) << "2 was left alone";
}

TEST_P(OutboxOrder, ADelayedEventStopsTheRun) {
  publish("1", {.key = "k"});
  publish("2", {.key = "k", .deliver_in = 1h});
  publish("3", {.key = "k"});
  EXPECT_THAT(claim("n1"), ElementsAre("1"));
  done("1");
  EXPECT_EQ(claim("n1", 10, 30s, {"k"}), none()) << "2 is the head now, and not yet available";
  clock_.advance(1h);
  EXPECT_THAT(claim("n1"), ElementsAre("2", "3"));
}

TEST_P(OutboxOrder, BlockedRowsArePutOffUntilTheHeadFallsDue) {
  publish("1", {.key = "k"});
  publish("2", {.key = "k"});
  claim("n1");
  retry("1", 10s);
  complete(held("2"), Kind::release);
  EXPECT_EQ(deferred_until("2"), std::nullopt);
  EXPECT_EQ(claim("n1"), none());
  EXPECT_EQ(deferred_until("2"), clock_.now() + 10s) << "so that it is not looked at again and again";
  EXPECT_EQ(record("2").status, EventStatus::fresh);
  EXPECT_EQ(record("2").attempts, Attempt{0});
  clock_.advance(10s);
  EXPECT_THAT(claim("n1"), ElementsAre("1", "2"));
  EXPECT_EQ(held("2").token, Token{3}) << "a deferral is no claim: 2 for the first, 3 for this one";
}

TEST_P(OutboxOrder, ADeferralLastsAtLeastATenthOfASecond) {
  publish("1", {.key = "k"});
  publish("2", {.key = "k"});
  claim("n1");
  retry("1", 1ms);
  complete(held("2"), Kind::release);
  EXPECT_EQ(claim("n1"), none());
  clock_.advance(1ms);
  EXPECT_THAT(claim("n1", 1), ElementsAre("1"));
  done("1");
  EXPECT_EQ(claim("n2"), none()) << "2 is put off for 100 ms";
  clock_.advance(99ms);
  EXPECT_THAT(claim("n2"), ElementsAre("2"));
}

TEST_P(OutboxOrder, AHeadThatIsDeadOrDoneLetsTheNextOneGo) {
  publish_all({"1", "2", "3"}, {.key = "k"});
  EXPECT_THAT(claim("n1", 1), ElementsAre("1"));
  dead("1");
  EXPECT_THAT(claim("n1", 1), ElementsAre("2"));
  done("2");
  EXPECT_THAT(claim("n1", 1), ElementsAre("3"));
}

TEST_P(OutboxOrder, ContinuedKeysComeFirst) {
  publish("old");
  clock_.advance(1s);
  publish_all({"k1", "k2"}, {.key = "k"});
  EXPECT_THAT(claim("n1", 2, 30s, {"unknown", "k"}), ElementsAre("k1", "k2"));
  EXPECT_THAT(claim("n1", 2), ElementsAre("old"));
}

TEST_P(OutboxOrder, AContinuedKeyTakesWhatWasPutOffNotWhatIsLeased) {
  publish("1", {.key = "k", .owner = "n1", .lease = 30s});
  publish("2", {.key = "k"});
  EXPECT_EQ(claim("n2"), none());
  EXPECT_TRUE(deferred_until("2"));
  EXPECT_EQ(claim("n1", 10, 30s, {"k"}), none()) << "1 is leased, even if to n1";
  EXPECT_EQ(complete({EventId("1"), birth_token}, Kind::done), 1U);
  EXPECT_THAT(claim("n1", 10, 30s, {"k"}), ElementsAre("2"));
}

TEST_P(OutboxOrder, AHeadThatWasPutOffIsTakenThroughItsFollower) {
  publish("1", {.key = "k", .owner = "n1", .lease = 30s});
  publish("2", {.key = "k"});
  EXPECT_EQ(claim("n2"), none());
  EXPECT_TRUE(deferred_until("2"));
  EXPECT_EQ(complete({EventId("1"), birth_token}, Kind::done), 1U);
  publish("3", {.key = "k"});
  EXPECT_THAT(claim("n2"), ElementsAre("2", "3")) << "nobody holds 2: it must not block 3";
}

TEST_P(OutboxOrder, RowsBehindALeasedHeadAreLookedAtAgainAfterASecond) {
  publish("1", {.key = "k", .owner = "n1", .lease = 30s});
  publish("2", {.key = "k"});
  EXPECT_EQ(claim("n2"), none());
  EXPECT_EQ(complete({EventId("1"), birth_token}, Kind::done), 1U);
  clock_.advance(1s);
  EXPECT_THAT(claim("n2"), ElementsAre("2")) << "should the node that held 1 not go on with the key";
}

TEST_P(OutboxOrder, AContinuedKeyLeavesAnotherOwnersHeadAlone) {
  publish("1", {.key = "k", .owner = "n2", .lease = 30s});
  publish("2", {.key = "k"});
  EXPECT_EQ(claim("n1", 10, 30s, {"k"}), none());
  EXPECT_EQ(complete({EventId("1"), birth_token}, Kind::done), 1U);
}

TEST_P(OutboxOrder, AKeyNamedTwiceIsContinuedOnce) {
  publish_all({"1", "2"}, {.key = "k"});
  EXPECT_THAT(claim("n1", 10, 30s, {"k", "k"}), ElementsAre("1", "2"));
  EXPECT_EQ(held("1").token, Token{2});
}

TEST_P(OutboxOrder, KeysDifferByEveryByte) {
  publish("1", {.key = "Key"});
  clock_.advance(1ms);
  publish("2", {.key = "key"});
  publish("3", {.key = "key "});
  publish("4", {.key = "kéy"});
  EXPECT_THAT(claim("n1", 1), ElementsAre("1"));
  EXPECT_THAT(claim("n2"), UnorderedElementsAre("2", "3", "4"))
      << "another key, whatever a collation thinks of it";
}

TEST_P(OutboxOrder, ABlockedBacklogDoesNotHideOtherKeys) {
  publish("head", {.key = "stuck"});
  claim("n1");
  retry("head", 1h);
  std::vector<Event> events;
  std::vector<NewOutboxRow> rows;
  for (int i = 0; i < 3000; ++i) events.push_back(Event::json("E", "1"));
  for (const Event& event : events) rows.push_back({.event = &event, .ordering_key = "stuck"});
  Transaction tx = storage().begin();
  store().insert(tx, "n", rows);
  tx.commit();
  clock_.advance(1ms);
  publish("other", {.key = "moving"});
  std::vector<std::string> got;
  for (int round = 0; round < 100 && got.empty(); ++round) got = claim("n1", 10);
  EXPECT_THAT(got, ElementsAre("other")) << "after a bounded number of claims, each of bounded work";
}

TEST_P(OutboxOrder, PredecessorsArePendingAndInOrder) {
  publish_all({"z", "y", "x", "w"}, {.key = "k"});
  publish("elsewhere", {.key = "l"});
  EXPECT_THAT(store().predecessors("k", EventId("w"), 10),
              ElementsAre(EventId("z"), EventId("y"), EventId("x")));
  EXPECT_THAT(store().predecessors("k", EventId("w"), 2), ElementsAre(EventId("z"), EventId("y")));
  EXPECT_THAT(store().predecessors("k", EventId("z"), 10), IsEmpty());
  EXPECT_THAT(store().predecessors("k", EventId("unknown"), 10), IsEmpty());
  claim("n1", 2);
  EXPECT_THAT(store().predecessors("k", EventId("w"), 10),
              ElementsAre(EventId("z"), EventId("y"), EventId("x")))
      << "claimed is still pending";
  done("z");
  dead("y");
  EXPECT_THAT(store().predecessors("k", EventId("w"), 10), ElementsAre(EventId("x")));
}

}  // namespace
}  // namespace postrider::conformance
