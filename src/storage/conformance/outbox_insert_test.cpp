// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "storage/conformance/outbox_fixture.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class OutboxInsert : public OutboxConformance {};
POSTRIDER_FOR_EACH_BACKEND(OutboxInsert);

TEST_P(OutboxInsert, EveryFieldComesBack) {
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
  insert(tx, event, {.key = "kéy"});
  tx.commit();

  const auto claimed = claim_events("n1");
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
  EXPECT_EQ(claimed[0].ordering_key, "kéy");
  EXPECT_EQ(claimed[0].created_at, clock_.now());
  EXPECT_EQ(claimed[0].failed, Attempt{0});
  EXPECT_EQ(claimed[0].lease.token, Token{2}) << "born with 1, raised by the claim";
}

TEST_P(OutboxInsert, WhatIsNotSetStaysUnset) {
  publish("plain");
  const auto claimed = claim_events("n1");
  ASSERT_EQ(claimed.size(), 1U);
  ASSERT_TRUE(claimed[0].event.has_value()) << claimed[0].decode_error;
  const Event& event = *claimed[0].event;
  EXPECT_EQ(event.aggregate_type(), "");
  EXPECT_EQ(event.aggregate_id(), "");
  EXPECT_EQ(event.tenant_id(), "");
  EXPECT_EQ(event.ordering_key(), "");
  EXPECT_TRUE(event.headers().empty());
  Transaction tx = storage().begin();
  const Rows rows = tx.execute(
      "select aggregate_type, aggregate_id, tenant_id, ordering_key, headers, payload_bytes, last_error "
      "from " +
      table());
  for (std::size_t column = 0; column < 7; ++column)
    EXPECT_TRUE(rows.is_null(0, column)) << "column " << column;
}

TEST_P(OutboxInsert, BytesKeepNulsAndEveryOtherByte) {
  std::string payload;
  for (int round = 0; round < 3; ++round) {
    for (int byte = 0; byte < 256; ++byte) payload += static_cast<char>(byte);
  }
  Transaction tx = storage().begin();
  insert(tx, Event::builder("Raw").id(EventId("raw")).bytes(payload).build());
  insert(tx, Event::builder("Raw").id(EventId("nothing")).bytes("").build());
  tx.commit();
  const auto claimed = claim_events("n1");
  ASSERT_EQ(claimed.size(), 2U);
  for (const ClaimedEvent& one : claimed) {
    ASSERT_TRUE(one.event.has_value()) << one.decode_error;
    EXPECT_EQ(one.event->payload_kind(), PayloadKind::bytes);
    EXPECT_EQ(one.event->payload(), one.lease.id == EventId("raw") ? payload : "");
  }
  EXPECT_EQ(record("raw").payload, payload);
  EXPECT_EQ(record("raw").payload_kind, PayloadKind::bytes);
}

TEST_P(OutboxInsert, APayloadOfTheFullMebibyteFits) {
  const std::string json = "\"" + std::string(EventLimits::payload_bytes - 2, 'x') + "\"";
  const std::string bytes(EventLimits::payload_bytes, '\0');
  Transaction tx = storage().begin();
  insert(tx, Event::builder("Big").id(EventId("json")).json(json).build());
  insert(tx, Event::builder("Big").id(EventId("bytes")).bytes(bytes).build());
  tx.commit();
  for (const ClaimedEvent& one : claim_events("n1")) {
    ASSERT_TRUE(one.event.has_value()) << one.decode_error;
    EXPECT_TRUE(one.event->payload() == (one.lease.id == EventId("json") ? json : bytes))
        << one.lease.id.view();
  }
}

TEST_P(OutboxInsert, EveryBoundIsTakenToTheLastCharacter) {
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
          .json("1")
          .build();
  Transaction tx = storage().begin();
  insert(tx, event,
         {.key = wide(EventLimits::ordering_key_chars), .owner = std::string(64, 'o'), .lease = 1s});
  tx.commit();
  const OutboxRecord row = record(event.id().str());
  EXPECT_EQ(row.type, event.type());
  EXPECT_EQ(row.aggregate_id, event.aggregate_id());
  EXPECT_EQ(row.tenant_id, event.tenant_id());
  EXPECT_EQ(row.ordering_key, wide(EventLimits::ordering_key_chars));
  EXPECT_EQ(row.owner, std::string(64, 'o'));
}

TEST_P(OutboxInsert, ABatchIsInTheOrderGiven) {
  std::vector<Event> events;
  std::vector<NewOutboxRow> rows;
  // Ids against the order, so that nobody sorts by them unnoticed.
  for (int i = 999; i >= 0; --i) {
    events.push_back(
        Event::builder("E").id(EventId("e" + std::to_string(1000 + i))).json(std::to_string(i)).build());
  }
  for (const Event& event : events) rows.push_back({.event = &event, .ordering_key = "k", .lease = {}});
  Transaction tx = storage().begin();
  store().insert(tx, "n1", rows);
  tx.commit();
  const auto claimed = claim_events("n1", 1000);
  ASSERT_EQ(claimed.size(), 1000U);
  for (std::size_t i = 0; i < claimed.size(); ++i) EXPECT_EQ(claimed[i].lease.id, events[i].id());
}

TEST_P(OutboxInsert, AnEmptyBatchDoesNothing) {
  Transaction tx = storage().begin();
  store().insert(tx, "n1", {});
  tx.commit();
  EXPECT_EQ(admin().counts().pending, 0);
}

TEST_P(OutboxInsert, AnIdThatExistsIsAConflictThatNamesIt) {
  publish("twice");
  Transaction tx = storage().begin();
  const Error error =
      error_of([&] { insert(tx, Event::builder("E").id(EventId("twice")).json("1").build()); });
  EXPECT_EQ(error.code(), ErrorCode::conflict) << error.what();
  EXPECT_THAT(error.what(), HasSubstr("twice"));
  EXPECT_FALSE(error.retryable());
  tx.rollback();
  EXPECT_EQ(record("twice").payload, "{}") << "the first one stays as it was";
}

TEST_P(OutboxInsert, ARefusedBatchLeavesNothingOfItself) {
  publish("old");
  const Event fresh = Event::builder("E").id(EventId("fresh")).json("1").build();
  const Event old = Event::builder("E").id(EventId("old")).json("1").build();
  const std::vector<NewOutboxRow> rows{{.event = &fresh}, {.event = &old}};
  Transaction tx = storage().begin();
  EXPECT_EQ(error_of([&] { store().insert(tx, "n1", rows); }).code(), ErrorCode::conflict);
  try {
    tx.commit();  // some databases refuse, others commit what else is in the transaction
  } catch (const Error&) {
    EXPECT_FALSE(tx.active());
  }
  EXPECT_FALSE(exists("fresh"));
}

TEST_P(OutboxInsert, ARollbackLeavesNothing) {
  {
    Transaction tx = storage().begin();
    insert(tx, Event::builder("E").id(EventId("gone")).json("1").build());
    tx.rollback();
  }
  {
    Transaction tx = storage().begin();
    insert(tx, Event::builder("E").id(EventId("gone")).json("1").build());
    // destroyed without commit
  }
  EXPECT_FALSE(exists("gone"));
  EXPECT_EQ(claim("n1"), none());
  EXPECT_EQ(storage().pool_stats().in_use, 0U);
}

TEST_P(OutboxInsert, NothingIsSeenBeforeTheCommit) {
  auto other = database().open_another();
  Transaction tx = storage().begin();
  insert(tx, Event::builder("E").id(EventId("later")).json("1").build());
  EXPECT_FALSE(other->outbox_admin_store().find(EventId("later")).has_value());
  tx.commit();
  EXPECT_TRUE(other->outbox_admin_store().find(EventId("later")).has_value());
}

TEST_P(OutboxInsert, AnEndedTransactionIsRefused) {
  Transaction tx = storage().begin();
  tx.commit();
  const Error error = error_of([&] { insert(tx, Event::builder("E").json("1").build()); });
  EXPECT_EQ(error.code(), ErrorCode::not_in_transaction) << error.what();
}

TEST_P(OutboxInsert, ATransactionOfAnotherDatabaseIsRefused) {
  const BackendKind other =
      storage().kind() == BackendKind::sqlite ? BackendKind::postgres : BackendKind::sqlite;
  Transaction tx{std::make_unique<ForeignSession>(other)};
  const Error error = error_of([&] { insert(tx, Event::builder("E").json("1").build()); });
  EXPECT_EQ(error.code(), ErrorCode::wrong_storage) << error.what();
  EXPECT_THAT(error.what(), HasSubstr(to_string(other)));
}

TEST_P(OutboxInsert, TheTableRefusesAnIdThatNoEventCanHave) {
  for (const char* id : {"", "with space", "é", "tab\t"}) {
    Transaction tx = storage().begin();
    EXPECT_THROW(
        tx.execute("insert into " + table() + " (event_id, event_type, payload) values (?, 'T', '1')", id),
        Error)
        << "'" << id << "'";
  }
}

TEST_P(OutboxInsert, ARowOfAnyProgramIsDeliveredWithTheDatabasesDefaults) {
  Transaction tx = storage().begin();
  tx.execute("insert into " + table() + " (event_id, event_type, payload) values (?, ?, ?)", "foreign",
             "Made", "[1]");
  tx.commit();
  clock_.set_wall(std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()) +
                  1h);  // its default is the real time
  const auto claimed = claim_events("n1");
  ASSERT_EQ(claimed.size(), 1U);
  ASSERT_TRUE(claimed[0].event.has_value()) << claimed[0].decode_error;
  EXPECT_EQ(claimed[0].event->type(), "Made");
  EXPECT_EQ(claimed[0].event->payload(), "[1]");
}

TEST_P(OutboxInsert, WithoutTablesTheErrorSaysWhatToCall) {
  test::TestDatabase bare(backend(), {.migrate = false});
  OutboxStore& outbox = bare.storage().outbox_store();
  const Event event = Event::json("E", "1");
  const NewOutboxRow row{.event = &event};
  Transaction tx = bare.storage().begin();
  const std::string hint =
      ". Hint: call storage->migrate() first (postrider migrate), or set StorageOptions::schema (--schema) "
      "to "
      "where the tables are";
  const Error insert_error = error_of([&] { outbox.insert(tx, "n", {&row, 1}); });
  tx.rollback();
  EXPECT_EQ(insert_error.code(), ErrorCode::schema) << insert_error.what();
  EXPECT_THAT(insert_error.what(), EndsWith(hint));
  const Error check_error = error_of([&] { outbox.check_schema(); });
  EXPECT_EQ(check_error.code(), ErrorCode::schema) << check_error.what();
  EXPECT_THAT(check_error.what(), EndsWith(hint));
  store().check_schema();
}

}  // namespace
}  // namespace postrider::conformance
