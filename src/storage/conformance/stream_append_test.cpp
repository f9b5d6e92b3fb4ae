// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <limits>

#include "storage/conformance/stream_fixture.hpp"
#include "storage/stream_keys.hpp"

namespace postrider::conformance {
namespace {

using ::testing::StartsWith;

class StreamAppend : public StreamConformance {};
POSTRIDER_FOR_EACH_BACKEND(StreamAppend);

TEST_P(StreamAppend, GivesPositionsInOrderFromOne) {
  EXPECT_EQ(store().head(), Position{0});
  EXPECT_EQ(append({happened("A")}), "appended 1-1");
  EXPECT_EQ(append({happened("B"), happened("C")}), "appended 2-3");
  EXPECT_EQ(store().head(), Position{3});
  EXPECT_EQ(everything(), (Positions{1, 2, 3}));
}

TEST_P(StreamAppend, HazardS13KeepsEveryFieldAsItWasGiven) {
  const TimePoint time{std::chrono::microseconds{1'650'000'000'123'456}};
  const Tags tags{
      {"", ""}, {"a=b", "c=d"}, {"comma,", "\"quoted\",'x'"}, {"k", ""}, {"schlüssel\\", "漢字 🚂\n"}};
  AppendEventBuilder builder = AppendEvent::builder("Gefäß geleert \"ganz\"");
  builder.id(EventId("event-1")).occurred_at(time).data("{\"a\" : [1,  \"ä\\u0000\"]}");
  builder.metadata("m", "wert ü")
      .correlation_id("korrelation ö")
      .causation_id("grund")
      .tags({tags.begin() + 1, tags.end()});
  EXPECT_EQ(append({builder.build(), AppendEvent::builder("Bytes").bytes(std::string("\0\xff'", 3)),
                    AppendEvent::builder("Empty").bytes("")}),
            "appended 1-3");
  const std::vector<StoredEvent> events = read(Query::all()).events;
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].id(), EventId("event-1"));
  EXPECT_EQ(events[0].type(), "Gefäß geleert \"ganz\"");
  EXPECT_EQ(events[0].data(), "{\"a\" : [1,  \"ä\\u0000\"]}");
  EXPECT_EQ(events[0].event().payload_kind(), PayloadKind::json);
  EXPECT_EQ(events[0].metadata(), (Headers{{"m", "wert ü"}}));
  EXPECT_EQ(events[0].tags(), (Tags{tags.begin() + 1, tags.end()}));
  EXPECT_EQ(events[0].correlation_id(), "korrelation ö");
  EXPECT_EQ(events[0].causation_id(), "grund");
  EXPECT_EQ(events[0].occurred_at(), time);
  EXPECT_EQ(events[0].stored_at(), clock_.now());
  EXPECT_EQ(events[1].event().payload_kind(), PayloadKind::bytes);
  EXPECT_EQ(events[1].data(), std::string_view("\0\xff'", 3));
  EXPECT_EQ(events[1].correlation_id(), "");
  EXPECT_TRUE(events[1].tags().empty());
  EXPECT_EQ(events[2].event().payload_kind(), PayloadKind::bytes);
  EXPECT_EQ(events[2].data(), "");
  for (std::size_t i = 1; i < tags.size(); ++i) {
    EXPECT_EQ(found(Query::tags({tags[i]})), (Positions{1})) << tags[i].encode();
  }
}

TEST_P(StreamAppend, TenThousandEventsAreOneAppend) {
  std::vector<AppendEvent> events;
  for (int i = 0; i < 10'000; ++i) {
    events.push_back(
        AppendEvent::builder("T" + std::to_string(i % 7)).tag("n", std::to_string(i % 100)).tag("all", "1"));
  }
  EXPECT_EQ(append(events), "appended 1-10000");
  EXPECT_EQ(store().head(), Position{10'000});
  EXPECT_EQ(found(Query::tag("n", "99"), {.limit = 10'000}).size(), 100U);
  EXPECT_EQ(
      append({happened("T0")}, AppendCondition{.query = Query::tag("all", "1"), .after = Position{9'999}}),
      "conflict 10000 T3");
  EXPECT_EQ(
      append({happened("T0")}, AppendCondition{.query = Query::tag("all", "1"), .after = Position{10'000}}),
      "appended 10001-10001");
}

TEST_P(StreamAppend, AConditionLooksBehindAfterOnly) {
  append({happened("A", {"x=1"}), happened("B", {"x=1"}), happened("C", {"x=2"})});
  const auto ask = [&](const Query& query, std::optional<Position> after) {
    Transaction tx = storage().begin();  // rolled back: asks only
    return append_in(tx, {happened("New")}, AppendCondition{.query = query, .after = after});
  };
  for (const auto& after :
       {std::optional<Position>{}, std::optional(Position{0}), std::optional(Position{1})}) {
    EXPECT_EQ(ask(Query::tag("x", "1"), after), "conflict 2 B");
  }
  EXPECT_EQ(ask(Query::tag("x", "1"), Position{2}), "appended 4-4");
  EXPECT_EQ(ask(Query::tag("x", "2"), Position{2}), "conflict 3 C");
  EXPECT_EQ(ask(Query::tag("x", "2"), Position{3}), "appended 4-4");
  EXPECT_EQ(ask(Query::tag("x", "3"), {}), "appended 4-4");
  EXPECT_EQ(ask(Query::all(), Position{2}), "conflict 3 C");
  EXPECT_EQ(ask(Query::all(), Position{3}), "appended 4-4");
  EXPECT_EQ(ask(Query::all(), {}), "conflict 3 C");
  EXPECT_EQ(everything(), (Positions{1, 2, 3}));
}

TEST_P(StreamAppend, AConditionBeyondTheHeadWouldGuardNothingAndIsRefused) {
  const auto refusal = [](const char* after, const char* head) {
    return std::string("postrider: cannot append to the event store: the condition's after is ") + after +
           ", and the store's last position is " + head + ", so that the condition would guard nothing";
  };
  const auto behind = [](std::int64_t position, const Query& query = Query::tag("x", "1")) {
    return AppendCondition{.query = query, .after = Position{position}};
  };
  EXPECT_THAT(append({happened("A")}, behind(1)), StartsWith(refusal("1", "0")));
  append({happened("A", {"x=1"}), happened("B")});
  EXPECT_THAT(append({happened("C")}, behind(3)), StartsWith(refusal("3", "2")));
  EXPECT_THAT(append({happened("C")}, behind(std::numeric_limits<std::int64_t>::max(), Query::all())),
              StartsWith(refusal("9223372036854775807", "2")));
  {
    Transaction tx = storage().begin();
    EXPECT_EQ(append_in(tx, {happened("C")}), "appended 3-3");
    EXPECT_EQ(append_in(tx, {happened("D")}, behind(3)), "appended 4-4")
        << "what it has appended itself counts";
    const AppendCondition far = behind(5);
    const std::vector<AppendEvent> events{happened("E")};
    EXPECT_THROW((void)store().append(tx, {.events = events, .condition = &far}), Error);
  }
  // The refusal of one is nobody else's.
  const AppendCondition far = behind(9);
  const AppendCondition near = behind(2);
  const std::vector<AppendEvent> one{happened("C")};
  const std::vector<AppendRequest> requests{
      {.events = one}, {.events = one, .condition = &far}, {.events = one, .condition = &near}};
  const std::vector<AppendVerdict> verdicts = store().append(requests);
  EXPECT_EQ(said(verdicts.at(0)), "appended 3-3");
  EXPECT_THAT(said(verdicts.at(1)), StartsWith(refusal("9", "3")));
  EXPECT_EQ(said(verdicts.at(2)), "appended 4-4");
  EXPECT_EQ(everything(), (Positions{1, 2, 3, 4}));
}

TEST_P(StreamAppend, AnEmptyStoreConflictsWithNothing) {
  EXPECT_EQ(append({happened("A")}, AppendCondition{}), "appended 1-1");
  EXPECT_EQ(append({happened("A")}, AppendCondition{}), "conflict 1 A");
}

TEST_P(StreamAppend, HazardS4ItemsOfAConditionStandForThemselves) {
  append({happened("A", {"y=2"}), happened("B", {"x=1"})});
  // Flattened, the types were {A, B} and the tags {x=1, y=2}: nothing has both tags, or everything has one.
  const Query query =
      Query::of({{.types = {"A"}, .tags = {{"x", "1"}}}, {.types = {"B"}, .tags = {{"y", "2"}}}});
  EXPECT_EQ(append({happened("A", {"x=1"})}, AppendCondition{.query = query}), "appended 3-3");
  EXPECT_EQ(append({happened("B", {"y=2"})}, AppendCondition{.query = query}), "conflict 3 A");
  EXPECT_EQ(append({happened("B", {"y=2"})}, AppendCondition{.query = query, .after = Position{3}}),
            "appended 4-4");
  EXPECT_EQ(append({happened("C")}, AppendCondition{.query = query, .after = Position{3}}), "conflict 4 B");
}

TEST_P(StreamAppend, HazardS5ATagAloneAndATypeAloneConflict) {
  append({happened("A", {"x=1"})});
  EXPECT_EQ(append({happened("B")}, AppendCondition{.query = Query::tag("x", "1")}), "conflict 1 A");
  EXPECT_EQ(append({happened("B")}, AppendCondition{.query = Query::type("A")}), "conflict 1 A");
  EXPECT_EQ(append({happened("B")}, AppendCondition{.query = Query::types({"Z", "A"})}), "conflict 1 A");
  EXPECT_EQ(append({happened("B")}, AppendCondition{.query = Query::tags({{"x", "1"}, {"y", "1"}})}),
            "appended 2-2");
}

TEST_P(StreamAppend, SeveralTagsMustStandTogether) {
  append({happened("A", {"x=1"}), happened("A", {"y=1"}), happened("B", {"x=1", "y=1", "z=1"}),
          happened("A", {"x=1"}), happened("A", {"y=1", "z=1"})});
  const auto both = [](std::vector<std::string> types) {
    return Query::of({{.types = std::move(types), .tags = {{"x", "1"}, {"y", "1"}}}});
  };
  EXPECT_EQ(append({happened("C")}, AppendCondition{.query = both({})}), "conflict 3 B");
  EXPECT_EQ(append({happened("C")}, AppendCondition{.query = both({"B", "A"})}), "conflict 3 B");
  EXPECT_EQ(append({happened("C")}, AppendCondition{.query = both({"A"})}), "appended 6-6");
  EXPECT_EQ(append({happened("C")}, AppendCondition{.query = both({}), .after = Position{3}}),
            "appended 7-7");
}

TEST_P(StreamAppend, LaterRequestsOfACallSeeEarlierOnes) {
  append({happened("Old", {"x=0"})});
  const AppendCondition x1{.query = Query::tag("x", "1")};
  const AppendCondition x0{.query = Query::tag("x", "0")};
  const AppendCondition all{.query = Query::all(), .after = Position{1}};
  const AppendCondition far{.query = Query::tag("x", "1"), .after = Position{2}};
  const AppendCondition pair{.query = Query::of({{.types = {"First"}, .tags = {{"x", "1"}, {"y", "1"}}}})};
  const std::vector<AppendEvent> first{happened("First", {"x=1", "y=1"})};
  const std::vector<AppendEvent> other{happened("Other", {"x=2"}), happened("Other", {"x=3"})};
  const std::vector<AppendRequest> requests{{.events = first, .condition = &x1},
                                            {.events = first, .condition = &x1},
                                            {.events = other},
                                            {.events = other, .condition = &x0},
                                            {.events = first, .condition = &all},
                                            {.events = first, .condition = &far},
                                            {.events = other, .condition = &pair},
                                            {.events = {}}};
  std::vector<std::string> verdicts;
  for (const AppendVerdict& verdict : store().append(requests)) verdicts.push_back(said(verdict));
  EXPECT_EQ(verdicts,
            (std::vector<std::string>{"appended 2-2", "conflict 2 First", "appended 3-4", "conflict 1 Old",
                                      "conflict 4 Other", "appended 5-5", "conflict 5 First",
                                      "postrider: cannot append: the list of events is empty"}));
  EXPECT_EQ(everything(), (Positions{1, 2, 3, 4, 5}));
}

TEST_P(StreamAppend, OneRefusedEventFailsItsRequestAlone) {
  // Whatever the database refuses: here a rule of the user's own.
  const std::string events = table("events");
  if (backend() == "sqlite") {
    sql("create trigger no_poison before insert on " + events +
        " when new.type = 'Poison' begin select raise(abort, 'no poison'); end");
  } else {
    sql("alter table " + events + " add constraint no_poison check (type <> 'Poison')");
  }
  const std::vector<AppendEvent> good{happened("Good", {"x=1"})};
  const std::vector<AppendEvent> bad{happened("Good"), happened("Poison")};
  const AppendCondition once{.query = Query::tag("x", "1")};
  const std::vector<AppendRequest> requests{{.events = good}, {.events = bad},
                                            {.events = good}, {.events = good, .condition = &once},
                                            {.events = bad},  {.events = good}};
  const std::vector<AppendVerdict> verdicts = store().append(requests);
  EXPECT_EQ(said(verdicts.at(0)), "appended 1-1");
  EXPECT_NE(said(verdicts.at(1)).find("no_poison") == std::string::npos
                ? said(verdicts.at(1)).find("no poison")
                : 0,
            std::string::npos)
      << said(verdicts.at(1));
  EXPECT_EQ(said(verdicts.at(2)), "appended 2-2");
  EXPECT_EQ(said(verdicts.at(3)), "conflict 2 Good");
  EXPECT_TRUE(std::holds_alternative<std::exception_ptr>(verdicts.at(4)));
  EXPECT_EQ(said(verdicts.at(5)), "appended 3-3");
  EXPECT_EQ(everything(), (Positions{1, 2, 3}));
}

TEST_P(StreamAppend, EqualHashesAreNotEqualTags) {
  // Every key has one of two hashes, so that nearly every hit is a wrong one.
  StorageOptions options = database().options();
  options.stream_hash = [](std::string_view text) -> std::uint64_t { return text.size() % 2; };
  const std::unique_ptr<Storage> colliding = database().open_another(options);
  StreamStore& stream = colliding->stream_store();
  for (const auto& [type, tag] : {std::pair{"A", "x=1"}, {"B", "x=2"}, {"CC", "yy=1"}, {"A", "x=3"}}) {
    append_to(stream, {happened(type, {tag})});
  }
  const auto ask = [&](const Query& query, Position after = {}) {
    return said(append_to(stream, {happened("Z", {"z=1"})}, AppendCondition{.query = query, .after = after}));
  };
  EXPECT_EQ(ask(Query::tag("x", "1")), "conflict 1 A");
  EXPECT_EQ(ask(Query::type("CC")), "conflict 3 CC");
  EXPECT_EQ(ask(Query::of({{.types = {"B"}, .tags = {{"x", "2"}}}})), "conflict 2 B");
  EXPECT_EQ(ask(Query::of({{.types = {"B"}, .tags = {{"x", "1"}}}})), "appended 5-5");
  EXPECT_EQ(ask(Query::tags({{"x", "1"}, {"yy", "1"}})), "appended 6-6");
  EXPECT_EQ(ask(Query::tag("x", "1"), Position{1}), "appended 7-7");
  const Query x1 = Query::tag("x", "1");
  EXPECT_EQ(positions_of(stream.read({.query = &x1}).events), (Positions{1}));
  EXPECT_EQ(positions_of(stream.read({.query = &x1, .backwards = true}).events), (Positions{1}));
}

TEST_P(StreamAppend, WithoutTablesItSaysWhatToCall) {
  test::TestDatabase empty(backend(), {.migrate = false});
  StreamStore& stream = empty.storage().stream_store();
  for (const Error& error :
       {error_of([&] { append_to(stream, {happened("A")}); }), error_of([&] { (void)stream.read({}); }),
        error_of([&] { (void)stream.head(); }), error_of([&] { stream.check_schema(); })}) {
    EXPECT_EQ(error.code(), ErrorCode::schema) << error.what();
    EXPECT_NE(std::string(error.what()).find("migrate"), std::string::npos) << error.what();
  }
  store().check_schema();
}

TEST_P(StreamAppend, KeysDifferByKindTypeAndTag) {
  const StreamKeys keys;
  EXPECT_EQ(keys.of_event("A", {{"x", "1"}, {"y", "1"}}).size(), 5U);
  EXPECT_EQ(keys.of_event("A", {}).size(), 1U);
  const std::vector<KeyGroup> groups = keys.of_query(Query::of(
      {{.types = {"A", "B"}, .tags = {{"x", "1"}, {"y", "1"}}}, {.tags = {{"x", "1"}}}, {.types = {"A"}}}));
  ASSERT_EQ(groups.size(), 4U);
  std::size_t pairs = 0;
  for (const KeyGroup& group : groups) pairs += group.size() == 2 ? 1 : 0;
  EXPECT_EQ(pairs, 2U);
}

}  // namespace
}  // namespace postrider::conformance
