// SPDX-License-Identifier: Apache-2.0
#include "core/utf8.hpp"
#include "storage/conformance/outbox_fixture.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using Kind = Completion::Kind;

class OutboxComplete : public OutboxConformance {};
POSTRIDER_FOR_EACH_BACKEND(OutboxComplete);

constexpr std::array all_kinds{Kind::done, Kind::retry, Kind::later, Kind::dead, Kind::release};

TEST_P(OutboxComplete, DoneIsDone) {
  publish("a");
  claim("n1");
  clock_.advance(1s);
  EXPECT_EQ(done("a"), 1U);
  const OutboxRecord row = record("a");
  EXPECT_EQ(row.status, EventStatus::done);
  EXPECT_EQ(row.done_at, clock_.now());
  EXPECT_EQ(row.owner, "");
  EXPECT_EQ(row.attempts, Attempt{0});
  clock_.advance(1h);
  EXPECT_EQ(claim("n1"), none());
}

TEST_P(OutboxComplete, RetryComesBackAfterItsDelay) {
  publish("a");
  claim("n1");
  EXPECT_EQ(retry("a", 5s, 3, "connection refused"), 1U);
  const OutboxRecord row = record("a");
  EXPECT_EQ(row.status, EventStatus::retry);
  EXPECT_EQ(row.attempts, Attempt{3});
  EXPECT_EQ(row.last_error, "connection refused");
  EXPECT_EQ(row.available_at, clock_.now() + 5s);
  EXPECT_EQ(row.owner, "");
  EXPECT_FALSE(row.done_at.has_value());
  clock_.advance(5s - 1us);
  EXPECT_EQ(claim("n2"), none());
  clock_.advance(1us);
  const auto claimed = claim_events("n2");
  ASSERT_EQ(claimed.size(), 1U);
  EXPECT_EQ(claimed[0].failed, Attempt{3});
  EXPECT_EQ(done("a"), 1U);
  EXPECT_EQ(record("a").last_error, "connection refused") << "stays until the next one";
}

TEST_P(OutboxComplete, LaterChangesNothingButTheTimeAndTheError) {
  publish_all({"fresh", "tried"});
  claim("n1");
  retry("tried", 0s, 2, "first");
  complete(held("fresh"), Kind::release);
  claim("n1");
  EXPECT_EQ(complete(held("fresh"), Kind::later, 7s, 99, "the broker is away"), 1U);
  EXPECT_EQ(complete(held("tried"), Kind::later, 7s, 99, ""), 1U);
  EXPECT_EQ(record("fresh").status, EventStatus::fresh);
  EXPECT_EQ(record("fresh").attempts, Attempt{0});
  EXPECT_EQ(record("fresh").last_error, "the broker is away");
  EXPECT_EQ(record("tried").status, EventStatus::retry);
  EXPECT_EQ(record("tried").attempts, Attempt{2});
  EXPECT_EQ(record("tried").last_error, "first") << "without a reason, the last one stays";
  clock_.advance(7s - 1us);
  EXPECT_EQ(claim("n1"), none());
  clock_.advance(1us);
  EXPECT_EQ(claim("n1").size(), 2U);
}

TEST_P(OutboxComplete, DeadStaysDead) {
  publish("a");
  claim("n1");
  clock_.advance(1s);
  EXPECT_EQ(complete(held("a"), Kind::dead, {}, 10, "gave up"), 1U);
  const OutboxRecord row = record("a");
  EXPECT_EQ(row.status, EventStatus::dead);
  EXPECT_EQ(row.attempts, Attempt{10});
  EXPECT_EQ(row.last_error, "gave up");
  EXPECT_EQ(row.done_at, clock_.now());
  clock_.advance(1h);
  EXPECT_EQ(claim("n1"), none());
}

TEST_P(OutboxComplete, ReleaseGivesBackUntouched) {
  publish("a");
  claim("n1");
  const TimePoint available = record("a").available_at;
  clock_.advance(3s);
  EXPECT_EQ(complete(held("a"), Kind::release, 1h, 5, "unused"), 1U);
  const OutboxRecord row = record("a");
  EXPECT_EQ(row.status, EventStatus::fresh);
  EXPECT_EQ(row.attempts, Attempt{0});
  EXPECT_EQ(row.available_at, available) << "due as before";
  EXPECT_EQ(row.last_error, "");
  EXPECT_THAT(claim("n2"), ElementsAre("a"));
  EXPECT_EQ(held("a").token, Token{3}) << "the old holder is fenced by the next claim";
}

TEST_P(OutboxComplete, ABornLeasedRowIsReleasedToEverybody) {
  publish("a", {.owner = "n1", .lease = 30s});
  EXPECT_EQ(complete({EventId("a"), birth_token}, Kind::release), 1U);
  EXPECT_THAT(claim("n2"), ElementsAre("a"));
}

TEST_P(OutboxComplete, HazardO4_NothingRevivesADeadOrDoneRow) {
  publish_all({"done", "dead"});
  claim("n1");
  ASSERT_EQ(done("done"), 1U);
  ASSERT_EQ(dead("dead", "the reason"), 1U);
  const TimePoint end = clock_.now();
  clock_.advance(1s);
  // A late result of the very holder, with the right token.
  for (const Kind kind : all_kinds) {
    EXPECT_EQ(complete(held("done"), kind, 0s, 7, "late"), 0U) << static_cast<int>(kind);
    EXPECT_EQ(complete(held("dead"), kind, 0s, 7, "late"), 0U) << static_cast<int>(kind);
  }
  EXPECT_TRUE(store().renew(std::vector{held("done"), held("dead")}, 1h).empty());
  EXPECT_EQ(record("done").status, EventStatus::done);
  EXPECT_EQ(record("done").done_at, end);
  EXPECT_EQ(record("dead").status, EventStatus::dead);
  EXPECT_EQ(record("dead").done_at, end);
  EXPECT_EQ(record("dead").last_error, "the reason");
  EXPECT_EQ(record("dead").attempts, Attempt{1});
}

TEST_P(OutboxComplete, AStaleHolderChangesNothing) {
  publish("a");
  claim("n1");
  const LeaseRef stale = held("a");
  clock_.advance(30s);
  claim("n2");
  const OutboxRecord before = record("a");
  for (const Kind kind : all_kinds)
    EXPECT_EQ(complete(stale, kind, 0s, 7, "stale"), 0U) << static_cast<int>(kind);
  EXPECT_EQ(record("a").status, before.status);
  EXPECT_EQ(record("a").owner, "n2");
  EXPECT_EQ(record("a").last_error, "");
  EXPECT_EQ(claim("n3"), none()) << "still leased to n2";
  EXPECT_EQ(done("a"), 1U);
}

TEST_P(OutboxComplete, AnExpiredLeaseThatNobodyTookStillCounts) {
  publish("a");
  claim("n1");
  clock_.advance(1h);
  EXPECT_EQ(done("a"), 1U) << "the token is what fences, not the time";
}

TEST_P(OutboxComplete, ABatchOfEveryKindIsOneTransaction) {
  publish_all({"a", "b", "c", "d", "e", "f"});
  claim("n1");
  std::vector<Completion> results{
      {.lease = held("a"), .kind = Kind::done},
      {.lease = held("b"), .kind = Kind::retry, .failed = Attempt{1}, .delay = 1s, .error = "b's"},
      {.lease = held("c"), .kind = Kind::later, .delay = 2s},
      {.lease = held("d"), .kind = Kind::dead, .failed = Attempt{4}, .error = "d's"},
      {.lease = held("e"), .kind = Kind::release},
      {.lease = {EventId("f"), birth_token}, .kind = Kind::done},     // stale
      {.lease = {EventId("nobody"), Token{2}}, .kind = Kind::done}};  // unknown
  EXPECT_EQ(store().complete(results), 5U);
  EXPECT_EQ(store().complete({}), 0U);
  EXPECT_EQ(record("a").status, EventStatus::done);
  EXPECT_EQ(record("b").last_error, "b's");
  EXPECT_EQ(record("b").available_at, clock_.now() + 1s);
  EXPECT_EQ(record("c").available_at, clock_.now() + 2s);
  EXPECT_EQ(record("c").status, EventStatus::fresh);
  EXPECT_EQ(record("d").last_error, "d's");
  EXPECT_EQ(record("d").attempts, Attempt{4});
  EXPECT_EQ(record("e").owner, "");
  EXPECT_EQ(record("f").owner, "n1");
}

TEST_P(OutboxComplete, LargeBatches) {
  std::vector<Event> events;
  std::vector<NewOutboxRow> rows;
  for (int i = 0; i < 2000; ++i) events.push_back(Event::json("E", "1"));
  for (const Event& event : events) rows.push_back({.event = &event, .lease = 30s});
  Transaction tx = storage().begin();
  store().insert(tx, "n1", rows);
  tx.commit();
  std::vector<Completion> results;
  for (std::size_t i = 0; i < events.size(); ++i) {
    results.push_back({.lease = {events[i].id(), birth_token},
                       .kind = i % 4 == 0 ? Kind::retry : Kind::done,
                       .failed = Attempt{1},
                       .delay = std::chrono::microseconds(i),
                       .error = "error " + std::to_string(i)});
  }
  EXPECT_EQ(store().complete(results), 2000U);
  EXPECT_EQ(admin().counts().done, 1500);
  EXPECT_EQ(admin().counts().retrying, 500);
  EXPECT_EQ(record(events[8].id().str()).last_error, "error 8");
  EXPECT_EQ(record(events[8].id().str()).available_at, clock_.now() + 8us);
}

TEST_P(OutboxComplete, AnErrorTextIsCutAt4000CharactersOnABoundary) {
  publish_all({"exact", "long", "wide"});
  claim("n1");
  const std::string exact(max_error_chars, 'x');
  std::string wide;
  for (std::size_t i = 0; i < max_error_chars + 1; ++i) wide += "🧨";
  retry("exact", 0s, 1, exact);
  retry("long", 0s, 1, exact + "y");
  dead("wide", wide);
  EXPECT_EQ(record("exact").last_error, exact);
  EXPECT_EQ(record("long").last_error, exact);
  EXPECT_EQ(utf8_length(record("wide").last_error), max_error_chars);
  EXPECT_EQ(record("wide").last_error, wide.substr(0, max_error_chars * 4));
}

TEST_P(OutboxComplete, AnErrorTextThatIsNoTextIsRepaired) {
  publish_all({"a", "b"});
  claim("n1");
  retry("a", 0s, 1, std::string("bad \xff byte, NUL \0, half \xf0\x9f", 27));
  dead("b", std::string(5000, '\xfe'));
  const std::string repaired = record("a").last_error;
  EXPECT_TRUE(utf8_length(repaired).has_value());
  EXPECT_THAT(repaired, ::testing::StartsWith("bad \xef\xbf\xbd byte"));
  EXPECT_EQ(repaired.find('\0'), std::string::npos);
  EXPECT_EQ(utf8_length(record("b").last_error), max_error_chars);
}

}  // namespace
}  // namespace postrider::conformance
