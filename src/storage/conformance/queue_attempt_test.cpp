// SPDX-License-Identifier: Apache-2.0
// The history of an event of the queue: a line per attempt that did not simply succeed.
#include "core/utf8.hpp"
#include "storage/attempts.hpp"
#include "storage/conformance/queue_fixture.hpp"
#include "storage/log_store.hpp"
#include "storage/queue_admin_store.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using SettlementKind = Settlement::Kind;

class QueueAttempts : public QueueConformance {
 protected:
  /// A line as text: attempt, begin and end in seconds since the test's begin, node, outcome, error.
  std::vector<std::string> history(QueueId id) {
    std::vector<std::string> lines;
    for (const FailedAttempt& one : storage().log_store().attempts(id)) {
      lines.push_back(std::to_string(one.attempt) + " " + since(one.started_at.value_or(begin_ - 1s)) + "–" +
                      since(one.at) + " " + one.node + " " + std::string(to_string(one.outcome)) + " " +
                      one.error);
    }
    return lines;
  }
  std::vector<std::string> history(const std::string& name) { return history(held(name).id); }
  [[nodiscard]] std::string since(TimePoint at) const {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(at - begin_).count()) + "s";
  }
  std::int64_t lines() { return sql("select count(*) from " + table("event_attempt")).integer(0, 0); }
  std::vector<HandlerResult> broken() {
    return {{.handler = "fine"},
            {.handler = "mail", .verdict = HandlerVerdict::unrecoverable_error, .error = "no such mailbox"},
            {.handler = "fax", .verdict = HandlerVerdict::transient_error, .error = "busy"}};
  }
  const TimePoint begin_ = clock_.now();
};
POSTRIDER_FOR_EACH_BACKEND(QueueAttempts);

TEST_P(QueueAttempts, AreWrittenWithBeginEndWorkerAndError) {
  publish("a");
  claim({.owner = "n1"});
  clock_.advance(1s);
  EXPECT_EQ(retry(held("a"), 2s, {}, "connection refused"), Settled::applied);
  clock_.advance(2s);
  claim({.owner = "n2"});
  clock_.advance(1s);
  EXPECT_EQ(finalize(held("a"), QueueStatus::failed, broken()), Settled::applied);
  const std::vector<std::string> expected{"1 0s–1s n1 RETRY connection refused",
                                          "2 3s–4s n2 FAILED mail: no such mailbox; fax: busy"};
  EXPECT_EQ(history("a"), expected);
  const std::optional<LogEntry> entry = storage().log_store().find(held("a").id);
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->history.size(), 2U);
  EXPECT_THAT(storage().log_store().read({}, 10, {}).entries.at(0).history, IsEmpty())
      << "pages leave it out";
}

TEST_P(QueueAttempts, ThatSucceedOrAreGivenBackWriteNothing) {
  publish_all({"done", "released", "errors"});
  claim();
  finalize("done");
  release("released");
  finalize(held("errors"), QueueStatus::completed_with_errors, broken());
  EXPECT_THAT(history("done"), IsEmpty());
  EXPECT_THAT(history("released"), IsEmpty());
  EXPECT_THAT(history("errors"),
              ElementsAre("1 0s–0s n1 COMPLETED_WITH_ERRORS mail: no such mailbox; fax: busy"));
}

TEST_P(QueueAttempts, OfABatchAreWrittenForThoseThatFailed) {
  std::vector<std::string> names;
  for (int i = 0; i < 60; ++i) names.push_back("e" + std::to_string(i));
  publish_all(names);
  claim();
  std::vector<Settlement> all;
  for (int i = 0; i < 60; ++i) {
    Settlement one{.claim = held(names[static_cast<std::size_t>(i)])};
    if (i % 4 == 1) one.status = QueueStatus::failed;
    if (i % 4 == 2) one.kind = SettlementKind::retry;
    one.error = "no " + std::to_string(i);
    all.push_back(one);
  }
  for (const Settled answer : store().settle(all)) EXPECT_EQ(answer, Settled::applied);
  EXPECT_EQ(lines(), 30);
  EXPECT_THAT(history("e5"), ElementsAre("1 0s–0s n1 FAILED no 5"));
  EXPECT_THAT(history("e6"), ElementsAre("1 0s–0s n1 RETRY no 6"));
  EXPECT_THAT(history("e4"), IsEmpty());
}

TEST_P(QueueAttempts, OfBatchesThatAllFinalizeAreWrittenToo) {
  publish_all({"a", "b", "c", "d", "e", "f"});
  claim();
  std::vector<Settlement> all;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) all.push_back({.claim = held(name)});
  all[1].status = all[4].status = QueueStatus::failed;
  all[5].claim.token = Token{7};  // stale
  all[5].status = QueueStatus::failed;
  const std::vector<Settled> answers = store().settle(all);
  EXPECT_EQ(answers.at(1), Settled::applied);
  EXPECT_EQ(answers.at(5), Settled::stale);
  EXPECT_EQ(history("b").size(), 1U);
  EXPECT_EQ(history("e").size(), 1U);
  EXPECT_EQ(lines(), 2);
}

TEST_P(QueueAttempts, OfAStaleClaimWriteNothing) {
  publish_all({"taken", "done"});
  claim({.owner = "n1", .lease = 1s});
  const Claim old = held("taken");
  finalize("done");
  EXPECT_EQ(release("taken"), Settled::applied);
  claim({.owner = "n2"});
  EXPECT_EQ(retry(old, 1s), Settled::stale);
  EXPECT_EQ(finalize(old, QueueStatus::failed), Settled::stale);
  EXPECT_EQ(finalize(held("done"), QueueStatus::failed), Settled::repeated);
  EXPECT_EQ(retry({QueueId{4711}, Token{1}}, 1s), Settled::unknown);
  EXPECT_EQ(lines(), 0);
}

TEST_P(QueueAttempts, AreWrittenOnceHoweverOftenTheirResultIs) {
  publish("a");
  claim();
  EXPECT_EQ(finalize(held("a"), QueueStatus::failed), Settled::applied);
  EXPECT_EQ(finalize(held("a"), QueueStatus::failed), Settled::repeated);
  EXPECT_EQ(lines(), 1);
}

TEST_P(QueueAttempts, BelongToTheUsersTransactionThatFinalizes) {
  publish_all({"kept", "undone"});
  claim();
  for (const char* name : {"kept", "undone"}) {
    Transaction tx = storage().begin();
    const Settlement one{.claim = held(name), .status = QueueStatus::failed, .error = "no"};
    EXPECT_EQ(store().settle(tx, one), Settled::applied);
    if (std::string_view(name) == "kept") tx.commit();
  }
  EXPECT_THAT(history("kept"), ElementsAre("1 0s–0s n1 FAILED no"));
  EXPECT_THAT(history("undone"), IsEmpty());
}

TEST_P(QueueAttempts, WhoseWorkerDiedAreWrittenWhenSomebodyElseTakesTheEvent) {
  publish("free");
  publish("first", {.key = "k"});
  publish("second", {.key = "k"});
  ASSERT_EQ(claim({.owner = "n1", .run = 2, .lease = 5s}).size(), 3U);
  clock_.advance(7s);
  ASSERT_EQ(claim({.owner = "n2", .run = 2}).size(), 3U);
  for (const char* name : {"free", "first", "second"}) {
    EXPECT_THAT(history(name), ElementsAre("1 0s–5s n1 CRASHED ")) << name;
    EXPECT_EQ(finalize(name), Settled::applied);
  }
  EXPECT_EQ(lines(), 3);
}

TEST_P(QueueAttempts, WhoseWorkerDiedAreWrittenForTheQuarantine) {
  publish("free");
  publish("ordered", {.key = "k"});
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(claim({.max_crashes = 2, .lease = 5s}).size(), 2U);
    clock_.advance(5s);
  }
  EXPECT_EQ(claim_result({.owner = "n2", .max_crashes = 2}).quarantined.size(), 2U);
  for (const char* name : {"free", "ordered"}) {
    EXPECT_THAT(history(name), ElementsAre("1 0s–5s n1 CRASHED ", "2 5s–10s n1 CRASHED ")) << name;
  }
}

TEST_P(QueueAttempts, OfSuspectsThatAreLeftWhereTheyAreWriteNothing) {
  publish_all({"a", "b"});
  ASSERT_EQ(claim({.lease = 5s}).size(), 2U);
  clock_.advance(5s);
  ASSERT_EQ(claim({.owner = "n2", .suspects = 1}), (std::vector<std::string>{"a"}));
  EXPECT_EQ(lines(), 1) << "b's worker may yet be heard of";
}

TEST_P(QueueAttempts, KeepTheBeginningOfAnError) {
  publish("a");
  claim();
  std::string error = "\xff'; drop table x; --";
  for (std::size_t i = 0; i < max_attempt_error_chars; ++i) error += "é";
  retry(held("a"), 1s, {}, error);
  const std::string kept = storage().log_store().attempts(held("a").id).at(0).error;
  EXPECT_EQ(utf8_length(kept), max_attempt_error_chars);
  EXPECT_THAT(kept, ::testing::StartsWith("\xEF\xBF\xBD'; drop table x; --é"));
}

TEST_P(QueueAttempts, OfOneEventTheNewestFiftyStay) {
  publish_all({"fails", "crashes"});
  constexpr int attempts = max_kept_attempts + 5;
  for (int i = 1; i <= attempts; ++i) {
    ASSERT_EQ(claim({.max_crashes = 0, .lease = 1s}).size(), 2U);
    ASSERT_EQ(retry("fails", 1s), Settled::applied);
    clock_.advance(1s);
  }
  claim({.max_crashes = 0});
  for (const char* name : {"fails", "crashes"}) {
    const std::vector<FailedAttempt> left = storage().log_store().attempts(held(name).id);
    ASSERT_EQ(left.size(), static_cast<std::size_t>(max_kept_attempts)) << name;
    EXPECT_EQ(left.front().attempt, attempts - max_kept_attempts + 1);
    EXPECT_EQ(left.back().attempt, attempts);
  }
}

TEST_P(QueueAttempts, GoWithTheirEntryOfTheLog) {
  publish_all({"old", "other", "young", "waits"});
  claim();
  finalize(held("old"), QueueStatus::failed, broken());
  finalize(held("other"), QueueStatus::failed, broken());
  retry("waits", 10h);
  clock_.advance(1h);
  finalize(held("young"), QueueStatus::failed, broken());
  ASSERT_EQ(lines(), 4);
  QueueAdminStore& admin = storage().queue_admin_store();
  EXPECT_EQ(admin.purge_log({.age = 1h, .filter = {.ids = {held("old").id}}}, {}, 10).walk.changed, 1);
  EXPECT_THAT(history("old"), IsEmpty());
  EXPECT_EQ(lines(), 3);
  EXPECT_EQ(admin.purge_log({.age = 1h}, {}, 10).walk.changed, 1);
  EXPECT_EQ(lines(), 2);
  EXPECT_EQ(history("young").size(), 1U);
  EXPECT_EQ(history("waits").size(), 1U);
}

TEST_P(QueueAttempts, StayWhenTheEventIsCancelled) {
  publish("a");
  claim();
  retry("a", 10h);
  ASSERT_EQ(storage().queue_admin_store().apply(QueueAction::cancel, {}, {}, 10, "why").changed, 1);
  store().sequence_log();
  EXPECT_EQ(history("a").size(), 1U) << "the log's entry has them";
  EXPECT_EQ(storage().queue_admin_store().purge_log({.age = 0s}, {}, 10).walk.changed, 1);
  EXPECT_EQ(lines(), 0);
}

}  // namespace
}  // namespace postrider::conformance
