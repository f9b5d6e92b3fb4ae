// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "storage/conformance/queue_fixture.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class QueueInsert : public QueueConformance {};
POSTRIDER_FOR_EACH_BACKEND(QueueInsert);

TEST_P(QueueInsert, EveryFieldComesBack) {
  const TimePoint occurred = clock_.now() - 3s + 7us;
  const Event event = Event::builder("Ordered.v1")
                          .id(EventId("order-1"))
                          .occurred_at(occurred)
                          .aggregate("Order", "№ 17 🚀")
                          .tenant("ténant")
                          .header("trace", "a=b; \"c\" \\ 🧵")
                          .header("empty", "")
                          .json(R"({ "b":1, "a" : "é\u0000\ud83d\ude00 🎉" })")
                          .build();
  Transaction tx = storage().begin();
  const InsertedRow inserted = insert(tx, event, {.priority = 7, .key = "kéy", .dedupe = "dé"});
  tx.commit();
  EXPECT_FALSE(inserted.duplicate);

  clock_.advance(2s);
  const auto claimed = claim_events();
  ASSERT_EQ(claimed.size(), 1U);
  ASSERT_TRUE(claimed[0].event.has_value()) << claimed[0].decode_error;
  const Event& back = *claimed[0].event;
  EXPECT_EQ(back.id(), event.id());
  EXPECT_EQ(back.type(), "Ordered.v1");
  EXPECT_EQ(back.occurred_at(), occurred);
  EXPECT_EQ(back.aggregate_type(), "Order");
  EXPECT_EQ(back.aggregate_id(), "№ 17 🚀");
  EXPECT_EQ(back.tenant_id(), "ténant");
  EXPECT_EQ(back.ordering_key(), "kéy");
  EXPECT_EQ(back.headers(), event.headers());
  EXPECT_EQ(back.payload_kind(), PayloadKind::json);
  EXPECT_EQ(back.payload(), event.payload()) << "byte for byte, spaces and order of names included";
  EXPECT_EQ(claimed[0].claim.id, inserted.id);
  EXPECT_EQ(claimed[0].claim.token, Token{1}) << "born with 0, raised by the claim";
  EXPECT_EQ(claimed[0].ordering_key, "kéy");
  EXPECT_EQ(claimed[0].priority, 7);
  EXPECT_EQ(claimed[0].attempts, 1);
  EXPECT_EQ(claimed[0].crashes, 0);
  EXPECT_EQ(claimed[0].created_at, clock_.now() - 2s);
  EXPECT_EQ(claimed[0].processing_started_at, clock_.now());
  EXPECT_EQ(row("order-1").dedupe, "dé");
}

TEST_P(QueueInsert, ANewRowIsPendingAndNobodys) {
  const InsertedRow inserted = publish("a");
  const QueueRow expected{.id = static_cast<std::int64_t>(inserted.id),
                          .event_id = "a",
                          .type = "Happened",
                          .available = clock_.now(),
                          .created = clock_.now()};
  EXPECT_THAT(queue_rows(), ElementsAre(expected));
  EXPECT_EQ(updated_at("a"), clock_.now());
  const Rows rows =
      sql("select aggregate_type, aggregate_id, tenant_id, ordering_key, dedupe_key, headers, payload_bytes, "
          "last_error, owner from " +
          queue());
  for (std::size_t column = 0; column < 9; ++column)
    EXPECT_TRUE(rows.is_null(0, column)) << "column " << column;
}

TEST_P(QueueInsert, BytesKeepNulsAndEveryOtherByte) {
  std::string payload;
  for (int byte = 0; byte < 256; ++byte) payload += static_cast<char>(byte);
  Transaction tx = storage().begin();
  insert(tx, Event::builder("Raw").id(EventId("raw")).bytes(payload).build());
  insert(tx, Event::builder("Raw").id(EventId("nothing")).bytes("").build());
  tx.commit();
  const auto claimed = claim_events();
  ASSERT_EQ(claimed.size(), 2U);
  for (const QueuedEvent& one : claimed) {
    ASSERT_TRUE(one.event.has_value()) << one.decode_error;
    EXPECT_EQ(one.event->payload_kind(), PayloadKind::bytes);
    EXPECT_EQ(one.event->payload(), one.event->id() == EventId("raw") ? payload : "");
  }
}

TEST_P(QueueInsert, EveryBoundIsTakenToTheLastCharacter) {
  const auto wide = [](std::size_t chars) {
    std::string text;
    for (std::size_t i = 0; i < chars; ++i) text += "🎈";
    return text;
  };
  const Event event =
      Event::builder(wide(EventLimits::type_chars))
          .id(EventId(std::string(EventId::max_size, 'i')))
          .aggregate(wide(EventLimits::aggregate_type_chars), wide(EventLimits::aggregate_id_chars))
          .tenant(wide(EventLimits::tenant_chars))
          .json("\"" + std::string(EventLimits::payload_bytes - 2, 'x') + "\"")
          .build();
  Transaction tx = storage().begin();
  insert(tx, event, {.key = wide(EventLimits::ordering_key_chars), .dedupe = wide(200)});
  tx.commit();
  EXPECT_EQ(row(event.id().str()).dedupe, wide(200));
  const auto claimed = claim_events({.owner = std::string(64, 'o')});
  ASSERT_EQ(claimed.size(), 1U);
  ASSERT_TRUE(claimed[0].event.has_value()) << claimed[0].decode_error;
  EXPECT_EQ(claimed[0].event->type(), event.type());
  EXPECT_EQ(claimed[0].event->aggregate_id(), event.aggregate_id());
  EXPECT_EQ(claimed[0].event->tenant_id(), event.tenant_id());
  EXPECT_EQ(claimed[0].ordering_key, wide(EventLimits::ordering_key_chars));
  EXPECT_TRUE(claimed[0].event->payload() == event.payload());
  EXPECT_EQ(row(event.id().str()).owner, std::string(64, 'o'));
  EXPECT_EQ(finalize(claimed[0].claim), Settled::applied) << "the log takes as much";
}

TEST_P(QueueInsert, ABatchIsInTheOrderGiven) {
  std::vector<Event> events;
  std::vector<NewQueueRow> rows;
  // Event ids against the order, so that nobody sorts by them unnoticed.
  for (int i = 999; i >= 0; --i) {
    events.push_back(
        Event::builder("E").id(EventId("e" + std::to_string(1000 + i))).json(std::to_string(i)).build());
  }
  for (const Event& event : events) rows.push_back({.event = &event});
  Transaction tx = storage().begin();
  const std::vector<InsertedRow> inserted = store().insert(tx, rows);
  tx.commit();
  const auto claimed = claim_events({.limit = 1000});
  ASSERT_EQ(inserted.size(), 1000U);
  ASSERT_EQ(claimed.size(), 1000U);
  for (std::size_t i = 0; i < claimed.size(); ++i) {
    EXPECT_EQ(claimed[i].event->id(), events[i].id());
    EXPECT_EQ(claimed[i].claim.id, inserted[i].id);
    if (i > 0) {
      EXPECT_LT(inserted[i - 1].id, inserted[i].id);
    }
  }
}

TEST_P(QueueInsert, AnEmptyBatchDoesNothing) {
  Transaction tx = storage().begin();
  EXPECT_THAT(store().insert(tx, {}), IsEmpty());
  tx.commit();
  EXPECT_THAT(queue_rows(), IsEmpty());
}

TEST_P(QueueInsert, TheSameEventMayBePublishedTwice) {
  const InsertedRow first = publish("same");
  const InsertedRow second = publish("same");
  EXPECT_NE(first.id, second.id);
  EXPECT_THAT(claim(), ElementsAre("same", "same"));
}

TEST_P(QueueInsert, ADeliveryTimeIsWhenItBecomesAvailable) {
  publish("later", {.deliver_in = 10s});
  EXPECT_EQ(row("later").available, clock_.now() + 10s);
  clock_.advance(10s - 1us);
  EXPECT_THAT(claim(), IsEmpty());
  clock_.advance(1us);
  EXPECT_THAT(claim(), ElementsAre("later"));
}

TEST_P(QueueInsert, ADedupeKeyIsInTheQueueOnce) {
  const InsertedRow first = publish("a", {.dedupe = "d"});
  const InsertedRow second = publish("b", {.dedupe = "d"});
  EXPECT_FALSE(first.duplicate);
  EXPECT_TRUE(second.duplicate);
  EXPECT_EQ(second.id, first.id);
  const InsertedRow other = publish("c", {.dedupe = "D "});
  EXPECT_FALSE(other.duplicate) << "keys are compared byte for byte";
  EXPECT_THAT(claim(), ElementsAre("a", "c"));
  EXPECT_TRUE(publish("b", {.dedupe = "d"}).duplicate) << "in progress is in the queue as well";
  finalize("a");
  EXPECT_FALSE(publish("b", {.dedupe = "d"}).duplicate) << "finished is not";
  EXPECT_THAT(claim(), ElementsAre("b"));
}

TEST_P(QueueInsert, ADedupeKeyInQuarantineStillCounts) {
  const InsertedRow first = publish("a", {.dedupe = "d"});
  claim({.lease = 1s});
  clock_.advance(1s);
  ASSERT_THAT(claim_result({.max_crashes = 1}).quarantined, ElementsAre(first.id));
  const InsertedRow second = publish("b", {.dedupe = "d"});
  EXPECT_TRUE(second.duplicate);
  EXPECT_EQ(second.id, first.id);
}

TEST_P(QueueInsert, DuplicatesInABatchAreAnsweredInItsOrder) {
  const InsertedRow old = publish("old", {.dedupe = "x"});
  std::vector<Event> events;
  for (const char* name : {"a", "b", "c", "d", "e"}) events.push_back(event_of(name));
  const std::vector<NewQueueRow> rows{{.event = &events[0], .dedupe_key = "x"},
                                      {.event = &events[1]},
                                      {.event = &events[2], .dedupe_key = "y"},
                                      {.event = &events[3], .dedupe_key = "y"},
                                      {.event = &events[4], .dedupe_key = "z"}};
  Transaction tx = storage().begin();
  const std::vector<InsertedRow> inserted = store().insert(tx, rows);
  tx.commit();
  ASSERT_EQ(inserted.size(), 5U);
  EXPECT_TRUE(inserted[0].duplicate);
  EXPECT_EQ(inserted[0].id, old.id);
  EXPECT_FALSE(inserted[1].duplicate);
  EXPECT_FALSE(inserted[2].duplicate);
  EXPECT_TRUE(inserted[3].duplicate) << "of the one before it";
  EXPECT_EQ(inserted[3].id, inserted[2].id);
  EXPECT_FALSE(inserted[4].duplicate);
  for (const auto& [name, place] : {std::pair{"b", 1U}, std::pair{"c", 2U}, std::pair{"e", 4U}}) {
    EXPECT_EQ(row(name).id, static_cast<std::int64_t>(inserted[place].id)) << name;
  }
  EXPECT_THAT(claim(), ElementsAre("old", "b", "c", "e"));
}

TEST_P(QueueInsert, WhatTheTableRefusesIsNotTakenForADuplicate) {
  const Event event = event_of("a");
  const NewQueueRow row{.event = &event, .priority = 10, .dedupe_key = "d"};
  Transaction tx = storage().begin();
  EXPECT_THROW(store().insert(tx, {&row, 1}), Error);
  tx.rollback();
  EXPECT_THAT(queue_rows(), IsEmpty());
}

TEST_P(QueueInsert, ARefusedBatchLeavesNothingOfItself) {
  const Event good = event_of("good");
  const Event bad = event_of("bad");
  const std::vector<NewQueueRow> rows{{.event = &good}, {.event = &bad, .priority = -1}};
  Transaction tx = storage().begin();
  EXPECT_THROW(store().insert(tx, rows), Error);
  try {
    tx.commit();  // some databases refuse, others commit what else is in the transaction
  } catch (const Error&) {
    EXPECT_FALSE(tx.active());
  }
  EXPECT_THAT(queue_rows(), IsEmpty());
}

TEST_P(QueueInsert, ARollbackLeavesNothing) {
  {
    Transaction tx = storage().begin();
    insert(tx, event_of("gone"), {.dedupe = "d"});
    tx.rollback();
  }
  EXPECT_THAT(claim(), IsEmpty());
  EXPECT_FALSE(publish("a", {.dedupe = "d"}).duplicate);
  EXPECT_EQ(storage().pool_stats().in_use, 0U);
}

TEST_P(QueueInsert, NothingIsClaimedBeforeTheCommit) {
  auto other = database().open_another();
  Transaction tx = storage().begin();
  insert(tx, event_of("free"));
  insert(tx, event_of("ordered"), {.key = "k"});
  EXPECT_THAT(other->queue_store().claim(request({.owner = "n2"})).events, IsEmpty());
  tx.commit();
  EXPECT_EQ(other->queue_store().claim(request({.owner = "n2"})).events.size(), 2U);
}

TEST_P(QueueInsert, AnEndedTransactionIsRefused) {
  Transaction tx = storage().begin();
  tx.commit();
  const Error error = error_of([&] { insert(tx, event_of("a")); });
  EXPECT_EQ(error.code(), ErrorCode::not_in_transaction) << error.what();
}

TEST_P(QueueInsert, ATransactionOfAnotherDatabaseIsRefused) {
  const BackendKind other =
      storage().kind() == BackendKind::sqlite ? BackendKind::postgres : BackendKind::sqlite;
  Transaction tx{std::make_unique<ForeignSession>(other)};
  const Error error = error_of([&] { insert(tx, event_of("a")); });
  EXPECT_EQ(error.code(), ErrorCode::wrong_storage) << error.what();
  EXPECT_THAT(error.what(), HasSubstr(to_string(other)));
}

TEST_P(QueueInsert, ARowOfAnyProgramIsClaimedWithTheDatabasesDefaults) {
  sql("insert into " + queue() + " (event_id, event_type, payload) values ('x', 'Made', '[1]')");
  clock_.set_wall(std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()) +
                  1h);  // its default is the real time
  const auto claimed = claim_events();
  ASSERT_EQ(claimed.size(), 1U);
  ASSERT_TRUE(claimed[0].event.has_value()) << claimed[0].decode_error;
  EXPECT_EQ(claimed[0].event->type(), "Made");
  EXPECT_EQ(claimed[0].event->payload(), "[1]");
}

TEST_P(QueueInsert, WithoutTablesTheErrorSaysWhatToCall) {
  test::TestDatabase bare(backend(), {.migrate = false});
  QueueStore& queue = bare.storage().queue_store();
  const Event event = Event::json("E", "1");
  const NewQueueRow row{.event = &event};
  Transaction tx = bare.storage().begin();
  const Error insert_error = error_of([&] { queue.insert(tx, {&row, 1}); });
  tx.rollback();
  EXPECT_EQ(insert_error.code(), ErrorCode::schema) << insert_error.what();
  EXPECT_THAT(insert_error.what(), HasSubstr("migrate()"));
  const Error check_error = error_of([&] { queue.check_schema(); });
  EXPECT_EQ(check_error.code(), ErrorCode::schema) << check_error.what();
  EXPECT_THAT(check_error.what(), HasSubstr("migrate()"));
  store().check_schema();
}

}  // namespace
}  // namespace postrider::conformance
