// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <thread>

#include "storage/conformance/store_fixture.hpp"
#include "storage/progress_store.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const PairName wallets{"wallets", "kafka"};
const PairName payments{"payments", "kafka"};
const PairName hooks{"wallets", "hooks"};

class ProgressVerbs : public StoreConformance {
 protected:
  void SetUp() override {
    StoreConformance::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    store().add(std::vector<NewPair>{{wallets, Position{0}}, {payments, Position{0}}, {hooks, Position{7}}});
  }
  ProgressStore& store() { return storage().progress_store(); }
  /// The node's lease, taken when it has none.
  LeaseFence node(const std::string& name, Duration lease = 10s) {
    const auto epoch = storage().lease_store().acquire("node/" + name, name, lease, false, {});
    return {"node/" + name, name, epoch.value_or(Epoch{1})};
  }
  std::vector<LedPair> take(const LeaseFence& fence, Taking which, std::vector<PairName> pairs,
                            std::vector<std::string> dead = {}) {
    std::vector<LedPair> taken = store().take(fence, which, pairs, dead);
    std::sort(taken.begin(), taken.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return taken;
  }
  bool advance(const PairName& name, int epoch, int from, int to) {
    return store().advance(std::vector<ProgressStep>{
        {.name = name, .epoch = Epoch{epoch}, .from = Position{from}, .to = Position{to}}})[0];
  }
  std::string cell(const PairName& name, const std::string& column) {
    const Rows rows = sql(
        "select " + column + " from " + table("outbox_topic_progress") + " where topic = ? and publisher = ?",
        name.topic, name.publisher);
    return rows.is_null(0, 0) ? "null" : rows.text(0, 0);
  }
};
POSTRIDER_FOR_EACH_BACKEND(ProgressVerbs);

TEST_P(ProgressVerbs, NewPairsStartWhereTheyAreToldAndOldOnesStay) {
  EXPECT_EQ(cell(hooks, "last_position"), "7");
  store().add(std::vector<NewPair>{{hooks, Position{100}}, {{"new", "kafka"}, Position{3}}});
  EXPECT_EQ(cell(hooks, "last_position"), "7");
  EXPECT_EQ(cell({"new", "kafka"}, "last_position"), "3");
  EXPECT_EQ(cell(hooks, "status"), "ACTIVE");
  EXPECT_EQ(cell(hooks, "epoch"), "0");
  EXPECT_EQ(cell(hooks, "leader_instance"), "null");
}

TEST_P(ProgressVerbs, TakingRaisesTheEpochOfWhatIsFree) {
  const LeaseFence a = node("a");
  const LeaseFence b = node("b");
  const auto first = take(a, Taking::orphans, {wallets, hooks, {"none", "none"}});
  ASSERT_THAT(first, SizeIs(2));
  EXPECT_EQ(first[0].name, hooks);
  EXPECT_EQ(first[0].epoch, Epoch{1});
  EXPECT_EQ(first[0].position, Position{7});
  EXPECT_EQ(cell(hooks, "leader_instance"), "a");
  const auto second = take(b, Taking::orphans, {wallets, hooks, payments});
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(second[0].name, payments);
  EXPECT_THAT(store().led("a"), SizeIs(2));
  EXPECT_THAT(take(b, Taking::any, {wallets}), SizeIs(1)) << "the one leader of all takes from anybody";
  EXPECT_EQ(cell(wallets, "epoch"), "2");
}

TEST_P(ProgressVerbs, ADeadNodesPairsAreOrphans) {
  ASSERT_THAT(take(node("a"), Taking::orphans, {wallets, hooks}), SizeIs(2));
  const LeaseFence b = node("b", 60s);
  EXPECT_THAT(store().census("b", {}).orphans, ElementsAre(payments));
  EXPECT_THAT(store().census("b", std::vector<std::string>{"a"}).orphans,
              ElementsAre(payments, hooks, wallets));
  EXPECT_THAT(take(b, Taking::orphans, {wallets}, {"x"}), IsEmpty());
  EXPECT_THAT(take(b, Taking::orphans, {wallets}, {"a"}), SizeIs(1)) << "its lock says so";
  clock_.advance(10s);
  EXPECT_THAT(store().census("b", {}).orphans, ElementsAre(payments, hooks)) << "its time says so";
  EXPECT_THAT(take(b, Taking::orphans, {hooks}), SizeIs(1));
}

TEST_P(ProgressVerbs, HazardS10WhoseLeaseIsOverTakesNothing) {
  const LeaseFence a = node("a");
  clock_.advance(10s);
  EXPECT_THAT(take(a, Taking::any, {wallets}), IsEmpty());
  ASSERT_EQ(storage().lease_store().acquire("node/a", "b", 10s, false, {}), Epoch{2});
  EXPECT_THAT(take(a, Taking::any, {wallets}), IsEmpty());
  EXPECT_EQ(cell(wallets, "epoch"), "0");
}

TEST_P(ProgressVerbs, HazardS10AFrozenExLeadersWriteIsRefused) {
  ASSERT_THAT(take(node("a"), Taking::orphans, {wallets}), SizeIs(1));
  EXPECT_TRUE(advance(wallets, 1, 0, 10));
  clock_.advance(10s);
  const auto taken = take(node("b"), Taking::orphans, {wallets});
  ASSERT_THAT(taken, SizeIs(1));
  EXPECT_EQ(taken[0].position, Position{10});
  EXPECT_EQ(taken[0].epoch, Epoch{2});
  EXPECT_FALSE(advance(wallets, 1, 10, 20)) << "an old epoch";
  EXPECT_THAT(store().fail(std::vector<PairFailure>{{wallets, Epoch{1}, "late", true, true}}),
              ElementsAre(false));
  EXPECT_EQ(cell(wallets, "status"), "ACTIVE");
  EXPECT_TRUE(advance(wallets, 2, 10, 15));
  EXPECT_FALSE(advance(wallets, 2, 10, 12)) << "it stands elsewhere: progress never moves back";
  EXPECT_EQ(cell(wallets, "last_position"), "15");
}

TEST_P(ProgressVerbs, StepsOfManyPairsAreJudgedOneByOne) {
  ASSERT_THAT(take(node("a"), Taking::orphans, {wallets, payments, hooks}), SizeIs(3));
  const std::vector<bool> done = store().advance(std::vector<ProgressStep>{
      {.name = wallets, .epoch = Epoch{1}, .from = Position{0}, .to = Position{5}},
      {.name = payments, .epoch = Epoch{9}, .from = Position{0}, .to = Position{5}},
      {.name = hooks, .epoch = Epoch{1}, .from = Position{7}, .to = Position{8}, .published = false}});
  EXPECT_THAT(done, ElementsAre(true, false, true));
  EXPECT_EQ(cell(wallets, "last_position"), "5");
  EXPECT_NE(cell(wallets, "last_published_at"), "null");
  EXPECT_EQ(cell(payments, "last_position"), "0");
  EXPECT_EQ(cell(hooks, "last_position"), "8");
  EXPECT_EQ(cell(hooks, "last_published_at"), "null");
  EXPECT_THAT(store().advance({}), IsEmpty());
}

TEST_P(ProgressVerbs, FailuresCountUntilItMovesOn) {
  ASSERT_THAT(take(node("a"), Taking::orphans, {wallets}), SizeIs(1));
  const auto fail = [&](bool counted, bool stop) -> bool {
    return store().fail(std::vector<PairFailure>{{wallets, Epoch{1}, "no\0 good", counted, stop}})[0];
  };
  EXPECT_TRUE(fail(true, false));
  EXPECT_TRUE(fail(false, false));
  EXPECT_TRUE(fail(true, true));
  EXPECT_EQ(cell(wallets, "error_count"), "2");
  EXPECT_EQ(cell(wallets, "status"), "FAILED");
  EXPECT_EQ(store().led("a")[0].error_count, 2);
  EXPECT_EQ(store().led("a")[0].state, PairState::failed);
  EXPECT_TRUE(advance(wallets, 1, 0, 1));
  EXPECT_EQ(cell(wallets, "error_count"), "0");
  EXPECT_EQ(cell(wallets, "last_error"), "null");
}

TEST_P(ProgressVerbs, ADeadLetterIsWrittenWithTheStepOrNotAtAll) {
  ASSERT_THAT(take(node("a"), Taking::orphans, {wallets}), SizeIs(1));
  const auto step = [&](int epoch, int from, int to) -> bool {
    return store().advance(std::vector<ProgressStep>{{.name = wallets,
                                                      .epoch = Epoch{epoch},
                                                      .from = Position{from},
                                                      .to = Position{to},
                                                      .dead = "bad"}})[0];
  };
  EXPECT_TRUE(step(1, 0, 4));
  EXPECT_FALSE(step(1, 0, 5));
  RelayAdminStore& admin = storage().relay_admin_store();
  ASSERT_THAT(admin.dead_letters({}, 10, Position{0}), SizeIs(1));
  EXPECT_EQ(admin.dead_letters({}, 10, Position{0})[0].position, Position{4});
  EXPECT_EQ(admin.dead_letters({}, 10, Position{0})[0].error, "bad");
  ASSERT_EQ(admin.move_to(PairSelector::pair("wallets", "kafka"), Position{0}), 1U);
  EXPECT_TRUE(step(2, 0, 4)) << "again, after a rewind";
  EXPECT_THAT(admin.dead_letters(PairSelector::of_publisher("kafka"), 10, Position{0}), SizeIs(1));
  EXPECT_THAT(admin.dead_letters(PairSelector::of_publisher("hooks"), 10, Position{0}), IsEmpty());
  EXPECT_EQ(admin.discard(PairSelector::all(), Position{3}), 0U);
  EXPECT_EQ(admin.discard(PairSelector::all(), Position{4}), 1U);
}

TEST_P(ProgressVerbs, DeadLettersHavePagesAndAreCountedAsTheyAreDiscarded) {
  ASSERT_THAT(take(node("a"), Taking::orphans, {wallets, payments}), SizeIs(2));
  const auto die = [&](const PairName& pair, int from, int to) {
    ASSERT_TRUE(store().advance(std::vector<ProgressStep>{
        {.name = pair, .epoch = Epoch{1}, .from = Position{from}, .to = Position{to}, .dead = "bad"}})[0]);
  };
  for (int i = 0; i < 5; ++i) die(wallets, i, i + 1);
  die(payments, 0, 2);
  RelayAdminStore& admin = storage().relay_admin_store();
  const PairSelector pair = PairSelector::pair("wallets", "kafka");
  const auto page = [&](int after) {
    std::vector<Position> positions;
    for (const DeadLetter& one : admin.dead_letters(pair, 2, Position{after}))
      positions.push_back(one.position);
    return positions;
  };
  EXPECT_EQ(page(0), (std::vector{Position{1}, Position{2}}));
  EXPECT_EQ(page(2), (std::vector{Position{3}, Position{4}}));
  EXPECT_EQ(page(4), (std::vector{Position{5}}));
  EXPECT_THAT(page(5), IsEmpty());
  EXPECT_EQ(admin.count_dead(PairSelector::all(), {}), 6U);
  EXPECT_EQ(admin.count_dead(PairSelector::all(), Position{2}), 3U);
  EXPECT_EQ(admin.count_dead(pair, Position{3}), 3U);
  EXPECT_EQ(admin.discard(pair, Position{3}), 3U);
  EXPECT_EQ(admin.count_dead(pair, {}), 2U);
  EXPECT_EQ(admin.discard(pair, {}), 2U);
  EXPECT_EQ(admin.count_dead(PairSelector::all(), {}), 1U) << "another pair's stays";
}

TEST_P(ProgressVerbs, CensusTellsByTwoNumbersThatSomethingChanged) {
  ASSERT_THAT(take(node("a"), Taking::orphans, {wallets, payments}), SizeIs(2));
  const auto mine = [&] {
    for (const PairCensus::Share& share : store().census("a", {}).shares) {
      if (share.leader == "a") return std::pair(share.pairs, share.epochs);
    }
    return std::pair<std::int64_t, std::int64_t>(0, 0);
  };
  EXPECT_EQ(mine(), std::pair(std::int64_t{2}, std::int64_t{2}));
  storage().relay_admin_store().move_to(PairSelector::pair("wallets", "kafka"), Position{1});
  EXPECT_EQ(mine(), std::pair(std::int64_t{2}, std::int64_t{3})) << "moved";
  EXPECT_THAT(store().census("a", {}).at_rest, IsEmpty());
  sql("update " + table("outbox_topic_progress") + " set status = 'PAUSED' where publisher = 'kafka'");
  EXPECT_THAT(store().census("a", {}).at_rest, SizeIs(2)) << "also by hand, as the seed's users do";
  store().give_back("a", std::vector<PairName>{wallets, hooks});
  EXPECT_EQ(mine(), std::pair(std::int64_t{1}, std::int64_t{1}));
  EXPECT_EQ(cell(wallets, "leader_instance"), "null");
}

TEST_P(ProgressVerbs, TenThousandPairsAtOnce) {
  std::vector<NewPair> pairs;
  std::vector<PairName> names;
  std::vector<ProgressStep> steps;
  for (int i = 0; i < 10'000; ++i) {
    names.push_back({"topic" + std::to_string(i % 100), "publisher" + std::to_string(i / 100)});
    pairs.push_back({names.back(), Position{0}});
    steps.push_back({.name = names.back(), .epoch = Epoch{1}, .from = Position{0}, .to = Position{i + 1}});
  }
  store().add(pairs);
  EXPECT_THAT(take(node("a"), Taking::orphans, names), SizeIs(10'000));
  const std::vector<bool> done = store().advance(steps);
  EXPECT_EQ(std::count(done.begin(), done.end(), true), 10'000);
  store().give_back("a", names);
  EXPECT_THAT(store().led("a"), IsEmpty());
}

TEST_P(ProgressVerbs, OfManyNodesEachPairHasOne) {
  std::vector<LeaseFence> nodes;
  for (int i = 0; i < 4; ++i) nodes.push_back(node("n" + std::to_string(i)));
  std::atomic<std::size_t> taken{0};
  std::vector<std::thread> threads;
  for (const LeaseFence& fence : nodes) {
    threads.emplace_back([&] {
      for (bool again = true; again;) {
        again = false;
        try {
          taken += store()
                       .take(fence, Taking::orphans, std::vector<PairName>{wallets, payments, hooks}, {})
                       .size();
        } catch (const Error& error) {
          again = error.retryable();
          EXPECT_TRUE(again) << error.what();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 3U);
  EXPECT_EQ(cell(wallets, "epoch"), "1");
}

TEST_P(ProgressVerbs, HazardS12APublishersNameMeansAllItsPairsAndAPairOnlyItself) {
  RelayAdminStore& admin = storage().relay_admin_store();
  EXPECT_EQ(admin.change(PairSelector::pair("wallets", "kafka"), PairChange::pause), 1U);
  EXPECT_EQ(cell(wallets, "status"), "PAUSED");
  EXPECT_EQ(cell(payments, "status"), "ACTIVE") << "its namesake in another topic";
  EXPECT_EQ(cell(hooks, "status"), "ACTIVE");
  EXPECT_EQ(admin.change(PairSelector::of_publisher("kafka"), PairChange::pause), 2U);
  EXPECT_EQ(cell(payments, "status"), "PAUSED");
  EXPECT_EQ(cell(hooks, "status"), "ACTIVE");
  EXPECT_EQ(admin.change(PairSelector::of_topic("wallets"), PairChange::resume), 2U);
  EXPECT_EQ(cell(wallets, "status"), "ACTIVE");
  EXPECT_EQ(cell(payments, "status"), "PAUSED");
  EXPECT_EQ(admin.change(PairSelector::all(), PairChange::reset), 3U);
  EXPECT_EQ(cell(payments, "status"), "PAUSED") << "reset is about errors";
  EXPECT_EQ(admin.change(PairSelector::of_publisher("none"), PairChange::pause), 0U);
}

TEST_P(ProgressVerbs, ForgettingErrorsRaisesTheEpochSoThatTheLeaderSeesIt) {
  ASSERT_THAT(take(node("a"), Taking::orphans, {wallets, payments}), SizeIs(2));
  RelayAdminStore& admin = storage().relay_admin_store();
  const auto fail = [&](int epoch, bool counted, bool stop) -> bool {
    const PairFailure failure{
        .name = wallets, .epoch = Epoch{epoch}, .error = "bad", .counted = counted, .stop = stop};
    return store().fail({&failure, 1}).at(0);
  };
  ASSERT_TRUE(fail(1, true, false));
  admin.change(PairSelector::all(), PairChange::resume);
  EXPECT_EQ(cell(wallets, "epoch"), "2");
  EXPECT_EQ(cell(wallets, "error_count"), "0");
  EXPECT_EQ(cell(payments, "epoch"), "1") << "it has no errors, and what it is about to write is good";
  ASSERT_TRUE(fail(2, false, false));
  admin.change(PairSelector::all(), PairChange::reset);
  EXPECT_EQ(cell(wallets, "epoch"), "3") << "an absence, which does not count, makes it pause too";
  ASSERT_TRUE(fail(3, true, true));
  ASSERT_EQ(cell(wallets, "status"), "FAILED");
  admin.change(PairSelector::of_topic("payments"), PairChange::pause);
  admin.move_to(PairSelector::all(), Position{0});
  EXPECT_EQ(cell(wallets, "status"), "ACTIVE") << "past the event that was refused";
  EXPECT_EQ(cell(payments, "status"), "PAUSED");
}

}  // namespace
}  // namespace postrider::conformance
