// SPDX-License-Identifier: Apache-2.0
#include "storage/conformance/stream_fixture.hpp"

namespace postrider::conformance {
namespace {

class StreamRead : public StreamConformance {
 protected:
  void SetUp() override {
    StreamConformance::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    append({happened("A", {"x=1"}), happened("B", {"x=1", "y=1"}), happened("A", {"y=1"}), happened("C"),
            happened("B", {"x=2"}), happened("A", {"x=1", "y=1"})});
  }
};
POSTRIDER_FOR_EACH_BACKEND(StreamRead);

TEST_P(StreamRead, ByEveryShapeOfQuery) {
  EXPECT_EQ(found(Query::all()), (Positions{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(found(Query::type("A")), (Positions{1, 3, 6}));
  EXPECT_EQ(found(Query::types({"A", "C"})), (Positions{1, 3, 4, 6}));
  EXPECT_EQ(found(Query::tag("x", "1")), (Positions{1, 2, 6}));
  EXPECT_EQ(found(Query::tags({{"x", "1"}, {"y", "1"}})), (Positions{2, 6}));
  EXPECT_EQ(found(Query::of({{.types = {"A"}, .tags = {{"x", "1"}, {"y", "1"}}}})), (Positions{6}));
  EXPECT_EQ(found(Query::of({{.types = {"A", "B"}, .tags = {{"x", "1"}}}})), (Positions{1, 2, 6}));
  EXPECT_EQ(
      found(Query::type("C") | Query::tag("x", "2") | Query::of({{.types = {"A"}, .tags = {{"y", "1"}}}})),
      (Positions{3, 4, 5, 6}));
  EXPECT_EQ(found(Query::type("a")), (Positions{}));
  EXPECT_EQ(found(Query::tag("x", "")), (Positions{}));
  EXPECT_EQ(found(Query::tag("x", "1"), {.backwards = true}), (Positions{6, 2, 1}));
  EXPECT_EQ(found(Query::all(), {.backwards = true}), (Positions{6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(positions_of(store().read({}).events), (Positions{1, 2, 3, 4, 5, 6}));
}

TEST_P(StreamRead, AfterIsExcludedAndUntilIncluded) {
  const Query a = Query::type("A");
  EXPECT_EQ(found(a, {.after = Position{1}}), (Positions{3, 6}));
  EXPECT_EQ(found(a, {.after = Position{2}, .until = Position{3}}), (Positions{3}));
  EXPECT_EQ(found(a, {.after = Position{3}, .until = Position{5}}), (Positions{}));
  EXPECT_EQ(found(a, {.after = Position{1}, .until = Position{6}, .backwards = true}), (Positions{6, 3}));
  EXPECT_EQ(found(Query::all(), {.after = Position{4}}), (Positions{5, 6}));
  EXPECT_EQ(found(Query::all(), {.after = Position{4}, .until = Position{5}, .backwards = true}),
            (Positions{5}));
  EXPECT_EQ(found(Query::all(), {.after = Position{100}}), (Positions{}));
  EXPECT_EQ(found(Query::all(), {.after = Position{-5}}), (Positions{1, 2, 3, 4, 5, 6}));
}

TEST_P(StreamRead, AtPositionsWhateverIsThere) {
  const auto at = [&](const std::vector<Position>& positions, std::size_t max_bytes = 1U << 20U) {
    return store().read_at(positions, max_bytes);
  };
  EXPECT_EQ(positions_of(at({}).events), (Positions{}));
  EXPECT_EQ(positions_of(at({Position{2}, Position{5}}).events), (Positions{2, 5}));
  EXPECT_EQ(at({Position{2}}).events.at(0).type(), "B");
  EXPECT_EQ(at({Position{2}}).head, Position{6});
  EXPECT_EQ(positions_of(at({Position{0}, Position{1}, Position{6}, Position{7}, Position{99}}).events),
            (Positions{1, 6}));
  Transaction tx = storage().begin();
  tx.execute("delete from " + database().table("events") + " where position = 3");
  tx.commit();
  EXPECT_EQ(positions_of(at({Position{2}, Position{3}, Position{4}}).events), (Positions{2, 4}));
  std::vector<Position> many;
  for (std::int64_t i = 1; i <= 10'000; ++i) many.push_back(Position{i});
  EXPECT_EQ(positions_of(at(many).events), (Positions{1, 2, 4, 5, 6}));
  EXPECT_FALSE(at(many).more);
}

TEST_P(StreamRead, AtPositionsPageByPageWhenTheyAreLarge) {
  const AppendEvent large = AppendEvent::builder("Large").data('"' + std::string(1000, 'x') + '"').build();
  append({large, large, large});
  const std::vector<Position> wanted{Position{7}, Position{8}, Position{9}};
  const ReadPage first = store().read_at(wanted, 1500);
  EXPECT_EQ(positions_of(first.events), (Positions{7, 8})) << "up to the one that reaches it";
  EXPECT_TRUE(first.more);
  EXPECT_EQ(first.seen, Position{8});
  const ReadPage second = store().read_at(std::span(wanted).subspan(2), 1500);
  EXPECT_EQ(positions_of(second.events), (Positions{9}));
  EXPECT_EQ(positions_of(store().read_at(wanted, 1).events), (Positions{7})) << "at least one";
}

TEST_P(StreamRead, PagesTellHowToGoOn) {
  for (const Query& query :
       {Query::all(), Query::types({"A", "B", "C"}), Query::tag("x", "1") | Query::type("C")}) {
    const Positions whole = found(query);
    for (std::size_t limit = 1; limit <= 7; ++limit) {
      Positions forwards;
      ReadRequest next{.limit = limit};
      for (bool more = true; more;) {
        const ReadPage page = read(query, next);
        ASSERT_LE(page.events.size(), limit);
        for (const std::int64_t one : positions_of(page.events)) forwards.push_back(one);
        EXPECT_EQ(page.head, Position{6});
        more = page.more;
        next.after = page.seen;
      }
      EXPECT_EQ(forwards, whole) << limit;
      EXPECT_EQ(next.after, Position{6}) << "everything has been looked at";

      Positions backwards;
      next = {.limit = limit, .backwards = true};
      for (bool more = true; more;) {
        const ReadPage page = read(query, next);
        for (const std::int64_t one : positions_of(page.events)) backwards.push_back(one);
        more = page.more;
        next.until = Position{static_cast<std::int64_t>(page.seen) - 1};
      }
      EXPECT_EQ(backwards, Positions(whole.rbegin(), whole.rend())) << limit;
    }
  }
}

TEST_P(StreamRead, APageHasABoundInBytes) {
  std::vector<AppendEvent> large;
  for (int i = 0; i < 40; ++i) {
    large.push_back(AppendEvent::builder("Large").tag("l", "1").bytes(std::string(10'000, 'x')));
  }
  append(large);
  for (const Query& query : {Query::type("Large"), Query::all()}) {
    for (const bool backwards : {false, true}) {
      ReadRequest next{.after = Position{6}, .max_bytes = 35'000, .backwards = backwards};
      std::size_t events = 0;
      std::size_t pages = 0;
      for (bool more = true; more; ++pages) {
        const ReadPage page = read(query, next);
        EXPECT_LE(page.events.size(), 4U);
        events += page.events.size();
        more = page.more;
        (backwards ? next.until : next.after) =
            Position{static_cast<std::int64_t>(page.seen) - (backwards ? 1 : 0)};
      }
      EXPECT_EQ(events, 40U);
      EXPECT_GE(pages, 10U);
    }
  }
  EXPECT_EQ(read(Query::all(), {.max_bytes = 0}).events.size(), 1U) << "one at least, or nobody gets on";
}

TEST_P(StreamRead, TheHeadIsThatOfThePagesSnapshot) {
  const ReadPage before = read(Query::tag("x", "1"));
  EXPECT_EQ(before.head, Position{6});
  append({happened("New", {"x=1"})});
  EXPECT_EQ(found(Query::tag("x", "1"), {.until = before.head}), (Positions{1, 2, 6}));
  EXPECT_EQ(read(Query::type("Nobody")).head, Position{7});
  EXPECT_EQ(read(Query::all(), {.limit = 0}).head, Position{7});
  EXPECT_FALSE(read(Query::all(), {.limit = 0}).more);
}

TEST_P(StreamRead, OneHotTagDoesNotHideARareOne) {
  std::vector<AppendEvent> many;
  for (int i = 0; i < 300; ++i) {
    AppendEventBuilder builder = AppendEvent::builder("Hot");
    builder.tag("hot", "1");
    if (i % 100 == 50) builder.tag("rare", "1");
    if (i % 2 == 1) builder.tag("warm", "1");
    many.push_back(builder.build());
  }
  append(many);  // 7 to 306
  EXPECT_EQ(found(Query::tags({{"hot", "1"}, {"rare", "1"}})), (Positions{57, 157, 257}));
  EXPECT_EQ(found(Query::tags({{"hot", "1"}, {"rare", "1"}}), {.backwards = true}),
            (Positions{257, 157, 57}));
  EXPECT_EQ(found(Query::tags({{"warm", "1"}, {"rare", "1"}})), (Positions{}));
  EXPECT_EQ(found(Query::tags({{"hot", "1"}, {"warm", "1"}})).size(), 150U);
  EXPECT_EQ(append({happened("N")},
                   AppendCondition{.query = Query::tags({{"hot", "1"}, {"warm", "1"}, {"rare", "1"}})}),
            "appended 307-307");
}

}  // namespace
}  // namespace postrider::conformance
