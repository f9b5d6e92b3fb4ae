// SPDX-License-Identifier: Apache-2.0
#include "storage/outbox_search_store.hpp"

#include <set>

#include "storage/conformance/outbox_fixture.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class OutboxSearchVerbs : public OutboxConformance {
 protected:
  OutboxSearchStore& searcher() { return storage().outbox_search_store(); }
  /// All pages of a search, and how many there were.
  std::vector<std::string> find(OutboxSearch search) {
    std::vector<std::string> ids;
    pages_ = 0;
    for (;;) {
      const OutboxPage page = searcher().search(search);
      ++pages_;
      EXPECT_LE(page.records.size(), search.limit);
      for (const OutboxRecord& one : page.records) ids.push_back(one.id.str());
      if (!page.next) return ids;
      search.after = page.next;
      if (pages_ > 100) {
        ADD_FAILURE() << "no end";
        return ids;
      }
    }
  }
  void bury(const std::string& id, const std::string& error = "hopeless", const std::string& type = "T") {
    publish(id, {.owner = "n", .lease = 1h, .type = type});
    ASSERT_EQ(complete({EventId(id), birth_token}, Completion::Kind::dead, {}, 3, error), 1U);
  }
  void finish(const std::string& id) {
    publish(id, {.owner = "n", .lease = 1h});
    ASSERT_EQ(complete({EventId(id), birth_token}, Completion::Kind::done), 1U);
  }

  int pages_ = 0;
};
POSTRIDER_FOR_EACH_BACKEND(OutboxSearchVerbs);

TEST_P(OutboxSearchVerbs, AnEmptyTableHasNothing) {
  for (const OutboxList list : {OutboxList::all, OutboxList::pending, OutboxList::done, OutboxList::dead}) {
    const OutboxPage page = searcher().search({.list = list});
    EXPECT_THAT(page.records, IsEmpty());
    EXPECT_FALSE(page.next);
  }
}

TEST_P(OutboxSearchVerbs, EachListHasItsRowsInItsOrder) {
  publish("p2", {.deliver_in = 2h});
  publish("p1", {.key = "k", .deliver_in = 1h});
  publish("p3", {.deliver_in = 3h});
  for (const char* id : {"d2", "d1", "d3"}) {
    finish(id);
    clock_.advance(1s);
  }
  bury("x1");
  clock_.advance(1s);
  bury("x2");
  for (const std::size_t limit : {1U, 2U, 100U}) {
    EXPECT_THAT(find({.limit = limit}), ElementsAre("x2", "x1", "p3", "p2", "p1", "d3", "d2", "d1"));
    EXPECT_THAT(find({.list = OutboxList::pending, .limit = limit}), ElementsAre("p1", "p2", "p3"));
    EXPECT_THAT(find({.list = OutboxList::done, .limit = limit}), ElementsAre("d3", "d1", "d2"));
    EXPECT_THAT(find({.list = OutboxList::dead, .limit = limit}), ElementsAre("x2", "x1"));
  }
}

TEST_P(OutboxSearchVerbs, PagesMayEndBetweenRowsOfTheSameTime) {
  std::vector<std::string> dead;
  std::vector<std::string> pending;
  for (int i = 0; i < 7; ++i) {
    dead.push_back("d" + std::to_string(i));
    pending.push_back("p" + std::to_string(i));
    bury(dead.back());
    publish(pending.back(), {.key = i % 2 == 0 ? "k" + std::to_string(i) : ""});
  }
  EXPECT_THAT(find({.list = OutboxList::pending, .limit = 2}), ::testing::ElementsAreArray(pending));
  std::reverse(dead.begin(), dead.end());
  EXPECT_THAT(find({.list = OutboxList::dead, .limit = 2}), ::testing::ElementsAreArray(dead));
}

TEST_P(OutboxSearchVerbs, FiltersGoTogether) {
  publish_order("a", "Placed", "1", "t");
  publish_order("b", "Placed", "2", "t");
  publish_order("c", "Paid", "1", "u");
  EXPECT_THAT(find({.type = "Placed"}), ElementsAre("b", "a"));
  EXPECT_THAT(find({.aggregate_type = "Order", .aggregate_id = "1"}), ElementsAre("c", "a"));
  EXPECT_THAT(find({.tenant_id = "u"}), ElementsAre("c"));
  EXPECT_THAT(find({.list = OutboxList::pending, .type = "Placed", .aggregate_id = "1"}), ElementsAre("a"));
  EXPECT_THAT(find({.type = "placed"}), IsEmpty());
  claim("n1");
  retry("a", 1h);
  EXPECT_THAT(find({.list = OutboxList::pending, .status = EventStatus::retry}), ElementsAre("a"));
  EXPECT_THAT(find({.status = EventStatus::fresh}), ElementsAre("c", "b"));
  EXPECT_THAT(find({.error_contains = "no luck"}), ElementsAre("a"));
}

TEST_P(OutboxSearchVerbs, TimesAreThoseOfTheList) {
  const TimePoint start = clock_.now();
  bury("x1");
  clock_.advance(10s);
  bury("x2");
  EXPECT_THAT(find({.list = OutboxList::dead, .from = start + 10s}), ElementsAre("x2"));
  EXPECT_THAT(find({.list = OutboxList::dead, .until = start + 10s}), ElementsAre("x1"));
  EXPECT_THAT(find({.from = start + 1s}), ElementsAre("x2"));
}

TEST_P(OutboxSearchVerbs, ARareMatchCostsABoundedLookAndIsFoundInTheEnd) {
  publish("a00", {.type = "Rare"});
  for (int i = 1; i <= 25; ++i) publish("b" + std::to_string(100 + i));
  const OutboxPage first = searcher().search({.type = "Rare", .look_at = 10});
  EXPECT_THAT(first.records, IsEmpty());
  ASSERT_TRUE(first.next) << "an empty page is not the end";
  EXPECT_EQ(first.next->id.str(), "b116");
  EXPECT_THAT(find({.type = "Rare", .look_at = 10}), ElementsAre("a00"));
  EXPECT_EQ(pages_, 3);
  EXPECT_THAT(find({.list = OutboxList::pending, .type = "Rare", .look_at = 10}), ElementsAre("a00"));
}

TEST_P(OutboxSearchVerbs, KnownIdsAreThoseWithRows) {
  bury("x1");
  publish("p1");
  const std::vector<EventId> ids{EventId("p1"), EventId("nobody"), EventId("x1"), EventId("X1")};
  std::set<std::string> known;
  for (const EventId& id : searcher().known(ids)) known.insert(id.str());
  EXPECT_THAT(known, ElementsAre("p1", "x1"));
  EXPECT_THAT(searcher().known({}), IsEmpty());
}

TEST_P(OutboxSearchVerbs, ListsLeaveContentOut) {
  Transaction tx = storage().begin();
  insert(tx, Event::builder("T").id(EventId("j")).header("h", "v").json("{}").build());
  insert(tx, Event::bytes("T", "abc"));
  tx.commit();
  for (const OutboxRecord& one : searcher().search({}).records) {
    EXPECT_EQ(one.payload, "");
    EXPECT_EQ(one.headers_json, "");
    EXPECT_EQ(one.payload_kind, one.id.str() == "j" ? PayloadKind::json : PayloadKind::bytes);
  }
}

TEST_P(OutboxSearchVerbs, DeadErrorsAreTheLatestAndCut) {
  bury("x1", "old");
  clock_.advance(1s);
  bury("x2", "ümläut " + std::string(400, 'x'), "Paid");
  const std::vector<DeadError> errors = searcher().dead_errors(10, 7);
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_EQ(errors[0].id.str(), "x2");
  EXPECT_EQ(errors[0].type, "Paid");
  EXPECT_EQ(errors[0].error, "ümläut ") << "characters, not bytes";
  EXPECT_EQ(errors[0].died_at, clock_.now());
  EXPECT_EQ(errors[1].error, "old");
  EXPECT_EQ(searcher().dead_errors(1, 7).size(), 1U);
}

TEST_P(OutboxSearchVerbs, RevivedLettersMayFallDueLater) {
  bury("x1");
  bury("x2");
  EXPECT_EQ(admin().revive_dead({}, 1, 10s), 1);
  EXPECT_EQ(record("x1").available_at, clock_.now() + 10s);
  EXPECT_THAT(claim("n"), IsEmpty());
  clock_.advance(10s);
  EXPECT_THAT(claim("n"), ElementsAre("x1"));
  EXPECT_EQ(record("x2").status, EventStatus::dead);
}

TEST_P(OutboxSearchVerbs, AReplayWithARateIsSpreadOverTimeAndGoesOnWhereItStopped) {
  for (int i = 0; i < 25; ++i) bury("x" + std::to_string(10 + i));
  OutboxAdmin verbs(storage());
  const TimePoint start = clock_.now();
  const Replayed first = verbs.replay_some({}, {.at_most = 20, .rate = 10});
  EXPECT_EQ(first.events, 20);
  EXPECT_EQ(first.left, 5);
  EXPECT_EQ(first.next_in, 2s);
  std::set<TimePoint> due;
  for (int i = 0; i < 20; ++i) due.insert(record("x" + std::to_string(10 + i)).available_at);
  EXPECT_EQ(due.size(), 20U) << "one after the other";
  EXPECT_EQ(*due.begin(), start);
  EXPECT_EQ(*due.rbegin(), start + 1900ms);
  const Replayed rest = verbs.replay_some({}, {.rate = 10, .start_in = first.next_in});
  EXPECT_EQ(rest.events, 5);
  EXPECT_EQ(rest.left, 0);
  EXPECT_EQ(record("x30").available_at, start + 2s);
  EXPECT_EQ(verbs.replay_some({}).events, 0);
  EXPECT_EQ(error_of([&] { (void)verbs.replay_some({}, {.rate = 0}); }).code(), ErrorCode::invalid_argument);
  EXPECT_EQ(error_of([&] { (void)verbs.replay_some({}, {.at_most = 0}); }).code(),
            ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace postrider::conformance
