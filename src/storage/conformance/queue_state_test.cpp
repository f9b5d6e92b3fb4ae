// SPDX-License-Identifier: Apache-2.0
// What is remembered of each handler while its event is in the queue.
#include <algorithm>

#include "storage/conformance/queue_fixture.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class QueueState : public QueueConformance {
 protected:
  std::vector<StateRow> load(const std::vector<QueueId>& ids) {
    std::vector<StateRow> found;
    for (QueueStore::EventState& one : store().load_states(ids)) {
      found.push_back({static_cast<std::int64_t>(one.id), std::move(one.result)});
    }
    return found;
  }
  static StateRow state(const Claim& claim, HandlerResult result) {
    return {static_cast<std::int64_t>(claim.id), std::move(result)};
  }
};
POSTRIDER_FOR_EACH_BACKEND(QueueState);

const HandlerResult ok{.handler = "mail"};
const HandlerResult sub_task{.handler = "mail#sub tàsk"};
const HandlerResult busy{
    .handler = "bill", .verdict = HandlerVerdict::transient_error, .failed = Attempt{2}, .error = "busy 🐝"};

TEST_P(QueueState, WhatWasSavedIsLoadedForTheseEventsOnly) {
  publish_all({"a", "b", "c"});
  claim();
  EXPECT_TRUE(store().save_states(held("a"), std::vector{ok, busy}));
  EXPECT_TRUE(store().save_states(held("b"), std::vector{sub_task}));
  EXPECT_TRUE(store().save_states(held("c"), std::vector{ok}));
  EXPECT_THAT(load({held("a").id, held("b").id}),
              UnorderedElementsAre(state(held("a"), ok), state(held("a"), busy), state(held("b"), sub_task)));
  EXPECT_THAT(load({QueueId{4711}}), IsEmpty());
  EXPECT_THAT(load({}), IsEmpty());
}

TEST_P(QueueState, OfManyEventsAtOnce) {
  std::vector<QueueId> ids;
  for (int i = 0; i < 1200; ++i) ids.push_back(QueueId{1'000'000 + i});
  publish("a");
  claim();
  store().save_states(held("a"), std::vector{ok});
  ids.push_back(held("a").id);
  EXPECT_THAT(load(ids), ElementsAre(state(held("a"), ok)));
}

TEST_P(QueueState, ANewOneReplacesTheOldOfItsHandler) {
  publish("a");
  claim();
  store().save_states(held("a"), std::vector{ok, busy});
  const HandlerResult recovered{.handler = "bill", .failed = Attempt{2}};
  EXPECT_TRUE(store().save_states(held("a"), std::vector{recovered}));
  EXPECT_THAT(load({held("a").id}), UnorderedElementsAre(state(held("a"), ok), state(held("a"), recovered)));
}

TEST_P(QueueState, HandlersAreToldApartByteForByte) {
  publish("a");
  claim();
  store().save_states(held("a"),
                      std::vector<HandlerResult>{{.handler = "h"}, {.handler = "H"}, {.handler = "h "}});
  EXPECT_EQ(load({held("a").id}).size(), 3U);
}

TEST_P(QueueState, AStaleClaimSavesNothing) {
  publish_all({"taken", "released", "finished"});
  claim();
  const Claim old = held("taken");
  release("released");
  finalize("finished");
  clock_.advance(30s);
  claim({.owner = "n2", .limit = 1});
  ASSERT_EQ(row("taken").owner, "n2");
  for (const Claim& stale : {old, held("released"), held("finished"), Claim{QueueId{4711}, Token{1}}}) {
    EXPECT_FALSE(store().save_states(stale, std::vector{ok}));
    Transaction tx = storage().begin();
    EXPECT_FALSE(store().save_states(tx, stale, std::vector{ok}));
    tx.commit();
  }
  EXPECT_THAT(state_rows(), IsEmpty());
}

TEST_P(QueueState, InTheCallersTransactionItHappensWithIt) {
  publish("a");
  claim();
  {
    Transaction tx = storage().begin();
    EXPECT_TRUE(store().save_states(tx, held("a"), std::vector{ok}));
    tx.rollback();
  }
  EXPECT_THAT(state_rows(), IsEmpty());
  {
    Transaction tx = storage().begin();
    EXPECT_TRUE(store().save_states(tx, held("a"), std::vector{ok}));
    tx.commit();
  }
  EXPECT_THAT(state_rows(), ElementsAre(state(held("a"), ok)));
  EXPECT_EQ(row("a").status, QueueStatus::processing) << "the claim goes on";
}

TEST_P(QueueState, StatesOutliveARetryAndACrash) {
  publish("a");
  claim();
  store().save_states(held("a"), std::vector{sub_task});
  retry(held("a"), 0s, {busy});
  claim();
  clock_.advance(30s);
  claim({.owner = "n2"});
  EXPECT_THAT(load({held("a").id}), UnorderedElementsAre(state(held("a"), sub_task), state(held("a"), busy)));
}

TEST_P(QueueState, OnlyStatesOfFinishedEventsAreCleanedAFewAtATime) {
  publish_all({"a", "b", "c"});
  claim();
  for (const char* name : {"a", "b", "c"}) store().save_states(held(name), std::vector{ok, busy});
  EXPECT_EQ(store().clean_states(100), 0U) << "all of them are in the queue";
  finalize("a");
  finalize("c");
  EXPECT_EQ(store().clean_states(3), 3U);
  EXPECT_EQ(store().clean_states(3), 1U);
  EXPECT_EQ(store().clean_states(3), 0U);
  EXPECT_THAT(state_rows(), UnorderedElementsAre(state(held("b"), ok), state(held("b"), busy)));
}

}  // namespace
}  // namespace postrider::conformance
