// SPDX-License-Identifier: Apache-2.0
// What operators do with events that are not finished: find those that are stuck, requeue, cancel.
#include "storage/outbox_pending_store.hpp"

#include <functional>
#include <utility>

#include "core/failpoint.hpp"
#include "storage/conformance/outbox_fixture.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = Completion::Kind;

class OutboxPending : public OutboxConformance {
 protected:
  void TearDown() override { failpoints::clear(); }
  OutboxAdmin verbs(std::function<bool(std::int64_t)> go_on = {}) {
    return OutboxAdmin(storage(), std::move(go_on));
  }
  static std::vector<std::string> ids_of(const std::vector<OutboxRecord>& records) {
    std::vector<std::string> ids;
    for (const OutboxRecord& one : records) ids.push_back(one.id.str());
    return ids;
  }
  std::vector<std::string> pending(const OutboxFilter& filter) { return ids_of(verbs().pending(filter)); }
  static OutboxFilter named(const std::vector<std::string>& ids) {
    OutboxFilter filter;
    for (const std::string& id : ids) filter.ids.push_back(EventId(id));
    return filter;
  }
  bool renewed(const std::string& id, Duration lease = 30s) {
    const LeaseRef one = held(id);
    return !store().renew({&one, 1}, lease).empty();
  }
  /// Whatever a holder may want to write about this row is refused, and leaves it as it is.
  void expect_fenced(const std::string& id) {
    const OutboxRecord before = record(id);
    EXPECT_FALSE(renewed(id, 1h)) << id;
    for (const Kind kind : {Kind::done, Kind::retry, Kind::later, Kind::dead, Kind::release}) {
      EXPECT_EQ(complete(held(id), kind, 1h, 7, "of the old owner"), 0U) << id;
    }
    const OutboxRecord after = record(id);
    EXPECT_EQ(after.status, before.status) << id;
    EXPECT_EQ(after.attempts, before.attempts) << id;
    EXPECT_EQ(after.available_at, before.available_at) << id;
    EXPECT_EQ(after.lease_until, before.lease_until) << id;
    EXPECT_EQ(after.owner, before.owner) << id;
    EXPECT_EQ(after.last_error, before.last_error) << id;
    EXPECT_THAT(after.history, SizeIs(before.history.size())) << id;
  }
};
POSTRIDER_FOR_EACH_BACKEND(OutboxPending);

TEST_P(OutboxPending, StuckIsWhatHasBeenAvailableForSoLong) {
  publish("held");
  publish("keyed", {.key = "k"});
  claim("n1");
  publish("untaken");
  publish("failed", {.owner = "n1", .lease = 1h});
  publish("planned", {.deliver_in = 1h});
  publish("finished", {.owner = "n1", .lease = 1h});
  ASSERT_EQ(complete({EventId("finished"), birth_token}, Kind::done), 1U);
  clock_.advance(4min);
  ASSERT_TRUE(renewed("held"));
  ASSERT_EQ(complete({EventId("failed"), birth_token}, Kind::retry, 30s, 1, "no luck"), 1U);
  EXPECT_THAT(verbs().stuck(5min), IsEmpty());
  clock_.advance(1min);
  ASSERT_TRUE(renewed("held", 1min)) << "a lease that is renewed does not hide it";
  publish("young");
  const std::vector<OutboxRecord> stuck = verbs().stuck(5min);
  EXPECT_THAT(ids_of(stuck), ElementsAre("untaken", "keyed", "held"));
  EXPECT_EQ(stuck[2].owner, "n1");
  EXPECT_EQ(stuck[2].lease_until, clock_.now() + 1min);
  EXPECT_EQ(stuck[0].owner, "");
  EXPECT_THAT(ids_of(verbs().stuck(5min, 1)), ElementsAre("untaken"));
  EXPECT_THAT(ids_of(verbs().stuck(5min, 2, &stuck[0])), ElementsAre("keyed", "held"));
  EXPECT_THAT(verbs().stuck(5min, 2, &stuck[2]), IsEmpty());
  EXPECT_THAT(verbs().stuck(0s), SizeIs(5)) << "all that could have been delivered by now";
}

TEST_P(OutboxPending, FiltersGoTogether) {
  publish_order("a", "Placed", "1", "t");
  publish_order("b", "Placed", "2", "t");
  clock_.advance(1h);
  publish_order("c", "Paid", "1", "u");
  publish("later", {.deliver_in = 2h, .type = "Planned"});
  claim("n1", 2);
  retry("a", 1h, 3, "no route");
  EXPECT_THAT(pending({}), ElementsAre("c", "b", "a", "later"));
  EXPECT_THAT(pending({.types = {"Paid", "Planned"}}), ElementsAre("c", "later"));
  EXPECT_THAT(pending({.types = {"Placed"}, .aggregate_type = "Order", .aggregate_id = "1"}),
              ElementsAre("a"));
  EXPECT_THAT(pending({.tenant_id = "u"}), ElementsAre("c"));
  EXPECT_THAT(pending({.statuses = {EventStatus::retry}}), ElementsAre("a"));
  EXPECT_THAT(pending({.owner = "n1"}), ElementsAre("b"));
  EXPECT_THAT(pending({.older_than = 1h}), ElementsAre("b", "a"));
  EXPECT_THAT(pending({.error_contains = "no r"}), ElementsAre("a"));
  EXPECT_THAT(pending({.error_contains = "No r"}), IsEmpty());
  EXPECT_THAT(pending({.attempts_at_least = 3}), ElementsAre("a"));
  EXPECT_THAT(pending({.delayed = true}), ElementsAre("a", "later"));
  EXPECT_THAT(pending({.delayed = false}), ElementsAre("c", "b"));
  EXPECT_EQ(verbs().cancel({.types = std::vector<std::string>{}}, "x", true), 0) << "an empty list is none";
  EXPECT_EQ(verbs().cancel({.ids = std::vector<EventId>{}}, "x"), 0);
  EXPECT_EQ(verbs().cancel({.ids = {EventId("a"), EventId("b")}, .tenant_id = "u"}, "x"), 0);
  EXPECT_EQ(verbs().cancel({.types = {"Placed"}, .owner = "n1"}, "x", true), 1);
  EXPECT_EQ(verbs().cancel({.types = {"Placed"}, .owner = "n1"}, "x"), 1);
  EXPECT_EQ(record("b").status, EventStatus::dead);
  EXPECT_EQ(admin().counts().pending, 3);
}

TEST_P(OutboxPending, HazardO4_ARequeuedEventIsNoLongerItsOldOwners) {
  publish("a");
  claim("n1");
  retry("a", 1s, 2);
  clock_.advance(1s);
  claim("n1");
  clock_.advance(5s);
  EXPECT_EQ(verbs().requeue({}, true), 1);
  EXPECT_EQ(record("a").owner, "n1") << "a dry run changes nothing";
  EXPECT_EQ(verbs().requeue({}), 1);
  const OutboxRecord row = record("a");
  EXPECT_EQ(row.status, EventStatus::retry);
  EXPECT_EQ(row.attempts, Attempt{2});
  EXPECT_EQ(row.owner, "");
  EXPECT_EQ(row.lease_until, std::nullopt);
  EXPECT_EQ(row.available_at, clock_.now());
  EXPECT_EQ(row.last_error, "no luck");
  expect_fenced("a");
  const LeaseRef old = held("a");
  EXPECT_THAT(claim("n2"), ElementsAre("a"));
  EXPECT_EQ(static_cast<std::int64_t>(held("a").token), static_cast<std::int64_t>(old.token) + 2)
      << "a neighbour's token would mean that only the lease had ended, see InFlightCopies";
  EXPECT_EQ(complete(old, Kind::done), 0U);
  EXPECT_EQ(done("a"), 1U);
  EXPECT_EQ(verbs().requeue({}), 0) << "it is finished";
}

TEST_P(OutboxPending, ARequeueEndsTheWaitForARetryButNotThatOfAPlan) {
  publish_all({"failed", "away"});
  publish("planned", {.deliver_in = 1h});
  claim("n1");
  retry("failed", 1h, 4);
  complete(held("away"), Kind::later, 1h, 0, "the broker is away");
  publish("due");
  EXPECT_EQ(verbs().requeue({.delayed = false}), 0) << "no node has any";
  EXPECT_EQ(verbs().requeue({}, true), 2);
  EXPECT_EQ(verbs().requeue({}), 2);
  EXPECT_EQ(record("failed").attempts, Attempt{4});
  EXPECT_EQ(record("planned").available_at, clock_.now() + 1h);
  EXPECT_EQ(verbs().requeue({.delayed = true}, true), 1);
  EXPECT_EQ(verbs().requeue({.delayed = true}), 1);
  EXPECT_THAT(claim("n2"), SizeIs(4));
}

TEST_P(OutboxPending, HazardO4_ACancelledEventIsADeadLetterThatNobodyRevivesButAReplay) {
  publish_all({"held", "waits"});
  claim("n1");
  retry("waits", 1h, 3);
  clock_.advance(5s);
  EXPECT_EQ(verbs().cancel({}, "sold out", true), 2);
  EXPECT_EQ(admin().counts().dead, 0);
  EXPECT_EQ(verbs().cancel({}, "sold out"), 2);
  for (const char* id : {"held", "waits"}) {
    const OutboxRecord row = record(id);
    EXPECT_EQ(row.status, EventStatus::dead);
    EXPECT_EQ(row.last_error, "cancelled: sold out");
    EXPECT_EQ(row.done_at, clock_.now());
    EXPECT_EQ(row.owner, "");
    expect_fenced(id);
  }
  EXPECT_EQ(record("waits").attempts, Attempt{3});
  EXPECT_THAT(record("waits").history, SizeIs(1)) << "to cancel is no attempt";
  EXPECT_EQ(verbs().cancel({}, "again"), 0);
  EXPECT_EQ(verbs().requeue(named({"held"})), 0) << "dead letters are replayed";
  EXPECT_EQ(verbs().replay_dead_letters({.error_contains = "cancelled: sold"}), 2);
  EXPECT_THAT(claim("n2"), SizeIs(2));
  EXPECT_EQ(done("held"), 1U);
}

TEST_P(OutboxPending, AReasonIsKeptLikeAnyError) {
  publish("a");
  EXPECT_EQ(verbs().cancel({}, std::string(4000, 'x')), 1);
  EXPECT_EQ(record("a").last_error, "cancelled: " + std::string(4000 - 11, 'x'));
}

TEST_P(OutboxPending, ManyAreChangedInSmallTransactionsThatCanBeEnded) {
  std::vector<Event> events;
  std::vector<NewOutboxRow> rows;
  for (int i = 0; i < 450; ++i) events.push_back(Event::json(i % 2 == 0 ? "Even" : "Odd", "{}"));
  for (const Event& event : events) rows.push_back({.event = &event});
  {
    Transaction tx = storage().begin();
    store().insert(tx, "n", rows);
    tx.commit();
  }
  std::vector<std::int64_t> steps;
  EXPECT_EQ(verbs([&](std::int64_t changed) {
              steps.push_back(changed);
              return steps.size() < 2;
            }).cancel({}, "x"),
            400);
  EXPECT_THAT(steps, ElementsAre(200, 400)) << "what is changed stays so";
  EXPECT_EQ(admin().counts().pending, 50);
  EXPECT_EQ(verbs().cancel({.types = {"Even"}}, "x"), 25);
  EXPECT_EQ(admin().counts().dead, 425);
}

TEST_P(OutboxPending, WhatANodeTakesAgainAtOnceIsNotTakenFromItASecondTime) {
  test::TestDatabase real(backend());  // its time goes on between the steps
  OutboxStore& outbox = real.storage().outbox_store();
  std::vector<Event> events;
  std::vector<NewOutboxRow> rows;
  for (int i = 0; i < 250; ++i) events.push_back(Event::json("T", "{}"));
  for (const Event& event : events) rows.push_back({.event = &event});
  {
    Transaction tx = real.storage().begin();
    outbox.insert(tx, "n", rows);
    tx.commit();
  }
  ASSERT_THAT(outbox.claim({.owner = "hangs", .lease = 10min, .limit = 200}), SizeIs(200));
  ASSERT_THAT(outbox.claim({.owner = "hangs", .lease = 1h, .limit = 200}), SizeIs(50));
  std::vector<LeaseRef> taken;
  const std::int64_t requeued =
      OutboxAdmin(real.storage(), [&](std::int64_t) {
        // Due later than what was requeued, and before what is yet to come.
        for (const ClaimedEvent& one : outbox.claim({.owner = "quick", .lease = 20min, .limit = 1000})) {
          taken.push_back(one.lease);
        }
        return taken.size() < 1000;
      }).requeue({});
  EXPECT_EQ(requeued, 250);
  EXPECT_THAT(taken, SizeIs(250)) << "each once";
  for (const LeaseRef& lease : taken) EXPECT_EQ(outbox.renew({&lease, 1}, 1h).size(), 1U);
}

TEST_P(OutboxPending, WhatSomebodyHasLockedIsPassedOver) {
  if (storage().kind() == BackendKind::sqlite) return;  // it has one writer, and no locks on rows
  publish_all({"locked", "a"});
  claim("n1");
  {
    Transaction theirs = storage().begin();
    theirs.execute("select 1 from " + table() + " where event_id = ? for update", "locked");
    EXPECT_EQ(verbs().requeue({}), 1);
    EXPECT_EQ(verbs().cancel(named({"locked", "a"}), "x"), 1);
  }
  EXPECT_EQ(record("a").status, EventStatus::dead);
  EXPECT_EQ(record("locked").owner, "n1");
  EXPECT_EQ(verbs().cancel({}, "x"), 1);
}

TEST_P(OutboxPending, WhatCouldNotCommitChangedNothing) {
#if defined(POSTRIDER_FAILPOINTS)
  publish_all({"a", "b"}, {.key = "k"});
  claim("n1", 1);
  for (const bool cancel : {false, true}) {
    failpoints::set("outbox.admin.before_commit",
                    [] { throw Error(ErrorCode::unavailable, "made to fail"); });
    const auto act = [&] { cancel ? verbs().cancel(named({"a"}), "x") : verbs().requeue(named({"a"})); };
    EXPECT_EQ(error_of(act).code(), ErrorCode::unavailable);
    failpoints::clear();
    EXPECT_EQ(record("a").owner, "n1");
    EXPECT_EQ(record("b").owner, "");
    EXPECT_TRUE(renewed("a"));
  }
#endif
}

// Order per key. The node that has a row may still run it, and what it has behind it, for as long as it
// believes in its leases.

TEST_P(OutboxPending, NothingOfAKeyRunsElsewhereWhileTheNodeThatLostItMayStillRunIt) {
  publish_all({"1", "2", "3"}, {.key = "k"});
  EXPECT_THAT(claim("n1", 2, 30s), ElementsAre("1", "2"));
  clock_.advance(10s);
  ASSERT_TRUE(renewed("2", 30s)) << "its lease ends ten seconds later than that of the first";
  EXPECT_EQ(verbs().requeue(named({"1"})), 1);
  expect_fenced("1");
  expect_fenced("2");  // else it would be done before the first comes again
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(claim("n2"), none()) << "n1 may be running 1, and then 2";
    clock_.advance(9s);
  }
  clock_.advance(3s);
  EXPECT_THAT(claim("n2"), ElementsAre("1", "2", "3"));
}

TEST_P(OutboxPending, ARequeueInTheMiddleOfARunLeavesWhatIsBeforeItToItsNode) {
  publish_all({"1", "2", "3"}, {.key = "k"});
  EXPECT_THAT(claim("n1", 2, 30s), ElementsAre("1", "2"));
  EXPECT_EQ(verbs().requeue(named({"2"})), 1);
  expect_fenced("2");
  EXPECT_EQ(claim("n2"), none());
  EXPECT_EQ(done("1"), 1U);
  EXPECT_EQ(claim("n2", 10, 30s, {"k"}), none()) << "n1 has 2 in memory";
  clock_.advance(30s);
  EXPECT_THAT(claim("n2"), ElementsAre("2", "3"));
}

TEST_P(OutboxPending, AKeyThatWaitsForARetryGoesOnAtItsHead) {
  publish_all({"1", "2"}, {.key = "k"});
  claim("n1", 1);
  retry("1", 1h);
  EXPECT_EQ(claim("n2"), none());
  EXPECT_EQ(verbs().requeue(named({"2"})), 0) << "nobody has it, and it waits for no retry";
  EXPECT_EQ(verbs().requeue({}), 1);
  EXPECT_THAT(claim("n2"), ElementsAre("1", "2"));
}

TEST_P(OutboxPending, WhatIsBehindACancelledEventDoesNotOvertakeItsRunningListener) {
  publish_all({"1", "2", "3", "4"}, {.key = "k"});
  EXPECT_THAT(claim("n1", 2, 30s), ElementsAre("1", "2"));
  clock_.advance(10s);
  EXPECT_EQ(verbs().cancel(named({"1"}), "x"), 1);
  EXPECT_EQ(claim("n2", 10, 30s, {"k"}), none()) << "n1 has 2, and runs it after 1";
  EXPECT_EQ(done("2"), 1U) << "it is still its own";
  EXPECT_EQ(claim("n2", 10, 30s, {"k"}), none()) << "n1 may still be running 1";
  clock_.advance(20s);
  EXPECT_THAT(claim("n2", 10, 30s, {"k"}), ElementsAre("3", "4"));
}

TEST_P(OutboxPending, WhatIsHeldBackBehindACancelledEventIsNotTheNodesOwn) {
  publish_all({"1", "2", "3"}, {.key = "k"});
  claim("n1", 1, 30s);
  EXPECT_EQ(verbs().cancel({.owner = "n1"}, "x"), 1);
  EXPECT_EQ(verbs().cancel({.owner = "n1"}, "x"), 0) << "2 has never been there";
  EXPECT_EQ(record("2").lease_until, clock_.now() + 30s);
  EXPECT_EQ(verbs().requeue({}), 1);
  EXPECT_EQ(claim("n2"), none()) << "n1 may still be running 1, whatever is done to 2";
  EXPECT_EQ(verbs().cancel(named({"2"}), "x"), 1);
  EXPECT_EQ(claim("n2", 10, 30s, {"k"}), none()) << "and then 3 waits for it";
  clock_.advance(30s);
  EXPECT_THAT(claim("n2", 10, 30s, {"k"}), ElementsAre("3"));
}

TEST_P(OutboxPending, ACancelledEventThatNobodyHasHoldsNobodyBack) {
  publish_all({"1", "2", "3"}, {.key = "k"});
  EXPECT_EQ(verbs().cancel(named({"1"}), "x"), 1);
  EXPECT_THAT(claim("n1", 1, 30s), ElementsAre("2"));
  clock_.advance(30s);
  EXPECT_EQ(verbs().cancel(named({"2"}), "x"), 1) << "its lease has ended";
  EXPECT_THAT(claim("n2"), ElementsAre("3"));
}

TEST_P(OutboxPending, AWholeKeyIsCancelledAtOnce) {
  publish_all({"1", "2", "3"}, {.key = "k"});
  publish("other", {.key = "l"});
  claim("n1", 2);
  OutboxFilter those = named({"3", "2", "1"});
  EXPECT_EQ(verbs().cancel(those, "x"), 3);
  EXPECT_EQ(admin().counts().dead, 3);
  publish("4", {.key = "k"});
  EXPECT_THAT(claim("n2"), ::testing::UnorderedElementsAre("other", "4"));
}

TEST_P(OutboxPending, WhatCannotBeMeantIsRefused) {
  const auto refused = [&](const auto& action) {
    const Error error = error_of(action);
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return std::string(error.what());
  };
  EXPECT_THAT(refused([&] { verbs().cancel({}, ""); }), HasSubstr("reason"));
  EXPECT_THAT(refused([&] { verbs().requeue({.statuses = {EventStatus::dead}}); }), HasSubstr("finished"));
  EXPECT_THAT(refused([&] { (void)verbs().stuck(-1s); }), HasSubstr("stuck_for"));
  EXPECT_THAT(refused([&] { (void)verbs().stuck(1s, 0); }), HasSubstr("limit"));
  EXPECT_THAT(refused([&] { verbs().requeue({.types = {std::string("a\0b", 3)}}); }), HasSubstr("type"));
  EXPECT_THAT(refused([&] { verbs().requeue(named(std::vector<std::string>(10'001, "a"))); }),
              HasSubstr("10001 values"));
}

TEST_P(OutboxPending, TimesAreTheDatabases) {
  test::TestDatabase real(backend());
  OutboxAdmin admin(real.storage());
  const Event event = Event::builder("T").id(EventId("a")).json("{}").build();
  const NewOutboxRow row{.event = &event, .ordering_key = "k", .lease = 1h};
  Transaction tx = real.storage().begin();
  real.storage().outbox_store().insert(tx, "n", {&row, 1});
  tx.commit();
  EXPECT_THAT(admin.stuck(1h), IsEmpty());
  EXPECT_THAT(admin.stuck(0s), SizeIs(1));
  EXPECT_EQ(admin.requeue({}), 1);
  EXPECT_EQ(admin.cancel({.stuck_for = 0s}, "x"), 1);
  EXPECT_EQ(admin.counts().dead, 1);
}

}  // namespace
}  // namespace postrider::conformance
