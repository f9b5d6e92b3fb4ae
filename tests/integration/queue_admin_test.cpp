// SPDX-License-Identifier: Apache-2.0
// The operator's verbs against a queue that works, and projections of what it finishes.
#include "postrider/queue_admin.hpp"

#include "integration/projection_fixture.hpp"
#include "postrider/event_queue.hpp"
#include "storage/log_store.hpp"

namespace postrider {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class QueueAdmins : public ProjectionTest {
 protected:
  QueueOptions queue_options() {
    QueueOptions options;
    options.clock = &clock_;
    options.max_crashes = 1;
    options.log = [](LogLevel, std::string_view) {};
    return options;
  }
  QueueId publish(EventQueue& queue, const std::string& type = "T") {
    return queue.publish(Event::json(type, "{}")).id();
  }
  std::vector<LogEntry> log() { return EventLog(storage(), &clock_).read({}, 100).entries; }
};
POSTRIDER_FOR_EACH_BACKEND(QueueAdmins);

TEST_P(QueueAdmins, ARequeuedEventIsWorkedOnAnewAndItsOldWorkerIsFenced) {
  EventQueue queue{storage(), queue_options()};
  QueueAdmin admin{storage()};
  const QueueId id = publish(queue);
  const QueuedEvent hung = queue.poll().value();
  clock_.advance(10s);
  ASSERT_THAT(admin.stuck(10s), SizeIs(1));
  EXPECT_EQ(admin.requeue({.stuck_for = 11s}), 0);
  EXPECT_EQ(admin.requeue({.stuck_for = 10s}, true), 1);
  EXPECT_EQ(admin.find(id).value().status, QueueStatus::processing) << "that was a dry run";
  EXPECT_EQ(admin.requeue({.stuck_for = 10s}), 1);
  EXPECT_EQ(queue.finalize(hung.claim), Settled::stale);
  const QueuedEvent again = queue.poll().value();
  EXPECT_EQ(again.attempts, 2);
  EXPECT_EQ(again.crashes, 0) << "it did not crash";
  EXPECT_EQ(queue.finalize(again.claim), Settled::applied);
  EXPECT_FALSE(admin.find(id).has_value());
}

TEST_P(QueueAdmins, CancelledEventsAreInTheLogWithNumbersAndReason) {
  EventQueue queue{storage(), queue_options()};
  QueueAdmin admin{storage()};
  for (int i = 0; i < 3; ++i) publish(queue);
  publish(queue, "Other");
  const Claim running = queue.poll().value().claim;
  EXPECT_EQ(admin.cancel({.types = {"T"}}, "ordered twice", true), 3);
  EXPECT_EQ(admin.cancel({.types = {"T"}}, "ordered twice"), 3);
  EXPECT_EQ(queue.finalize(running), Settled::stale);
  EXPECT_EQ(storage().log_store().head(), LogSeq{3}) << "numbered at once, not when somebody comes to read";
  const std::vector<LogEntry> entries = log();
  ASSERT_THAT(entries, SizeIs(3));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(entries[i].seq, LogSeq{static_cast<std::int64_t>(i) + 1});
    EXPECT_EQ(entries[i].status, QueueStatus::failed);
    ASSERT_THAT(entries[i].results, SizeIs(1));
    EXPECT_EQ(entries[i].results[0].error, "ordered twice");
  }
  EXPECT_EQ(admin.log_counts().failed, 3);
  EXPECT_EQ(admin.counts().pending, 1);
  EXPECT_THROW(admin.cancel({}, ""), Error) << "a reason is needed";
}

TEST_P(QueueAdmins, ManyAreCancelledInSmallTransactions) {
  EventQueue queue{storage(), queue_options()};
  QueueAdmin admin{storage()};
  std::vector<Event> events;
  for (int i = 0; i < 450; ++i) events.push_back(Event::json("T", std::to_string(i)));
  queue.publish(events);
  EXPECT_EQ(admin.cancel({}, "all of them"), 450);
  EXPECT_EQ(EventLog(storage(), &clock_).head(), LogSeq{450});
  EXPECT_EQ(admin.counts().pending, 0);
}

TEST_P(QueueAdmins, WhoeverHearsOfTheirStepsMayEndThemAndWhatIsDoneStaysDone) {
  EventQueue queue{storage(), queue_options()};
  std::vector<Event> events;
  for (int i = 0; i < 450; ++i) events.push_back(Event::json("T", "{}"));
  queue.publish(events);
  std::vector<std::int64_t> heard;
  QueueAdmin admin{storage(), [&](std::int64_t changed) {
                     heard.push_back(changed);
                     return heard.size() < 2;
                   }};
  EXPECT_EQ(admin.cancel({}, "no longer wanted"), 400);
  EXPECT_THAT(heard, ElementsAre(200, 400));
  EXPECT_EQ(admin.counts().pending, 50);
  heard = {0};
  EXPECT_EQ(admin.replay({}), 200) << "of 400";
  heard = {0};
  EXPECT_EQ(admin.purge_log({.older_than = 0s, .batch_size = 100}).deleted, 100);
}

TEST_P(QueueAdmins, AQuarantinedEventIsVisibleAndReleasable) {
  EventQueue queue{storage(), queue_options()};
  QueueAdmin admin{storage()};
  const QueueId id = publish(queue);
  ASSERT_TRUE(queue.poll().has_value());
  clock_.advance(61s);
  EXPECT_FALSE(queue.poll().has_value()) << "its worker died: quarantine";
  EXPECT_EQ(admin.counts().quarantined, 1);
  const auto listed = admin.list({.quarantined = true});
  ASSERT_THAT(listed, SizeIs(1));
  EXPECT_EQ(listed[0].id, id);
  EXPECT_THAT(listed[0].last_error, HasSubstr("died"));
  EXPECT_EQ(admin.release({.ids = {id}}, true), 1);
  EXPECT_EQ(admin.release({.ids = {id}}), 1);
  const QueuedEvent released = queue.poll().value();
  EXPECT_EQ(released.crashes, 0);
  EXPECT_EQ(queue.finalize(released.claim), Settled::applied);
}

TEST_P(QueueAdmins, AReplayedEventRunsAgainUnderItsOwnId) {
  EventQueue queue{storage(), queue_options()};
  QueueAdmin admin{storage()};
  const QueueId first = publish(queue);
  const QueuedEvent done = queue.poll().value();
  queue.finalize(done.claim);
  EXPECT_EQ(admin.replay({.ids = {first}}, true), 1);
  EXPECT_EQ(admin.replay({.ids = {first}}), 1);
  const QueuedEvent again = queue.poll().value();
  EXPECT_EQ(again.event->id(), done.event->id());
  EXPECT_NE(again.claim.id, first);
  EXPECT_EQ(again.attempts, 1);
  EXPECT_EQ(queue.finalize(again.claim), Settled::applied);
  ASSERT_THAT(log(), SizeIs(2));
  EXPECT_EQ(admin.replay({}), 2) << "what is in the log now, and no more";
}

TEST_P(QueueAdmins, PurgesInBatchesUpToABound) {
  QueueAdmin admin{storage()};
  finish(10);
  clock_.advance(1h);
  finish(1);
  EXPECT_EQ(admin.purge_log({.older_than = 1h, .dry_run = true}).deleted, 10);
  EXPECT_EQ(admin.purge_log({.older_than = 1h, .batch_size = 3, .at_most = 7}).deleted, 7);
  const LogPurged rest = admin.purge_log({.older_than = 1h, .batch_size = 2});
  EXPECT_EQ(rest.deleted, 3);
  EXPECT_EQ(rest.why(), "") << "nothing was held back";
  EXPECT_EQ(EventLog(storage(), &clock_).read({}).entries.size(), 1U);
  EXPECT_THROW(admin.purge_log({.batch_size = 0}), Error);
  EXPECT_THROW(admin.purge_log({.older_than = -1s}), Error);
}

TEST_P(QueueAdmins, PurgeByFilterInBatches) {
  QueueAdmin admin{storage()};
  finish(10);
  EXPECT_EQ(admin.purge_log({.older_than = 0s, .dry_run = true, .filter = {.types = {"Even"}}}).deleted, 5);
  EXPECT_EQ(admin.purge_log({.older_than = 0s, .batch_size = 2, .filter = {.types = {"Even"}}}).deleted, 5);
  EXPECT_EQ(EventLog(storage(), &clock_).read({}).entries.size(), 5U);
}

TEST_P(QueueAdmins, APurgeThatIsHeldBackByProjectionsSaysSo) {
  QueueAdmin admin{storage()};
  ProjectionRunner runner{storage(), options()};
  runner.add(projection(), writer());
  runner.add(projection(2), writer(2));
  finish(3);
  drain(runner);
  runner.admin().pause("p", 2);
  finish(2);
  drain(runner);
  EXPECT_EQ(admin.purge_log({.older_than = 0s}).deleted, 3);
  for (const bool dry_run : {true, false}) {
    const LogPurged purged = admin.purge_log({.older_than = 0s, .dry_run = dry_run});
    EXPECT_EQ(purged.deleted, 0);
    ASSERT_THAT(purged.held_back_by, SizeIs(1));
    EXPECT_EQ(purged.held_back_by[0].name, "p");
    EXPECT_EQ(purged.held_back_by[0].version, 2);
    EXPECT_EQ(purged.held_back_by[0].position, LogSeq{3});
    EXPECT_THAT(purged.why(), HasSubstr("'p' version 2 (has read up to 3)"));
    EXPECT_THAT(purged.why(), HasSubstr("forget"));
  }
  runner.admin().forget("p", 2);
  EXPECT_EQ(admin.purge_log({.older_than = 0s}).deleted, 2);
}

TEST_P(QueueAdmins, AnEventThatWaitsForItsRetryCanBeHadAtOnce) {
  EventQueue queue{storage(), queue_options()};
  QueueAdmin admin{storage()};
  const QueueId id = publish(queue);
  queue.retry(queue.poll().value().claim, 1h, "busy");
  EXPECT_FALSE(queue.poll().has_value());
  EXPECT_EQ(admin.requeue({.ids = {id}}), 0);
  EXPECT_EQ(admin.requeue({.ids = {id}, .delayed = true}, true), 1);
  EXPECT_FALSE(queue.poll().has_value()) << "that was a dry run";
  EXPECT_EQ(admin.requeue({.ids = {id}, .delayed = true}), 1);
  const QueuedEvent now = queue.poll().value();
  EXPECT_EQ(now.attempts, 2);
  EXPECT_EQ(queue.finalize(now.claim), Settled::applied);
}

TEST_P(QueueAdmins, ADeadlockIsTriedAgainAndNotForEver) {
  EventQueue queue{storage(), queue_options()};
  QueueAdmin admin{storage()};
  publish(queue);
  publish(queue);
  int fails = 0;
  int calls = 0;
  failpoints::set("queue.admin.before_commit", [&] {
    ++calls;
    if (calls <= fails) throw Error(ErrorCode::contention, {.retryable = true}, "made to deadlock");
  });
  fails = 1000;
  EXPECT_THROW(admin.cancel({}, "why"), Error);
  EXPECT_EQ(calls, backend() == "sqlite" ? 1 : 5) << "SQLite has one writer: there are no deadlocks";
  EXPECT_EQ(admin.counts().pending, 2) << "all or nothing";
  fails = backend() == "sqlite" ? 0 : 4;
  calls = 0;
  EXPECT_EQ(admin.cancel({}, "why"), 2);
  EXPECT_THAT(log(), SizeIs(2)) << "each once";
}

TEST_P(QueueAdmins, FiltersThatNoEventCanMatchAreRefused) {
  QueueAdmin admin{storage()};
  const std::vector<QueueFilter> nonsense{
      {.types = {std::string("a\0b", 3)}},
      {.types = {"\xff"}},
      {.tenant_id = "\xff"},
      {.older_than = -1h},
      {.older_than = Duration::max()},
      {.error_contains = std::string(5'000, 'x')},
      {.stuck_for = -1s},
  };
  for (const QueueFilter& filter : nonsense) {
    EXPECT_THROW((void)admin.counts(filter), Error);
    EXPECT_THROW((void)admin.log_counts(filter), Error);
    EXPECT_THROW((void)admin.attempts(filter), Error);
    EXPECT_THROW((void)admin.list(filter), Error);
    EXPECT_THROW(admin.requeue(filter, true), Error);
    EXPECT_THROW(admin.cancel(filter, "why", true), Error);
    EXPECT_THROW(admin.release(filter, true), Error);
    EXPECT_THROW(admin.replay(filter, true), Error);
    EXPECT_THROW(admin.purge_log({.dry_run = true, .filter = filter}), Error);
  }
  EXPECT_THROW((void)admin.stuck(-1h), Error);
}

TEST_P(QueueAdmins, HazardQ5_AnEventThatEndsLateInAUsersTransactionIsProjected) {
  EventQueue queue{storage(), queue_options()};
  ProjectionRunner runner{storage(), options()};
  std::vector<QueueId> projected;
  runner.add(projection(), [&](Tx&, const LogEntry& entry) { projected.push_back(entry.id); });
  const QueueId low = publish(queue);
  const QueueId high = publish(queue);
  const Claim slow = queue.poll().value().claim;
  const Claim quick = queue.poll().value().claim;
  ASSERT_EQ(slow.id, low);
  queue.finalize(quick);
  drain(runner);
  EXPECT_THAT(projected, ElementsAre(high));
  Transaction tx = storage().begin();
  EXPECT_EQ(queue.complete(tx, slow), Settled::applied);
  tx.commit();
  drain(runner);
  EXPECT_THAT(projected, ElementsAre(high, low));
  EXPECT_EQ(runner.admin().status("p").lag_events, 0);
}

}  // namespace
}  // namespace postrider
