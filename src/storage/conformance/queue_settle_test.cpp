// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <set>
#include <thread>

#include "storage/conformance/queue_fixture.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using SettlementKind = Settlement::Kind;

class QueueSettle : public QueueConformance {
 protected:
  static Settlement finalized(const Claim& claim) {
    return {.claim = claim, .kind = SettlementKind::finalize};
  }
};
POSTRIDER_FOR_EACH_BACKEND(QueueSettle);

TEST_P(QueueSettle, FinalizeMovesTheWholeRowToTheLog) {
  const TimePoint occurred = clock_.now() - 3s + 7us;
  const Event event = Event::builder("Ordered.v1")
                          .id(EventId("order-1"))
                          .occurred_at(occurred)
                          .aggregate("Order", "№ 17")
                          .tenant("ténant")
                          .header("trace", "🧵")
                          .json(R"({ "b":1, "a" : 2 })")
                          .build();
  const TimePoint created = clock_.now();
  Transaction tx = storage().begin();
  const InsertedRow inserted = insert(tx, event, {.priority = 3, .key = "kéy"});
  tx.commit();
  claim({.lease = 1s});
  clock_.advance(2s);
  claim();  // an abandoned one: attempts 2, crashes 1
  const TimePoint started = clock_.now();
  clock_.advance(5s);
  EXPECT_EQ(finalize(held("order-1"), QueueStatus::completed_with_errors, three_results), Settled::applied);
  EXPECT_THAT(queue_rows(), IsEmpty());
  EXPECT_THAT(log_rows(), ElementsAre(LogRow{.seq = 1,
                                             .id = static_cast<std::int64_t>(inserted.id),
                                             .token = 2,
                                             .event_id = "order-1",
                                             .key = "kéy",
                                             .priority = 3,
                                             .status = QueueStatus::completed_with_errors,
                                             .attempts = 2,
                                             .crashes = 1,
                                             .created = created,
                                             .started = started,
                                             .finalized = clock_.now(),
                                             .results = three_results}));
  const Rows rows = sql("select event_type, aggregate_type, aggregate_id, tenant_id, payload, headers, " +
                        micros_sql("occurred_at") + ", payload_bytes from " + log());
  EXPECT_EQ(rows.text(0, 0), "Ordered.v1");
  EXPECT_EQ(rows.text(0, 1), "Order");
  EXPECT_EQ(rows.text(0, 2), "№ 17");
  EXPECT_EQ(rows.text(0, 3), "ténant");
  EXPECT_EQ(rows.text(0, 4), event.payload());
  EXPECT_EQ(rows.text(0, 5), event.headers_json());
  EXPECT_EQ(rows.integer(0, 6), occurred.time_since_epoch().count());
  EXPECT_TRUE(rows.is_null(0, 7));
}

TEST_P(QueueSettle, BytesAndWhatIsNotSetReachTheLogAsTheyAre) {
  Transaction tx = storage().begin();
  insert(tx, Event::builder("Raw").id(EventId("raw")).bytes(std::string("\0\xff\r\n", 4)).build());
  tx.commit();
  claim();
  EXPECT_EQ(finalize(held("raw"), QueueStatus::failed), Settled::applied);
  EXPECT_EQ(logged("raw").status, QueueStatus::failed);
  const Rows rows = sql("select " + hex_sql("payload_bytes") +
                        ", payload, headers, aggregate_type, aggregate_id, tenant_id, ordering_key, results "
                        "from " +
                        log());
  EXPECT_EQ(rows.text(0, 0), "00ff0d0a");
  for (std::size_t column = 1; column < 8; ++column) EXPECT_TRUE(rows.is_null(0, column)) << column;
}

TEST_P(QueueSettle, ABatchIsNumberedFromOneOnWithoutGaps) {
  publish_all({"a", "b", "c", "d", "e"});
  claim();
  const std::vector<Settlement> batch{finalized(held("c")), finalized(held("a")), finalized(held("b"))};
  EXPECT_THAT(store().settle(batch), ElementsAre(Settled::applied, Settled::applied, Settled::applied));
  EXPECT_EQ(finalize("e"), Settled::applied);
  EXPECT_EQ(finalize("d"), Settled::applied);
  std::vector<std::int64_t> numbers;
  for (const LogRow& one : log_rows()) numbers.push_back(one.seq);
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(logged("e").seq, 4);
}

TEST_P(QueueSettle, HazardQ5_ALateLowIdGetsAHigherNumber) {
  publish_all({"slow", "quick"});
  claim();
  finalize("quick");
  clock_.advance(1s);
  finalize("slow");
  EXPECT_THAT(logged(), ElementsAre("quick", "slow"));
  EXPECT_EQ(logged("slow").seq, 2);
}

TEST_P(QueueSettle, HazardQ2_FinalizingTwiceIsOneRow) {
  publish("a");
  claim();
  EXPECT_EQ(finalize(held("a"), QueueStatus::completed), Settled::applied);
  const auto before = all_rows();
  clock_.advance(1s);
  EXPECT_EQ(finalize(held("a"), QueueStatus::failed), Settled::repeated);
  EXPECT_EQ(retry("a", 1s), Settled::repeated);
  EXPECT_EQ(release("a"), Settled::repeated);
  EXPECT_EQ(all_rows(), before);
}

TEST_P(QueueSettle, HazardQ1_AStaleClaimIsRefused) {
  publish("a");
  claim({.owner = "n1"});
  const Claim old = held("a");
  clock_.advance(30s);
  claim({.owner = "n2"});
  const auto before = all_rows();
  EXPECT_EQ(finalize(old, QueueStatus::failed, three_results), Settled::stale);
  EXPECT_EQ(retry(old, 1s, three_results), Settled::stale);
  EXPECT_EQ(release(old), Settled::stale);
  EXPECT_EQ(all_rows(), before) << "nothing was written";
  EXPECT_EQ(finalize("a"), Settled::applied);
  EXPECT_EQ(finalize(old), Settled::stale) << "also when the other one has finished";
  EXPECT_EQ(retry(old, 1s, three_results), Settled::stale);
  EXPECT_THAT(state_rows(), IsEmpty());
}

TEST_P(QueueSettle, AnUnknownIdIsSaidToBe) {
  for (const SettlementKind kind :
       {SettlementKind::finalize, SettlementKind::retry, SettlementKind::release}) {
    EXPECT_EQ(
        settle({.claim = {QueueId{4711}, Token{1}}, .kind = kind, .results = three_results, .delay = 1s}),
        Settled::unknown);
  }
  EXPECT_THAT(log_rows(), IsEmpty());
  EXPECT_THAT(state_rows(), IsEmpty());
}

TEST_P(QueueSettle, AnEndedLeaseThatNobodyTookIsStillSettled) {
  publish("a");
  claim();
  clock_.advance(1h);
  EXPECT_EQ(finalize("a"), Settled::applied);
}

TEST_P(QueueSettle, AMixedBatchIsAnsweredInItsOrder) {
  publish_all({"a", "b", "c", "d"});
  claim();
  finalize("d");
  const std::vector<Settlement> batch{
      {.claim = held("d")},
      {.claim = held("c"), .kind = SettlementKind::release},
      {.claim = {held("b").id, Token{9}}},
      {.claim = {QueueId{4711}, Token{1}}},
      {.claim = held("a"),
       .kind = SettlementKind::retry,
       .results = three_results,
       .delay = 1s,
       .error = "later"},
  };
  EXPECT_THAT(store().settle(batch), ElementsAre(Settled::repeated, Settled::applied, Settled::stale,
                                                 Settled::unknown, Settled::applied));
  EXPECT_EQ(row("a").error, "later");
  EXPECT_EQ(row("b").status, QueueStatus::processing);
  EXPECT_EQ(row("c").attempts, 0);
  EXPECT_EQ(state_rows().size(), 3U);
}

TEST_P(QueueSettle, AnEmptyBatchIsNothing) {
  EXPECT_THAT(store().settle({}), IsEmpty());
}

TEST_P(QueueSettle, ALargeBatchIsSettledAtOnce) {
  constexpr std::size_t count = 1500;
  std::vector<Event> events;
  std::vector<NewQueueRow> rows;
  for (std::size_t i = 0; i < count; ++i) events.push_back(event_of("e" + std::to_string(i)));
  for (const Event& event : events) rows.push_back({.event = &event});
  {
    Transaction tx = storage().begin();
    store().insert(tx, rows);
    tx.commit();
  }
  std::vector<Settlement> batch;
  for (const QueuedEvent& one : claim_events({.limit = count})) {
    batch.push_back({.claim = one.claim, .results = three_results});
  }
  ASSERT_EQ(batch.size(), count);
  for (const Settled answer : store().settle(batch)) ASSERT_EQ(answer, Settled::applied);
  const std::vector<LogRow> log = log_rows();
  ASSERT_EQ(log.size(), count);
  for (std::size_t i = 0; i < count; ++i) {
    EXPECT_EQ(log[i].seq, static_cast<std::int64_t>(i + 1));
    EXPECT_EQ(log[i].results, three_results);
  }
}

TEST_P(QueueSettle, StaleOnesInALargeBatchHoldUpNobody) {
  constexpr int count = 130;
  for (int i = 0; i < count; ++i) publish("e" + std::to_string(i));
  claim({.limit = count});
  std::vector<Settlement> batch;
  std::vector<Settled> expected;
  for (int i = 0; i < count; ++i) {
    const std::string name = "e" + std::to_string(i);
    Settlement one = finalized(held(name));
    Settled answer = Settled::applied;
    if (i % 20 == 3) {
      finalize(name);
      answer = Settled::repeated;
    } else if (i % 20 == 5) {
      one.claim.token = Token{7};
      answer = Settled::stale;
    } else if (i % 20 == 7) {
      one.claim.id = QueueId{1'000'000 + i};
      answer = Settled::unknown;
    } else if (i % 20 == 11) {
      one.kind = SettlementKind::release;
    }
    batch.push_back(one);
    expected.push_back(answer);
  }
  EXPECT_EQ(store().settle(batch), expected);
  std::set<std::int64_t> numbers;
  for (const LogRow& one : log_rows()) numbers.insert(one.seq);
  const std::vector<QueueRow> left = queue_rows();
  EXPECT_EQ(left.size(), 7U + 7U + 6U) << "stale, unknown, released";
  EXPECT_EQ(numbers.size(), count - left.size());
  EXPECT_EQ(*numbers.rbegin(), static_cast<std::int64_t>(numbers.size()));
}

TEST_P(QueueSettle, InTheCallersTransactionItHappensWithIt) {
  publish_all({"a", "b"});
  claim();
  clock_.advance(1s);
  {
    Transaction tx = storage().begin();
    EXPECT_EQ(store().settle(tx, {.claim = held("a"), .results = three_results}), Settled::applied);
    tx.rollback();
  }
  EXPECT_EQ(row("a").status, QueueStatus::processing) << "as if nothing had been";
  EXPECT_THAT(log_rows(), IsEmpty());
  {
    Transaction tx = storage().begin();
    EXPECT_EQ(store().settle(tx, {.claim = held("a"), .results = three_results}), Settled::applied);
    EXPECT_EQ(store().settle(tx, {.claim = held("a")}), Settled::repeated) << "in the same transaction";
    tx.commit();
  }
  store().sequence_log();
  EXPECT_EQ(finalize("a"), Settled::repeated);
  const LogRow entry = logged("a");
  EXPECT_EQ(entry.seq, 1);
  EXPECT_EQ(entry.finalized, clock_.now());
  EXPECT_EQ(entry.results, three_results);
  EXPECT_EQ(entry.token, 1);
  EXPECT_EQ(finalize("b"), Settled::applied);
  EXPECT_EQ(logged("b").seq, 2);
}

TEST_P(QueueSettle, InTheCallersTransactionAStaleClaimIsRefusedToo) {
  publish("a");
  claim();
  const Claim old = held("a");
  clock_.advance(30s);
  claim({.owner = "n2"});
  const auto before = all_rows();
  {
    Transaction tx = storage().begin();
    EXPECT_EQ(store().settle(tx, {.claim = old}), Settled::stale);
    EXPECT_EQ(store().settle(tx, {.claim = {QueueId{4711}, Token{1}}}), Settled::unknown);
    tx.commit();
  }
  EXPECT_EQ(all_rows(), before);
}

TEST_P(QueueSettle, AnEndedOrForeignTransactionIsRefused) {
  publish("a");
  claim();
  Transaction ended = storage().begin();
  ended.rollback();
  EXPECT_EQ(error_of([&] { (void)store().settle(ended, {.claim = held("a")}); }).code(),
            ErrorCode::not_in_transaction);
  Transaction foreign{std::make_unique<ForeignSession>(
      storage().kind() == BackendKind::sqlite ? BackendKind::postgres : BackendKind::sqlite)};
  EXPECT_EQ(error_of([&] { (void)store().settle(foreign, {.claim = held("a")}); }).code(),
            ErrorCode::wrong_storage);
  EXPECT_EQ(row("a").status, QueueStatus::processing);
}

TEST_P(QueueSettle, EntriesOfUsersTransactionsAreNumberedOnceTheyAreCommitted) {
  publish_all({"a", "b", "c"});
  claim();
  for (const char* name : {"b", "a"}) {
    Transaction tx = storage().begin();
    EXPECT_EQ(store().settle(tx, finalized(held(name))), Settled::applied);
    tx.commit();
  }
  EXPECT_EQ(finalize("c"), Settled::applied);
  store().sequence_log();
  store().sequence_log();
  std::vector<std::int64_t> numbers;
  for (const LogRow& one : log_rows()) numbers.push_back(one.seq);
  EXPECT_THAT(numbers, ElementsAre(1, 2, 3));
}

TEST_P(QueueSettle, HazardQ5_NoNumberAppearsBelowOneThatWasRead) {
  constexpr int writers = 4;
  constexpr int per_writer = 40;
  std::vector<std::vector<Claim>> work(writers);
  for (int i = 0; i < writers * per_writer; ++i) publish("e" + std::to_string(i));
  {
    const auto claimed = claim_events({.limit = writers * per_writer});
    ASSERT_EQ(claimed.size(), static_cast<std::size_t>(writers * per_writer));
    for (std::size_t i = 0; i < claimed.size(); ++i) work[i % writers].push_back(claimed[i].claim);
  }
  auto other = database().open_another();
  std::atomic<int> running{writers};
  {
    std::vector<std::jthread> threads;
    for (std::size_t writer = 0; writer < writers; ++writer) {
      threads.emplace_back([&, writer] {
        Storage& mine = writer % 2 == 0 ? storage() : *other;
        for (std::size_t i = 0; i < per_writer; ++i) {
          const Settlement one = finalized(work[writer][i]);
          if ((i + writer) % 3 == 0) {
            Transaction tx = mine.begin();
            EXPECT_EQ(mine.queue_store().settle(tx, one), Settled::applied);
            tx.commit();
            mine.queue_store().sequence_log();
          } else {
            EXPECT_THAT(mine.queue_store().settle({&one, 1}), ElementsAre(Settled::applied));
          }
        }
        --running;
      });
    }
    std::set<std::int64_t> seen;
    for (bool last = false; !last;) {
      last = running == 0;
      const std::int64_t highest = seen.empty() ? 0 : *seen.rbegin();
      for (const LogRow& one : log_rows()) {
        if (one.seq == 0 || !seen.insert(one.seq).second) continue;
        EXPECT_GT(one.seq, highest) << "whoever has read up to " << highest << " has missed it";
      }
    }
  }
  store().sequence_log();
  std::set<std::int64_t> numbers;
  for (const LogRow& one : log_rows()) numbers.insert(one.seq);
  EXPECT_EQ(numbers.size(), static_cast<std::size_t>(writers * per_writer));
  EXPECT_EQ(*numbers.begin(), 1);
  EXPECT_EQ(*numbers.rbegin(), writers * per_writer);
}

TEST_P(QueueSettle, ConcurrentFinalizersOfOneClaimMakeOneRow) {
  publish("a");
  claim();
  std::atomic<int> applied{0};
  std::atomic<int> repeated{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const Settlement one = finalized(held("a"));
        const std::vector<Settled> answers = store().settle({&one, 1});
        ASSERT_EQ(answers.size(), 1U);
        applied += answers[0] == Settled::applied ? 1 : 0;
        repeated += answers[0] == Settled::repeated ? 1 : 0;
      });
    }
  }
  EXPECT_EQ(applied, 1);
  EXPECT_EQ(repeated, 3);
  EXPECT_THAT(logged(), ElementsAre("a"));
}

}  // namespace
}  // namespace postrider::conformance
