// SPDX-License-Identifier: Apache-2.0
// The history of an event: a line per attempt that did not simply succeed.
#include "core/utf8.hpp"
#include "storage/attempts.hpp"
#include "storage/conformance/outbox_fixture.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = Completion::Kind;

/// A line as text: attempt, seconds since `begin`, node, outcome, error.
class OutboxAttempts : public OutboxConformance {
 protected:
  std::vector<std::string> history(const std::string& id) {
    std::vector<std::string> lines;
    for (const FailedAttempt& one : record(id).history) {
      EXPECT_FALSE(one.started_at.has_value());
      const auto after = std::chrono::duration_cast<std::chrono::seconds>(one.at - begin_);
      lines.push_back(std::to_string(one.attempt) + " +" + std::to_string(after.count()) + "s " + one.node +
                      " " + std::string(to_string(one.outcome)) + " " + one.error);
    }
    return lines;
  }
  /// All lines there are, also of events that are gone.
  std::int64_t lines() {
    return sql("select count(*) from " + StoreConformance::table("outbox_attempt")).integer(0, 0);
  }
  const TimePoint begin_ = clock_.now();
};
POSTRIDER_FOR_EACH_BACKEND(OutboxAttempts);

TEST_P(OutboxAttempts, AreWrittenWithTimeNodeAndError) {
  publish("a");
  EXPECT_THAT(record("a").history, IsEmpty());
  claim("n1");
  clock_.advance(1s);
  retry("a", 2s, 1, "connection refused");
  clock_.advance(2s);
  claim("n2");
  clock_.advance(1s);
  retry("a", 6s, 2, "timed out");
  clock_.advance(6s);
  claim("n1");
  EXPECT_EQ(complete(held("a"), Kind::dead, {}, 3, "gave up"), 1U);
  EXPECT_THAT(history("a"), ElementsAre("1 +1s n1 RETRY connection refused", "2 +4s n2 RETRY timed out",
                                        "3 +10s n1 DEAD gave up"));
}

TEST_P(OutboxAttempts, OfABornLeasedEventNameItsNode) {
  publish("a", {.owner = "n7", .lease = 30s});
  EXPECT_EQ(complete({EventId("a"), birth_token}, Kind::retry, 1s, 1, "no"), 1U);
  EXPECT_THAT(history("a"), ElementsAre("1 +0s n7 RETRY no"));
}

TEST_P(OutboxAttempts, ThatSucceedWriteNothing) {
  publish_all({"at-once", "late", "released", "later"});
  claim("n1");
  done("at-once");
  retry("late", 0s, 1, "first");
  complete(held("released"), Kind::release);
  complete(held("later"), Kind::later, 1s);
  claim("n1");
  done("late");
  EXPECT_THAT(history("at-once"), IsEmpty());
  EXPECT_THAT(history("late"), ElementsAre("1 +0s n1 RETRY first"));
  EXPECT_THAT(history("released"), IsEmpty());
  EXPECT_THAT(history("later"), IsEmpty());
}

TEST_P(OutboxAttempts, OfAStaleHolderWriteNothing) {
  publish_all({"taken", "done"});
  claim("n1", 100, 1s);
  const LeaseRef old = held("taken");
  done("done");
  clock_.advance(1s);
  claim("n2");
  for (const Kind kind : {Kind::retry, Kind::dead}) {
    EXPECT_EQ(complete(old, kind, 0s, 1, "stale"), 0U);
    EXPECT_EQ(complete(held("done"), kind, 0s, 1, "after its end"), 0U);
    EXPECT_EQ(complete({EventId("nowhere"), Token{1}}, kind, 0s, 1, "of no row"), 0U);
  }
  EXPECT_EQ(lines(), 0);
}

TEST_P(OutboxAttempts, AreWrittenOnceHoweverOftenTheirResultIs) {
  publish("a");
  claim("n1");
  retry("a", 1s, 1, "first");
  retry("a", 1s, 1, "the same again");
  const std::vector<Completion> twice(2, {.lease = held("a"), .kind = Kind::retry, .failed = Attempt{1}});
  EXPECT_GE(store().complete(twice), 1U);
  EXPECT_THAT(history("a"), ElementsAre("1 +0s n1 RETRY first"));
}

TEST_P(OutboxAttempts, OfABatchAreWrittenTogether) {
  std::vector<std::string> ids;
  for (int i = 0; i < 30; ++i) ids.push_back("e" + std::to_string(i));
  publish_all(ids);
  claim("n1");
  std::vector<Completion> results;
  for (int i = 0; i < 30; ++i) {
    const Kind kind = i % 3 == 0 ? Kind::done : i % 3 == 1 ? Kind::retry : Kind::dead;
    results.push_back({.lease = held(ids[static_cast<std::size_t>(i)]),
                       .kind = kind,
                       .failed = Attempt{1},
                       .delay = 1h,
                       .error = "no " + std::to_string(i)});
  }
  EXPECT_EQ(store().complete(results), 30U) << "lines are not counted";
  EXPECT_EQ(lines(), 20);
  EXPECT_THAT(history("e4"), ElementsAre("1 +0s n1 RETRY no 4"));
  EXPECT_THAT(history("e5"), ElementsAre("1 +0s n1 DEAD no 5"));
}

TEST_P(OutboxAttempts, KeepTheBeginningOfAnError) {
  publish("a");
  claim("n1");
  std::string error;
  for (std::size_t i = 0; i < max_attempt_error_chars + 5; ++i) error += "é";
  retry("a", 1s, 1, "\xff'; drop table x; --" + error);
  const std::string kept = record("a").history.at(0).error;
  EXPECT_EQ(utf8_length(kept), max_attempt_error_chars);
  EXPECT_EQ(kept, utf8_prefix(record("a").last_error, max_attempt_error_chars));
}

TEST_P(OutboxAttempts, OfOneEventTheNewestFiftyStay) {
  publish_all({"a", "b"});
  constexpr int attempts = max_kept_attempts + 7;
  for (int i = 1; i <= attempts; ++i) {
    claim("n1", 100, 30s);
    if (i <= 2) {
      EXPECT_EQ(retry("b", i == 1 ? Duration{} : Duration{10h}, i, "b"), 1U);
    }
    EXPECT_EQ(retry("a", 0s, i, "no"), 1U) << "what is removed is not counted";
  }
  const std::vector<FailedAttempt> left = record("a").history;
  ASSERT_EQ(left.size(), static_cast<std::size_t>(max_kept_attempts));
  EXPECT_EQ(left.front().attempt, attempts - max_kept_attempts + 1);
  EXPECT_EQ(left.back().attempt, attempts);
  EXPECT_EQ(record("b").history.size(), 2U) << "another's are left alone";
}

TEST_P(OutboxAttempts, StayWhenADeadLetterIsReplayed) {
  publish("a");
  claim("n1");
  dead("a", "first life");
  ASSERT_EQ(admin().revive_dead({}, 10), 1);
  claim("n2");
  dead("a", "second life");
  EXPECT_THAT(history("a"), ElementsAre("1 +0s n1 DEAD first life", "1 +0s n2 DEAD second life"));
}

TEST_P(OutboxAttempts, GoWithTheirEvent) {
  publish_all({"done", "dead", "waiting", "young"});
  claim("n1");
  for (const char* id : {"done", "dead", "waiting", "young"}) retry(id, 0s, 1, "no");
  claim("n1");
  done("done");
  dead("dead");
  retry("waiting", 10h, 2, "no");
  clock_.advance(1h);
  claim("n1");
  dead("young");
  ASSERT_EQ(lines(), 7);
  EXPECT_EQ(admin().purge_batch(EventStatus::done, 1h, 10), 1);
  EXPECT_EQ(lines(), 6);
  EXPECT_EQ(admin().purge_batch(EventStatus::dead, 1h, 10), 1);
  EXPECT_EQ(lines(), 4);
  EXPECT_EQ(admin().purge_batch(EventStatus::dead, 1h, 10), 0);
  EXPECT_EQ(history("waiting").size(), 2U);
  EXPECT_EQ(history("young").size(), 2U);
}

}  // namespace
}  // namespace postrider::conformance
