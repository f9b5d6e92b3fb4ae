// SPDX-License-Identifier: Apache-2.0
#include <mutex>
#include <set>
#include <thread>

#include "storage/conformance/outbox_fixture.hpp"
#include "storage/next_token.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class OutboxClaim : public OutboxConformance {};
POSTRIDER_FOR_EACH_BACKEND(OutboxClaim);

TEST_P(OutboxClaim, AnEmptyTableGivesNothing) {
  EXPECT_EQ(claim("n1"), none());
  publish("a");
  EXPECT_EQ(claim("n1", 0), none());
}

TEST_P(OutboxClaim, ThoseDueForLongestComeFirst) {
  publish("c", {.deliver_in = 2s});
  publish("a", {.deliver_in = 3s});
  publish("b", {.deliver_in = 1s});
  publish("keyed", {.key = "k", .deliver_in = 1500ms});
  clock_.advance(10s);
  EXPECT_THAT(claim("n1"), ElementsAre("b", "keyed", "c", "a"));
}

TEST_P(OutboxClaim, TheLimitHoldsAndTheRestComesNext) {
  for (int i = 0; i < 5; ++i) {
    publish("e" + std::to_string(i));
    clock_.advance(1ms);
  }
  EXPECT_THAT(claim("n1", 2), ElementsAre("e0", "e1"));
  EXPECT_THAT(claim("n2", 2), ElementsAre("e2", "e3"));
  EXPECT_THAT(claim("n1", 2), ElementsAre("e4"));
  EXPECT_EQ(claim("n1", 2), none());
}

TEST_P(OutboxClaim, ARowBornLeasedIsKeptFromOthersUntilTheLeaseEnds) {
  publish("mine", {.owner = "n1", .lease = 30s});
  EXPECT_EQ(record("mine").owner, "n1");
  EXPECT_EQ(claim("n2"), none());
  EXPECT_EQ(claim("n1"), none()) << "not even its owner needs to claim it";
  EXPECT_EQ(complete({EventId("mine"), birth_token}, Completion::Kind::done), 1U)
      << "it is held with the birth token";

  publish("crashed", {.owner = "n1", .lease = 30s});
  clock_.advance(30s - 1us);
  EXPECT_EQ(claim("n2"), none());
  clock_.advance(1us);
  EXPECT_THAT(claim("n2"), ElementsAre("crashed"));
  EXPECT_EQ(complete({EventId("crashed"), birth_token}, Completion::Kind::done), 0U)
      << "the old holder is fenced";
}

TEST_P(OutboxClaim, TheTokenGrowsWithEveryClaim) {
  publish("a");
  for (std::int64_t token = 2; token < 6; ++token) {
    ASSERT_THAT(claim("n" + std::to_string(token)), ElementsAre("a"));
    EXPECT_EQ(held("a").token, Token{token});
    EXPECT_EQ(record("a").owner, "n" + std::to_string(token));
    clock_.advance(30s);
  }
}

TEST_P(OutboxClaim, ADelayedEventWaitsForItsTime) {
  publish("later", {.deliver_in = 1h});
  EXPECT_EQ(claim("n1"), none());
  clock_.advance(1h - 1us);
  EXPECT_EQ(claim("n1"), none());
  clock_.advance(1us);
  EXPECT_THAT(claim("n1"), ElementsAre("later"));
}

TEST_P(OutboxClaim, RenewingExtendsOnlyWhatIsStillHeld) {
  publish_all({"a", "b", "c", "d"});
  claim("n1");
  const LeaseRef stale{EventId("d"), birth_token};
  done("b");
  dead("c");
  clock_.advance(20s);
  const std::vector<LeaseRef> asked{held("a"), held("b"), held("c"), stale, {EventId("unknown"), Token{2}}};
  EXPECT_THAT(store().renew(asked, 30s), ElementsAre(EventId("a")));
  EXPECT_TRUE(store().renew({}, 30s).empty());
  clock_.advance(10s);
  EXPECT_THAT(claim("n2"), ElementsAre("d")) << "its lease was not extended by a stale token";
  clock_.advance(20s - 1us);
  EXPECT_EQ(claim("n3"), none());
  clock_.advance(1us);
  EXPECT_THAT(claim("n3"), ElementsAre("a")) << "30 s after the renewal";
}

TEST_P(OutboxClaim, RenewingManyAtOnce) {
  std::vector<LeaseRef> refs;
  for (int i = 0; i < 300; ++i) {
    const std::string id = "e" + std::to_string(i);
    publish(id, {.owner = "n1", .lease = 30s});
    refs.push_back({EventId(id), i % 3 == 0 ? Token{9} : birth_token});
  }
  EXPECT_EQ(store().renew(refs, 1h).size(), 200U);
  clock_.advance(30s);
  EXPECT_EQ(claim("n2", 1000).size(), 100U);
}

TEST_P(OutboxClaim, HazardO1_TwoClaimersNeverGetTheSameRow) {
  constexpr int rows = 400;
  {
    std::vector<Event> events;
    std::vector<NewOutboxRow> batch;
    for (int i = 0; i < rows; ++i) events.push_back(Event::json("E", "1"));
    for (std::size_t i = 0; i < events.size(); ++i) {
      // Every other one ordered, over a few keys.
      batch.push_back({.event = &events[i],
                       .ordering_key = i % 2 == 0   ? std::string_view()
                                       : i % 3 == 0 ? "x"
                                                    : "y"});
    }
    Transaction tx = storage().begin();
    store().insert(tx, "n", batch);
    tx.commit();
  }
  auto other = database().open_another();
  std::mutex mutex;
  std::multiset<std::string> seen;
  const auto work = [&](OutboxStore& outbox, const std::string& owner) {
    for (int round = 0, idle = 0; round < 2000 && idle < 3; ++round) {
      // Keys are finished at once, so that their next events come free.
      const std::vector<std::string> keys{"x", "y"};
      const auto claimed = outbox.claim({.owner = owner, .lease = 1h, .limit = 7, .continue_keys = keys});
      idle = claimed.empty() ? idle + 1 : 0;
      std::vector<Completion> results;
      for (const ClaimedEvent& one : claimed) results.push_back({.lease = one.lease});
      EXPECT_EQ(outbox.complete(results), results.size()) << "nobody else may hold what was claimed";
      const std::lock_guard lock(mutex);
      for (const ClaimedEvent& one : claimed) seen.insert(one.lease.id.str());
    }
  };
  {
    const std::jthread first([&] { work(store(), "n1"); });
    const std::jthread second([&] { work(other->outbox_store(), "n2"); });
    const std::jthread third([&] { work(store(), "n3"); });
  }
  work(store(), "n4");
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(rows)) << "each exactly once";
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), static_cast<std::size_t>(rows));
  EXPECT_EQ(admin().counts().done, rows);
}

TEST_P(OutboxClaim, HazardO7_ARowThatIsNoEventDoesNotStopTheBatch) {
  publish("good1");
  publish_all({"headers", "type"});
  publish("good2");
  {
    Transaction tx = storage().begin();
    tx.execute("update " + table() + " set headers = ? where event_id = ?", R"({"a": [1]})", "headers");
    tx.execute("update " + table() + " set event_type = ? where event_id = ?", "", "type");
    tx.commit();
  }
  const auto claimed = claim_events("n1");
  ASSERT_EQ(claimed.size(), 4U);
  for (const ClaimedEvent& one : claimed) {
    const bool good = one.lease.id.view().starts_with("good");
    EXPECT_EQ(one.event.has_value(), good) << one.lease.id.view();
    EXPECT_EQ(one.decode_error.empty(), good) << one.decode_error;
    if (!good) {
      EXPECT_EQ(complete(one.lease, Completion::Kind::dead, {}, 1, one.decode_error), 1U);
    }
  }
  EXPECT_THAT(record("headers").last_error, HasSubstr("header"));
  EXPECT_EQ(record("headers").headers_json, R"({"a": [1]})") << "an operator sees what is there";
}

TEST_P(OutboxClaim, HazardO7_ATokenThatCannotGrowDoesNotStopEveryClaim) {
  publish("free");
  publish("keyed", {.key = "k"});
  publish("other");
  sql("update " + table() + " set token = ? where event_id <> ?", last_token, "other");
  EXPECT_THAT(claim("n1"), UnorderedElementsAre("free", "keyed", "other"));
  EXPECT_EQ(held("free").token, Token{1}) << "it starts again";
  EXPECT_EQ(held("keyed").token, Token{1});
  EXPECT_EQ(complete({EventId("free"), Token{last_token}}, Completion::Kind::done), 0U);
  for (const char* id : {"free", "keyed", "other"}) EXPECT_EQ(done(id), 1U) << id;
}

TEST_P(OutboxClaim, RowsPublishedMeanwhileAreFoundByTheNextClaim) {
  EXPECT_EQ(claim("n1"), none());
  publish("a");
  EXPECT_THAT(claim("n1"), ElementsAre("a"));
  publish("b");
  EXPECT_THAT(claim("n2"), ElementsAre("b"));
}

TEST_P(OutboxClaim, ARowThatWasGivenBackIsNotRenewed) {
  publish("a");
  claim("n1");
  const LeaseRef lease = held("a");
  EXPECT_EQ(complete(lease, Completion::Kind::release), 1U);
  EXPECT_TRUE(store().renew({&lease, 1}, 30s).empty()) << "it would be leased to nobody";
  EXPECT_THAT(claim("n2"), ::testing::ElementsAre("a"));
}

}  // namespace
}  // namespace postrider::conformance
