// SPDX-License-Identifier: Apache-2.0
#include "storage/conformance/outbox_fixture.hpp"
#include "storage/next_token.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = Completion::Kind;

class OutboxAdminVerbs : public OutboxConformance {
 protected:
  /// A dead letter with this id, died now.
  void bury(const std::string& id, const std::string& error = "hopeless", const Row& row = {}) {
    publish(id, {.owner = "n", .lease = 1h, .type = row.type});
    ASSERT_EQ(complete({EventId(id), birth_token}, Kind::dead, {}, 3, error), 1U);
  }
  std::vector<std::string> list(const DeadLetterFilter& filter = {}, std::size_t limit = 100,
                                const OutboxRecord* after = nullptr) {
    std::vector<std::string> ids;
    for (const OutboxRecord& one : admin().list_dead(filter, limit, after)) ids.push_back(one.id.str());
    EXPECT_EQ(ids.size() < limit && after == nullptr ? admin().count_dead(filter)
                                                     : static_cast<std::int64_t>(ids.size()),
              static_cast<std::int64_t>(ids.size()));
    return ids;
  }
};
POSTRIDER_FOR_EACH_BACKEND(OutboxAdminVerbs);

TEST_P(OutboxAdminVerbs, CountsOfAnEmptyTable) {
  const OutboxCounts counts = admin().counts();
  EXPECT_EQ(counts.pending, 0);
  EXPECT_EQ(counts.retrying, 0);
  EXPECT_EQ(counts.done, 0);
  EXPECT_EQ(counts.dead, 0);
  EXPECT_EQ(counts.oldest_pending, 0s);
  EXPECT_EQ(counts.oldest_undelivered, 0s);
}

TEST_P(OutboxAdminVerbs, CountsEveryStatus) {
  publish_all({"a", "b", "c", "d", "e"});
  publish_all({"k1", "k2"}, {.key = "k"});
  claim("n1");
  done("a");
  done("b");
  dead("c");
  retry("d", 1h);
  retry("k1", 2h);
  const OutboxCounts counts = admin().counts();
  EXPECT_EQ(counts.pending, 4);
  EXPECT_EQ(counts.retrying, 2);
  EXPECT_EQ(counts.done, 2);
  EXPECT_EQ(counts.dead, 1);
  EXPECT_EQ(counts.oldest_pending, 0s) << "none is overdue: two are leased, two wait for their retry";
}

TEST_P(OutboxAdminVerbs, TheOldestPendingIsTheOneOverdueForLongest) {
  publish("future", {.deliver_in = 1h});
  EXPECT_EQ(admin().counts().oldest_pending, 0s);
  publish("keyed", {.key = "k", .deliver_in = 5s});
  clock_.advance(7s);
  EXPECT_EQ(admin().counts().oldest_pending, 2s);
  publish("free", {.deliver_in = -10s});
  EXPECT_EQ(admin().counts().oldest_pending, 10s);
}

TEST_P(OutboxAdminVerbs, WhatIsRetriedWaitsSinceItWasPublished) {
  publish("planned", {.deliver_in = 24h});
  EXPECT_EQ(admin().counts().oldest_undelivered, 0s) << "it is not due, and nobody has tried it";
  publish_all({"away", "fails"});
  publish("keyed", {.key = "k"});
  clock_.advance(90s);
  EXPECT_EQ(admin().counts().oldest_undelivered, 90s);
  EXPECT_EQ(admin().counts().retrying, 0);
  EXPECT_EQ(admin().counts().last_error, "");
  claim("n1");
  complete(held("away"), Kind::later, 1h, 0, "the broker is away");
  done("keyed");
  done("fails");
  OutboxCounts counts = admin().counts();
  EXPECT_EQ(counts.oldest_pending, 0s) << "none is overdue";
  EXPECT_EQ(counts.oldest_undelivered, 90s);
  EXPECT_EQ(counts.pending, 2);
  EXPECT_EQ(counts.retrying, 1) << "not counted as an attempt, but tried";
  EXPECT_EQ(counts.last_error, "the broker is away");
  clock_.advance(10s);
  publish("later", {.key = "k"});
  claim("n1");
  retry("later", 2h, 1, "no such topic");
  counts = admin().counts();
  EXPECT_EQ(counts.oldest_undelivered, 100s);
  EXPECT_EQ(counts.retrying, 2);
  clock_.advance(3h);
  claim("n1");
  done("away");
  counts = admin().counts();
  EXPECT_EQ(counts.oldest_undelivered, 3h);
  EXPECT_EQ(counts.last_error, "no such topic") << "that of a row with a key";
}

TEST_P(OutboxAdminVerbs, FindShowsTheRowAsItIs) {
  const TimePoint start = clock_.now();
  Transaction tx = storage().begin();
  insert(tx,
         Event::builder("T")
             .id(EventId("x"))
             .aggregate("A", "1")
             .tenant("t")
             .header("h", "v")
             .json("[ 1 ]")
             .build(),
         {.key = "k", .owner = "n1", .lease = 30s});
  tx.commit();
  const OutboxRecord row = record("x");
  EXPECT_EQ(row.type, "T");
  EXPECT_EQ(row.aggregate_type, "A");
  EXPECT_EQ(row.aggregate_id, "1");
  EXPECT_EQ(row.tenant_id, "t");
  EXPECT_EQ(row.ordering_key, "k");
  EXPECT_EQ(row.headers_json, R"({"h":"v"})");
  EXPECT_EQ(row.payload, "[ 1 ]");
  EXPECT_EQ(row.payload_kind, PayloadKind::json);
  EXPECT_EQ(row.status, EventStatus::fresh);
  EXPECT_EQ(row.created_at, start);
  EXPECT_EQ(row.available_at, start);
  EXPECT_FALSE(row.done_at.has_value());
  EXPECT_EQ(row.owner, "n1");
  EXPECT_FALSE(admin().find(EventId("y")).has_value());
}

TEST_P(OutboxAdminVerbs, ListsOldestDeathFirstInPages) {
  for (const char* id : {"d", "b", "e", "a", "c"}) {
    bury(id);
    if (std::string_view(id) != "e") clock_.advance(1s);  // e and a die at the same moment: by id then
  }
  EXPECT_THAT(list(), ElementsAre("d", "b", "a", "e", "c"));
  const auto first = admin().list_dead({}, 3, nullptr);
  ASSERT_EQ(first.size(), 3U);
  EXPECT_EQ(first[0].last_error, "hopeless");
  EXPECT_EQ(first[0].attempts, Attempt{3});
  EXPECT_THAT(list({}, 3, &first.back()), ElementsAre("e", "c"))
      << "the page may end between two of the same time";
  const auto second = admin().list_dead({}, 3, &first.back());
  EXPECT_THAT(list({}, 3, &second.back()), IsEmpty());
}

TEST_P(OutboxAdminVerbs, ListsNothingButDeadLetters) {
  publish_all({"a", "b"});
  claim("n1");
  done("a");
  EXPECT_THAT(list(), IsEmpty());
  EXPECT_EQ(admin().count_dead({}), 0);
}

TEST_P(OutboxAdminVerbs, FiltersByEachField) {
  const auto bury_event = [&](EventBuilder& builder, const std::string& error) {
    const Event event = builder.json("1").build();
    Transaction tx = storage().begin();
    insert(tx, event, {.owner = "n", .lease = 1h});
    tx.commit();
    ASSERT_EQ(complete({event.id(), birth_token}, Kind::dead, {}, 1, error), 1U);
  };
  const TimePoint start = clock_.now();
  bury_event(Event::builder("A").id(EventId("1")).aggregate("User", "u1").tenant("t1"), "HTTP 500 at 100%");
  clock_.advance(1s);
  bury_event(Event::builder("B").id(EventId("2")).aggregate("User", "u2").tenant("t2"), "http 1000_");
  clock_.advance(1s);
  bury_event(Event::builder("A").id(EventId("3")).aggregate("Order", "u1").tenant("t2"), "100x, 'quoted' 🎯");

  EXPECT_THAT(list({.ids = {EventId("3"), EventId("1"), EventId("none")}}), ElementsAre("1", "3"));
  EXPECT_THAT(list({.type = "A"}), ElementsAre("1", "3"));
  EXPECT_THAT(list({.type = "a"}), IsEmpty());
  EXPECT_THAT(list({.aggregate_type = "User"}), ElementsAre("1", "2"));
  EXPECT_THAT(list({.aggregate_id = "u1"}), ElementsAre("1", "3"));
  EXPECT_THAT(list({.tenant_id = "t2"}), ElementsAre("2", "3"));
  EXPECT_THAT(list({.error_contains = "100%"}), ElementsAre("1")) << "a percent sign is a percent sign";
  EXPECT_THAT(list({.error_contains = "1000_"}), ElementsAre("2")) << "and so is an underscore";
  EXPECT_THAT(list({.error_contains = "HTTP"}), ElementsAre("1")) << "case counts";
  EXPECT_THAT(list({.error_contains = "'quoted' 🎯"}), ElementsAre("3"));
  EXPECT_THAT(list({.died_after = start + 1s}), ElementsAre("2", "3")) << "inclusive";
  EXPECT_THAT(list({.died_before = start + 1s}), ElementsAre("1")) << "exclusive";
  EXPECT_THAT(list({.type = "A", .tenant_id = "t2"}), ElementsAre("3"));
  EXPECT_THAT(list({.type = "'; drop table x; --"}), IsEmpty());
}

TEST_P(OutboxAdminVerbs, ReplayMakesThemNewAndDueNow) {
  bury("a", "why it died");
  bury("b");
  clock_.advance(1h);
  EXPECT_EQ(admin().revive_dead({.ids = {EventId("a")}}, 100), 1);
  const OutboxRecord row = record("a");
  EXPECT_EQ(row.status, EventStatus::fresh);
  EXPECT_EQ(row.attempts, Attempt{0});
  EXPECT_EQ(row.available_at, clock_.now());
  EXPECT_FALSE(row.done_at.has_value());
  EXPECT_EQ(row.last_error, "") << "nobody has tried it since";
  ASSERT_EQ(row.history.size(), 1U);
  EXPECT_EQ(row.history[0].error, "why it died");
  EXPECT_EQ(admin().counts().pending, 1);
  EXPECT_EQ(admin().counts().retrying, 0);
  EXPECT_EQ(admin().counts().last_error, "");
  EXPECT_EQ(complete({EventId("a"), birth_token}, Kind::done), 0U) << "whoever held it before is fenced";
  EXPECT_THAT(claim("n1"), ElementsAre("a"));
  EXPECT_EQ(held("a").token, next_token(static_cast<std::int64_t>(next_life(birth_token))))
      << "raised by the replay, then by the claim";
  EXPECT_NE(life_of(held("a").token), life_of(birth_token));
  EXPECT_EQ(record("b").status, EventStatus::dead);
}

TEST_P(OutboxAdminVerbs, ADeadLetterWhoseTokenCannotGrowIsEditedAndReplayed) {
  for (const char* id : {"edited", "replayed"}) bury(id);
  sql("update " + table() + " set token = ?", last_token);
  EXPECT_TRUE(admin().edit_dead(EventId("edited"), PayloadKind::json, "[1]", {}));
  EXPECT_EQ(admin().revive_dead({.ids = {EventId("replayed")}}, 100), 1);
  EXPECT_EQ(claim("n1"), std::vector<std::string>{"replayed"});
  EXPECT_EQ(held("replayed").token, next_token(static_cast<std::int64_t>(next_life(Token{last_token}))));
}

TEST_P(OutboxAdminVerbs, ReplayHasALimitAndTakesTheOldestDeathsFirst) {
  for (const char* id : {"c", "a", "b"}) {
    bury(id);
    clock_.advance(1s);
  }
  EXPECT_EQ(admin().revive_dead({}, 2), 2);
  EXPECT_THAT(list(), ElementsAre("b"));
  EXPECT_EQ(admin().revive_dead({}, 2), 1);
  EXPECT_EQ(admin().revive_dead({}, 2), 0);
}

TEST_P(OutboxAdminVerbs, AReplayedEventTakesItsPlaceInTheOrderOfItsKey) {
  publish_all({"1", "2"}, {.key = "k"});
  claim("n1");
  dead("1");
  complete(held("2"), Kind::release);
  admin().revive_dead({}, 10);
  EXPECT_THAT(claim("n1"), ElementsAre("1", "2"));
}

TEST_P(OutboxAdminVerbs, EditGivesADeadLetterANewPayload) {
  bury("a");
  EXPECT_TRUE(admin().edit_dead(EventId("a"), PayloadKind::json, R"({"fixed": true})", R"({"by":"Ada"})"));
  EXPECT_EQ(record("a").payload, R"({"fixed": true})");
  EXPECT_EQ(record("a").headers_json, R"({"by":"Ada"})");
  EXPECT_EQ(record("a").status, EventStatus::dead);
  EXPECT_TRUE(
      admin().edit_dead(EventId("a"), PayloadKind::bytes, std::string_view("\0\xff", 2), std::nullopt));
  EXPECT_EQ(record("a").payload, std::string("\0\xff", 2));
  EXPECT_EQ(record("a").payload_kind, PayloadKind::bytes);
  EXPECT_EQ(record("a").headers_json, R"({"by":"Ada"})") << "as they were";
  EXPECT_TRUE(admin().edit_dead(EventId("a"), PayloadKind::bytes, std::string_view("\0\xff", 2), ""))
      << "also when the payload stays the same";
  EXPECT_EQ(record("a").headers_json, "");
  EXPECT_TRUE(admin().edit_dead(EventId("a"), PayloadKind::json, "1", ""));
  EXPECT_TRUE(admin().edit_dead(EventId("a"), PayloadKind::json, "1", ""))
      << "nothing changes, yet it is there";
  admin().revive_dead({}, 10);
  const auto claimed = claim_events("n1");
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(claimed[0].event.value().payload(), "1");
}

TEST_P(OutboxAdminVerbs, OnlyDeadLettersCanBeEdited) {
  publish("a");
  EXPECT_FALSE(admin().edit_dead(EventId("a"), PayloadKind::json, "2", std::nullopt));
  EXPECT_FALSE(admin().edit_dead(EventId("unknown"), PayloadKind::json, "2", std::nullopt));
  EXPECT_EQ(record("a").payload, "{}");
}

TEST_P(OutboxAdminVerbs, HazardO12_PurgeDeletesOldFinishedRowsInBatches) {
  publish_all({"d1", "d2", "d3", "pending"});
  claim("n1");
  for (const char* id : {"d1", "d2", "d3"}) {
    done(id);
    clock_.advance(1h);
  }
  bury("dead");
  EXPECT_EQ(admin().count_purgeable(EventStatus::done, 2h), 2);
  EXPECT_EQ(admin().count_purgeable(EventStatus::dead, 2h), 0);
  EXPECT_EQ(admin().purge_batch(EventStatus::done, 2h, 1), 1);
  EXPECT_FALSE(exists("d1")) << "the oldest first";
  EXPECT_EQ(admin().purge_batch(EventStatus::done, 2h, 10), 1);
  EXPECT_EQ(admin().purge_batch(EventStatus::done, 2h, 10), 0);
  EXPECT_TRUE(exists("d3"));
  EXPECT_TRUE(exists("pending"));
  EXPECT_EQ(admin().purge_batch(EventStatus::dead, 0s, 10), 1);
  EXPECT_FALSE(exists("dead"));
  clock_.advance(1000h);
  EXPECT_EQ(admin().purge_batch(EventStatus::done, 0s, 10), 1);
  EXPECT_TRUE(exists("pending")) << "never";
}

TEST_P(OutboxAdminVerbs, PendingRowsCannotBePurged) {
  for (const EventStatus status : {EventStatus::fresh, EventStatus::retry}) {
    EXPECT_EQ(error_of([&] { admin().purge_batch(status, 0s, 10); }).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(error_of([&] { (void)admin().count_purgeable(status, 0s); }).code(),
              ErrorCode::invalid_argument);
  }
}

TEST_P(OutboxAdminVerbs, AnEmptyListOfIdsMatchesNothing) {
  bury("a");
  const DeadLetterFilter nobody{.ids = std::vector<EventId>{}};
  EXPECT_EQ(admin().count_dead(nobody), 0);
  EXPECT_EQ(admin().list_dead(nobody, 10, nullptr).size(), 0U);
  EXPECT_EQ(admin().revive_dead(nobody, 10), 0);
  EXPECT_EQ(admin().count_dead({.ids = {}}), 1) << "braces alone set nothing";
}

TEST_P(OutboxAdminVerbs, AFilterWithTooManyIdsIsRefused) {
  DeadLetterFilter filter;
  filter.ids = std::vector(10'001, EventId("x"));
  EXPECT_EQ(error_of([&] { (void)admin().count_dead(filter); }).code(), ErrorCode::invalid_argument);
  filter.ids = std::vector(10'000, EventId("x"));
  EXPECT_EQ(admin().count_dead(filter), 0) << "ten thousand are taken";
}

TEST_P(OutboxAdminVerbs, WorksOnTheDatabasesOwnClock) {
  test::TestDatabase real(backend());
  OutboxStore& outbox = real.storage().outbox_store();
  OutboxAdminStore& verbs = real.storage().outbox_admin_store();
  const Event event = Event::builder("E").id(EventId("real")).json("1").build();
  const NewOutboxRow row{.event = &event};
  Transaction tx = real.storage().begin();
  outbox.insert(tx, "n", {&row, 1});
  tx.commit();
  EXPECT_LT(verbs.counts().oldest_pending, 1h);
  EXPECT_GE(verbs.counts().oldest_pending, 0s);
  const auto claimed = outbox.claim({.owner = "n", .lease = 1h, .limit = 1});
  ASSERT_EQ(claimed.size(), 1U);
  const Completion gone{.lease = claimed[0].lease, .kind = Kind::dead, .failed = Attempt{1}, .error = "x"};
  EXPECT_EQ(outbox.complete({&gone, 1}), 1U);
  EXPECT_EQ(verbs.count_purgeable(EventStatus::dead, 1h), 0);
  EXPECT_EQ(verbs.revive_dead({}, 1), 1);
  EXPECT_EQ(outbox.claim({.owner = "n", .lease = 1h, .limit = 1}).size(), 1U) << "available now";
  const OutboxRecord found = verbs.find(EventId("real")).value();
  const auto now = std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now());
  EXPECT_LT(found.created_at, now + 1h) << "UTC";
  EXPECT_GT(found.created_at, now - 1h);
}

}  // namespace
}  // namespace postrider::conformance
