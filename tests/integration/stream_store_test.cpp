// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <barrier>
#include <semaphore>
#include <set>

#include "integration/stream_fixture.hpp"
#include "storage/wake_channel.hpp"
#include "support/crash_run.hpp"

namespace postrider {
namespace {

using Positions = std::vector<std::int64_t>;

class StreamStoreTest : public StreamTest {};
POSTRIDER_FOR_EACH_BACKEND(StreamStoreTest);

TEST_P(StreamStoreTest, ReadsFromEitherEndWithBoundsThatSayWhatTheyInclude) {
  for (int i = 1; i <= 6; ++i) store().append({happened(i % 2 == 1 ? "Odd" : "Even")});
  const auto read = [&](const ReadOptions& options) {
    return positions(store().read(Query::all(), options));
  };
  EXPECT_EQ(read({}), (Positions{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read({.from = Position{3}}), (Positions{3, 4, 5, 6}));
  EXPECT_EQ(read({.after = Position{3}}), (Positions{4, 5, 6}));
  EXPECT_EQ(read({.after = Position{3}, .until = Position{5}}), (Positions{4, 5}));
  EXPECT_EQ(read({.from = Position{0}, .limit = 2}), (Positions{1, 2}));
  EXPECT_EQ(read({.limit = 0}), (Positions{}));
  EXPECT_EQ(read({.from = Position{7}}), (Positions{}));
  EXPECT_EQ(read({.backwards = true}), (Positions{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(read({.from = Position{4}, .backwards = true}), (Positions{4, 3, 2, 1}));
  EXPECT_EQ(read({.after = Position{4}, .backwards = true}), (Positions{3, 2, 1}));
  EXPECT_EQ(read({.after = Position{4}, .until = Position{2}, .backwards = true}), (Positions{3, 2}));
  EXPECT_EQ(read({.limit = 1, .backwards = true}), (Positions{6}));
  EXPECT_EQ(positions(store().read(Query::type("Odd"), {.after = Position{1}, .limit = 1})), (Positions{3}));
  EXPECT_EQ(refusal([&] { (void)read({.from = Position{1}, .after = Position{1}}); }),
            ErrorCode::invalid_argument);
  EXPECT_EQ(refusal([&] { (void)read({.page_size = 0}); }), ErrorCode::invalid_argument);
}

TEST_P(StreamStoreTest, AStreamIsOneSnapshotHoweverSmallItsPages) {
  for (int i = 0; i < 10; ++i) store().append({happened("A", {{"x", "1"}})});
  for (const bool backwards : {false, true}) {
    EventStream stream = store().read(Query::tag("x", "1"), {.backwards = backwards, .page_size = 3});
    const Position head = stream.head();
    EXPECT_TRUE(stream.next().has_value());
    store().append({happened("A", {{"x", "1"}})});
    std::size_t rest = 0;
    while (stream.next()) ++rest;
    EXPECT_EQ(rest + 1, static_cast<std::size_t>(head)) << "what came later is not in it";
    EXPECT_EQ(stream.head(), head);
    EXPECT_FALSE(stream.next().has_value());
  }
}

TEST_P(StreamStoreTest, EveryPageIsCountedWithItsEventsAndItsTime) {
  struct Reads final : MetricsExporter {
    void observe_stream_read(std::size_t events, Duration time) override {
      pages.push_back(events);
      EXPECT_GE(time, Duration::zero());
    }
    std::vector<std::size_t> pages{};
  } reads;
  EventStore watched(storage(), {.metrics = &reads});
  for (int i = 0; i < 5; ++i) watched.append({happened("A")});
  EXPECT_TRUE(reads.pages.empty()) << "an append is no read";
  EXPECT_EQ(positions(watched.read(Query::all(), {.page_size = 2})), (Positions{1, 2, 3, 4, 5}));
  EXPECT_EQ(reads.pages, (std::vector<std::size_t>{2, 2, 1}));
  EXPECT_FALSE(watched.exists(Query::type("B")));
  EXPECT_EQ(reads.pages.back(), 0U) << "also one that finds nothing";
}

TEST_P(StreamStoreTest, ProjectsEventsIntoStatesWithACursor) {
  store().append({happened("Deposited", {{"wallet", "1"}}, "10"),
                  happened("Withdrawn", {{"wallet", "1"}}, "3"),
                  happened("Deposited", {{"wallet", "2"}}, "100")});
  const Projector<int> balance{.query = Query::tag("wallet", "1"),
                               .apply = [](int& sum, const StoredEvent& event) {
                                 const int amount = std::stoi(std::string(event.data()));
                                 sum += event.type() == "Deposited" ? amount : -amount;
                               }};
  const Projector<int> deposits{.query = Query::type("Deposited"),
                                .initial = 1000,
                                .apply = [](int& count, const StoredEvent&) { ++count; }};
  const auto both = store().project(balance, deposits);
  EXPECT_EQ(both.states, (std::tuple{7, 1002}));
  EXPECT_EQ(both.cursor, Position{3});
  EXPECT_EQ(both.condition().query, Query::tag("wallet", "1") | Query::type("Deposited"));

  const auto one = store().project(Query::tag("wallet", "1"), balance, deposits);
  EXPECT_EQ(one.states, (std::tuple{7, 1001})) << "only what the query has";
  EXPECT_TRUE(std::holds_alternative<Appended>(
      store().append_if({happened("Withdrawn", {{"wallet", "1"}}, "7")}, one.condition())));
  EXPECT_EQ(
      std::get<Conflict>(store().append_if({happened("Withdrawn", {{"wallet", "1"}}, "7")}, one.condition())),
      (Conflict{Position{4}, "Withdrawn"}));
}

TEST_P(StreamStoreTest, AProjectorWithoutApplyIsRefused) {
  EXPECT_EQ(refusal([&] { (void)store().project(Projector<int>{}); }), ErrorCode::invalid_argument)
      << "also while there is nothing to apply";
}

TEST_P(StreamStoreTest, BuildersStandInTheListOfATransactionToo) {
  Transaction tx = storage().begin();
  store().append(tx, {AppendEvent::builder("A").tag("x", "1"), AppendEvent::builder("B").bytes("b")});
  EXPECT_TRUE(std::holds_alternative<Conflict>(
      store().append_if(tx, {AppendEvent::builder("C")}, {.query = Query::tag("x", "1")})));
  EXPECT_TRUE(std::holds_alternative<Appended>(
      store().append_if(tx, {AppendEvent::builder("D")}, {.query = Query::tag("x", "2")})));
  tx.commit();
  std::vector<std::pair<std::string, PayloadKind>> found;
  for (const StoredEvent& event : store().read()) found.emplace_back(event.type(), event.payload_kind());
  EXPECT_THAT(found,
              ::testing::ElementsAre(std::pair("A", PayloadKind::json), std::pair("B", PayloadKind::bytes),
                                     std::pair("D", PayloadKind::json)));
}

TEST_P(StreamStoreTest, ATransactionOfAnotherDatabaseIsRefusedInTheStoresName) {
  test::TestDatabase other("sqlite");
  Transaction tx = other.storage().begin();
  try {
    store().append(tx, {happened("A")});
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::wrong_storage);
    EXPECT_THAT(error.what(),
                ::testing::HasSubstr(backend() == "sqlite" ? "belongs to the file"
                                                           : "the event store to " + backend()));
    EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("queue")));
  }
}

TEST_P(StreamStoreTest, TellsWhetherSomethingExists) {
  EXPECT_FALSE(store().exists(Query::all()));
  store().append({happened("A", {{"x", "1"}})});
  EXPECT_TRUE(store().exists(Query::all()));
  EXPECT_TRUE(store().exists(Query::tag("x", "1")));
  EXPECT_FALSE(store().exists(Query::tag("x", "1"), Position{1}));
  EXPECT_FALSE(store().exists(Query::type("B")));
  EXPECT_EQ(store().head(), Position{1});
}

TEST_P(StreamStoreTest, RefusesListsThatAreEmptyOrTooLong) {
  EXPECT_EQ(refusal([&] { store().append({}); }), ErrorCode::invalid_argument);
  EXPECT_EQ(refusal([&] { (void)store().append_if({}, AppendCondition{}); }), ErrorCode::invalid_argument);
  const std::vector<AppendEvent> many(EventStore::max_events + 1, happened("A"));
  EXPECT_EQ(refusal([&] { store().append(many); }), ErrorCode::invalid_argument);
  EXPECT_EQ(store().head(), Position{0});
  Transaction tx = storage().begin();
  EXPECT_EQ(refusal([&] { store().append(tx, {}); }), ErrorCode::invalid_argument);
  tx.rollback();
  EXPECT_EQ(refusal([&] { store().append(tx, std::vector{happened("A")}); }), ErrorCode::not_in_transaction);
}

TEST_P(StreamStoreTest, ManyCallersShareFlushesAndEachHasItsOwnVerdict) {
  constexpr int callers = 16;
  constexpr int rounds = 30;
  std::atomic<int> appended{0};
  std::atomic<int> conflicts{0};
  in_parallel(callers, [&](int caller) {
    for (int round = 0; round < rounds; ++round) {
      // All of them want the seat of this round; and each has something of its own beside it, twice.
      const std::string seat = std::to_string(round);
      const AppendResult result =
          store().append_if({happened("Reserved", {{"seat", seat}})}, {.query = Query::tag("seat", seat)});
      ++(std::holds_alternative<Appended>(result) ? appended : conflicts);
      const Appended own =
          store().append({happened("Own", {{"caller", std::to_string(caller)}}), happened("Own")});
      EXPECT_EQ(static_cast<std::int64_t>(own.last), static_cast<std::int64_t>(own.first) + 1);
    }
  });
  EXPECT_EQ(appended, rounds) << "one for each seat";
  EXPECT_EQ(conflicts, rounds * (callers - 1));
  std::set<std::string> seats;
  std::int64_t last = 0;
  for (const StoredEvent& event : store().read()) {
    ASSERT_EQ(static_cast<std::int64_t>(event.position()), ++last);
    if (event.type() == "Reserved") {
      EXPECT_TRUE(seats.insert(event.tags().front().value).second);
    }
  }
  EXPECT_EQ(last, rounds + 2 * callers * rounds);
}

TEST_P(StreamStoreTest, RacersOnOneTagHaveOneWinner) {
  // On two nodes, with queries that overlap but are not equal. POSTRIDER_STORM_ROUNDS=1000 for a thorough
  // run.
  const std::unique_ptr<Storage> other = database_->open_another();
  EventStore other_store(*other);
  const int rounds = test::chosen_count("POSTRIDER_STORM_ROUNDS", 60);
  constexpr int racers = 6;
  std::vector<std::atomic<int>> winners(static_cast<std::size_t>(rounds));
  std::barrier together(racers);
  in_parallel(racers, [&](int racer) {
    EventStore& mine = racer % 2 == 0 ? store() : other_store;
    for (int round = 0; round < rounds; ++round) {
      const std::string seat = std::to_string(round);
      const Query shapes[] = {
          Query::tag("seat", seat),
          Query::of({{.types = {"Reserved"}, .tags = {{"seat", seat}}}}),
          Query::tag("seat", seat) | Query::type("Nobody"),
          Query::tags({{"seat", seat}, {"hall", "1"}}),
          Query::of({{.types = {"Reserved", "Closed"}, .tags = {{"hall", "1"}, {"seat", seat}}}}),
          Query::of({{.types = {"Closed"}}, {.tags = {{"seat", seat}}}})};
      together.arrive_and_wait();
      const AppendResult result =
          mine.append_if({happened("Reserved", {{"seat", seat}, {"hall", "1"}})}, {.query = shapes[racer]});
      if (std::holds_alternative<Appended>(result)) ++winners[static_cast<std::size_t>(round)];
    }
  });
  for (int round = 0; round < rounds; ++round) {
    EXPECT_EQ(winners[static_cast<std::size_t>(round)], 1) << "round " << round;
  }
  EXPECT_EQ(store().head(), Position{rounds});
}

TEST_P(StreamStoreTest, WakesWhoeverWaitsForEventsAfterTheCommit) {
  std::atomic<int> woken{0};
  const std::uint64_t number = storage().stream_grown()->subscribe([&] { ++woken; });
  store().append({happened("A", {{"x", "1"}})});
  EXPECT_EQ(woken, 1);
  (void)store().append_if({happened("A")}, {.query = Query::tag("x", "1")});
  EXPECT_EQ(woken, 1) << "a conflict is nothing new";
  {
    Transaction tx = storage().begin();
    store().append(tx, std::vector{happened("B")});
    (void)store().append_if(tx, std::vector{happened("B")}, {});
    EXPECT_EQ(woken, 1);
    tx.commit();
    EXPECT_EQ(woken, 2);
  }
  {
    Transaction tx = storage().begin();
    store().append(tx, std::vector{happened("C")});
  }
  EXPECT_EQ(woken, 2) << "rolled back";
  store().wake();
  EXPECT_EQ(woken, 3);
  storage().stream_grown()->unsubscribe(number);
}

TEST_P(StreamStoreTest, HazardS15OtherNodesAreToldPerIntervalNotPerAppend) {
  WakeChannel* const channel = storage().wake_channel();
  if (channel == nullptr) GTEST_SKIP() << "other nodes poll here";
  EventStore quiet(storage(), {.notify_interval = 1min});
  const std::unique_ptr<Storage> other = database_->open_another();
  std::counting_semaphore<> told{0};
  const auto listening = other->wake_channel()->listen(wake_topic::stream, [&] { told.release(); });
  ASSERT_TRUE(told.try_acquire_for(20s)) << "it is connected";
  quiet.append({happened("A")});
  ASSERT_TRUE(told.try_acquire_for(20s)) << "at once after a pause";
  for (int i = 0; i < 100; ++i) quiet.append({happened("A")});
  channel->notify(wake_topic::stream);  // comes behind whatever the appends have sent
  ASSERT_TRUE(told.try_acquire_for(20s));
  EXPECT_FALSE(told.try_acquire());
}

TEST_P(StreamStoreTest, AClosedStoreReadsOn) {
  store().append({happened("A")});
  store().close();
  EXPECT_EQ(refusal([&] { store().append({happened("A")}); }), ErrorCode::closed);
  EXPECT_EQ(positions(store().read()), (Positions{1}));
  std::stop_source stop;
  stop.request_stop();
  EventStore open(storage());
  EXPECT_EQ(refusal([&] { open.append(std::vector{happened("A")}, stop.get_token()); }), ErrorCode::closed);
  EXPECT_EQ(store().head(), Position{1});
}

}  // namespace
}  // namespace postrider
