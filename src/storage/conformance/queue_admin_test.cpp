// SPDX-License-Identifier: Apache-2.0
#include "storage/conformance/queue_admin_fixture.hpp"
#include "storage/next_token.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using Status = QueueStatus;

class QueueAdminVerbs : public QueueAdminConformance {};
POSTRIDER_FOR_EACH_BACKEND(QueueAdminVerbs);

TEST_P(QueueAdminVerbs, CountsOfAnEmptyQueue) {
  const QueueCounts counts = admin().counts({});
  EXPECT_EQ(counts.pending + counts.delayed + counts.processing + counts.abandoned + counts.quarantined, 0);
  EXPECT_EQ(counts.oldest_pending, 0s);
  EXPECT_EQ(admin().log_counts({}).completed, 0);
  EXPECT_THAT(admin().attempts({}), IsEmpty());
}

TEST_P(QueueAdminVerbs, CountsEveryKind) {
  rows_->queue({.id = 1, .available_in = -30s});
  rows_->queue({.id = 2, .attempts = 2});
  rows_->queue({.id = 3, .attempts = 2, .available_in = 1h});
  rows_->queue({.id = 4, .status = Status::processing, .attempts = 1, .available_in = -1h, .lease = 10s});
  rows_->queue({.id = 5, .status = Status::processing, .attempts = 1, .lease = -1s});
  quarantine(6);
  rows_->log({.id = 7});
  rows_->log({.id = 8, .status = Status::failed});
  rows_->log({.id = 9, .status = Status::completed_with_errors});
  rows_->log({.id = 10});
  const QueueCounts counts = admin().counts({});
  EXPECT_EQ(counts.pending, 2);
  EXPECT_EQ(counts.delayed, 1);
  EXPECT_EQ(counts.processing, 2);
  EXPECT_EQ(counts.abandoned, 1);
  EXPECT_EQ(counts.quarantined, 1);
  EXPECT_EQ(counts.oldest_pending, 30s) << "the one in progress does not count";
  const LogCounts log = admin().log_counts({});
  EXPECT_EQ(log.completed, 2);
  EXPECT_EQ(log.completed_with_errors, 1);
  EXPECT_EQ(log.failed, 1);
  EXPECT_THAT(admin().attempts({}), ElementsAre(Pair(0, 2), Pair(1, 2), Pair(2, 2)));
}

TEST_P(QueueAdminVerbs, NothingIsOverdueBeforeItsTime) {
  rows_->queue({.id = 1, .available_in = 1h});
  EXPECT_EQ(admin().counts({}).oldest_pending, 0s);
  clock_.advance(90min);
  EXPECT_EQ(admin().counts({}).oldest_pending, 30min);
}

TEST_P(QueueAdminVerbs, ListsRowsAsTheyAreInPages) {
  const TimePoint now = clock_.now();
  rows_->queue({.id = 1,
                .status = Status::processing,
                .event_id = "first",
                .type = "T",
                .tenant = "acme",
                .payload = "[ 1 ]",
                .priority = 7,
                .attempts = 2,
                .crashes = 1,
                .token = 5,
                .owner = "node",
                .error = "no luck",
                .started_ago = 10s,
                .updated_ago = 5s,
                .created_ago = 20s,
                .lease = 30s});
  for (std::int64_t id = 2; id <= 5; ++id) rows_->queue({.id = id});
  const QueueRecord row = record(1);
  EXPECT_EQ(row.event_id, "first");
  EXPECT_EQ(row.type, "T");
  EXPECT_EQ(row.tenant_id, "acme");
  EXPECT_EQ(row.payload, "[ 1 ]");
  EXPECT_EQ(row.status, Status::processing);
  EXPECT_EQ(row.priority, 7);
  EXPECT_EQ(row.attempts, 2);
  EXPECT_EQ(row.crashes, 1);
  EXPECT_EQ(row.token, Token{5});
  EXPECT_EQ(row.owner, "node");
  EXPECT_EQ(row.last_error, "no luck");
  EXPECT_EQ(row.created_at, now - 20s);
  EXPECT_EQ(row.updated_at, now - 5s);
  EXPECT_EQ(row.processing_started_at, now - 10s);
  EXPECT_EQ(row.lease_until, now + 30s);
  EXPECT_FALSE(row.quarantined_at.has_value());
  EXPECT_THAT(list({}, 2), ElementsAre(1, 2));
  EXPECT_THAT(list({}, 2, 2), ElementsAre(3, 4));
  EXPECT_THAT(list({}, 2, 5), IsEmpty());
}

TEST_P(QueueAdminVerbs, FiltersByEachField) {
  rows_->queue({.id = 1, .type = "A", .tenant = "t1", .attempts = 3, .error = "100%", .created_ago = 1h});
  rows_->queue({.id = 2, .status = Status::processing, .event_id = "x", .type = "B", .error = "1000"});
  rows_->queue({.id = 3, .type = "A", .tenant = "t2", .quarantined = true});
  EXPECT_THAT(list({.ids = {QueueId{3}, QueueId{1}, QueueId{9}}}), ElementsAre(1, 3));
  EXPECT_THAT(list({.event_ids = {EventId("x")}}), ElementsAre(2));
  EXPECT_THAT(list({.types = {"A"}}), ElementsAre(1, 3));
  EXPECT_THAT(list({.types = {"A", "B"}}), ElementsAre(1, 2, 3));
  EXPECT_THAT(list({.tenant_id = "t2"}), ElementsAre(3));
  EXPECT_THAT(list({.statuses = {Status::processing}}), ElementsAre(2));
  EXPECT_THAT(list({.statuses = {Status::failed}}), IsEmpty()) << "those are in the log";
  EXPECT_THAT(list({.older_than = 1h}), ElementsAre(1)) << "inclusive";
  EXPECT_THAT(list({.older_than = 61min}), IsEmpty());
  EXPECT_THAT(list({.error_contains = "100%"}), ElementsAre(1)) << "a percent sign is a percent sign";
  EXPECT_THAT(list({.attempts_at_least = 3}), ElementsAre(1));
  EXPECT_THAT(list({.quarantined = true}), ElementsAre(3));
  EXPECT_THAT(list({.quarantined = false}), ElementsAre(1, 2));
  EXPECT_THAT(list({.types = {"A"}, .tenant_id = "t1"}), ElementsAre(1));
  EXPECT_THAT(list({.types = {"'; drop table x; --"}}), IsEmpty());
  QueueFilter many;
  many.ids = std::vector(10'001, QueueId{1});
  EXPECT_THROW((void)admin().list(many, 1, {}), Error);
}

TEST_P(QueueAdminVerbs, AnEmptyListMatchesNothing) {
  rows_->queue({.id = 1, .status = Status::processing});
  quarantine(2);
  rows_->log({.id = 3});
  const std::vector<QueueFilter> empty{{.ids = std::vector<QueueId>{}},
                                       {.event_ids = std::vector<EventId>{}},
                                       {.types = std::vector<std::string>{}},
                                       {.statuses = std::vector<Status>{}}};
  for (std::size_t i = 0; i < empty.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_THAT(list(empty[i]), IsEmpty());
    for (const QueueAction action : {QueueAction::requeue, QueueAction::release, QueueAction::cancel}) {
      EXPECT_EQ(apply(action, empty[i]), 0);
    }
    EXPECT_EQ(admin().replay(empty[i], {}, everything, 0).changed, 0);
    EXPECT_EQ(admin().replay(empty[i], {}, everything, 10).changed, 0);
  }
  EXPECT_THAT(list({.ids = {}}), ElementsAre(1, 2)) << "braces alone set nothing";
}

TEST_P(QueueAdminVerbs, StuckAreThoseInProgressForTooLong) {
  rows_->queue({.id = 1, .status = Status::processing, .started_ago = 5min, .lease = 1h});
  rows_->queue({.id = 2, .status = Status::processing, .started_ago = 4min});
  rows_->queue({.id = 3, .status = Status::processing, .updated_ago = 5min});
  rows_->queue({.id = 4, .started_ago = 1h, .updated_ago = 1h});
  EXPECT_THAT(list({.stuck_for = 5min}), ElementsAre(1, 3)) << "also when its lease is kept alive";
}

TEST_P(QueueAdminVerbs, RequeueMakesThemPendingAndFencesTheWorker) {
  rows_->queue({.id = 1,
                .status = Status::processing,
                .attempts = 2,
                .token = 7,
                .owner = "n1",
                .available_in = -1h,
                .started_ago = 10min,
                .lease = 1h});
  rows_->queue({.id = 2, .token = 3});
  quarantine(3);
  EXPECT_EQ(apply(QueueAction::requeue), 1) << "only what is in progress";
  const QueueRecord row = record(1);
  EXPECT_EQ(row.status, Status::pending);
  EXPECT_EQ(row.token, Token{8});
  EXPECT_EQ(row.owner, "");
  EXPECT_FALSE(row.lease_until.has_value());
  EXPECT_EQ(row.available_at, clock_.now());
  EXPECT_EQ(row.updated_at, clock_.now());
  EXPECT_EQ(row.attempts, 2);
  EXPECT_EQ(record(2).token, Token{3});
  EXPECT_EQ(record(3).token, Token{4});
}

TEST_P(QueueAdminVerbs, RequeueMakesDelayedOnesDueWhenAskedTo) {
  rows_->queue({.id = 1, .attempts = 2, .token = 3, .error = "busy", .available_in = 1h});
  rows_->queue({.id = 2, .status = Status::processing, .lease = 1h});
  rows_->queue({.id = 3, .available_in = -1s});
  rows_->queue({.id = 4, .available_in = 1h, .quarantined = true});
  rows_->queue({.id = 5, .available_in = 2h});
  EXPECT_THAT(list({.delayed = true}), ElementsAre(1, 5));
  EXPECT_THAT(list({.delayed = false}), ElementsAre(2, 3, 4));
  EXPECT_EQ(admin().count(QueueAction::requeue, {}), 1) << "what is planned for later stays so";
  EXPECT_EQ(
      apply(QueueAction::requeue, {.ids = {QueueId{1}, QueueId{2}, QueueId{3}, QueueId{4}}, .delayed = true}),
      1);
  const QueueRecord row = record(1);
  EXPECT_EQ(row.status, Status::pending);
  EXPECT_EQ(row.available_at, clock_.now());
  EXPECT_EQ(row.updated_at, clock_.now());
  EXPECT_EQ(row.attempts, 2);
  EXPECT_EQ(row.token, Token{3}) << "there is nobody to fence";
  EXPECT_EQ(row.last_error, "busy");
  EXPECT_EQ(record(2).status, Status::processing);
  EXPECT_EQ(record(5).available_at, clock_.now() + 2h);
  EXPECT_EQ(apply(QueueAction::requeue, {.delayed = false}), 1) << "those in progress";
}

TEST_P(QueueAdminVerbs, CountsByFilter) {
  rows_->queue({.id = 1, .type = "A", .attempts = 1, .available_in = -10s});
  rows_->queue({.id = 2, .type = "B", .attempts = 2, .available_in = -30s});
  rows_->queue({.id = 3, .type = "A", .available_in = 1h});
  rows_->queue({.id = 4, .status = Status::processing, .type = "A", .attempts = 2, .lease = -1s});
  rows_->log({.id = 5, .type = "A"});
  rows_->log({.id = 6, .status = Status::failed, .type = "B"});
  const QueueCounts counts = admin().counts({.types = {"A"}});
  EXPECT_EQ(counts.pending, 1);
  EXPECT_EQ(counts.delayed, 1);
  EXPECT_EQ(counts.processing, 1);
  EXPECT_EQ(counts.abandoned, 1);
  EXPECT_EQ(counts.oldest_pending, 10s);
  EXPECT_EQ(admin().counts({.types = std::vector<std::string>{}}).pending, 0);
  EXPECT_THAT(admin().attempts({.types = {"A"}}), ElementsAre(Pair(0, 1), Pair(1, 1), Pair(2, 1)));
  EXPECT_THAT(admin().attempts({.attempts_at_least = 2}), ElementsAre(Pair(2, 2)));
  EXPECT_EQ(admin().log_counts({.types = {"A"}}).completed, 1);
  EXPECT_EQ(admin().log_counts({.types = {"A"}}).failed, 0);
  EXPECT_THROW((void)admin().log_counts({.quarantined = true}), Error);
}

TEST_P(QueueAdminVerbs, ATokenThatCannotGrowStartsAgain) {
  for (const std::int64_t id : {1, 2}) {
    rows_->queue({.id = id, .status = Status::processing, .token = last_token, .owner = "n", .lease = 1h});
  }
  EXPECT_EQ(apply(QueueAction::requeue, {.ids = {QueueId{1}}}), 1);
  EXPECT_EQ(record(1).token, Token{1});
  EXPECT_EQ(apply(QueueAction::cancel, {.ids = {QueueId{2}}}), 1);
  EXPECT_EQ(rows_->cell("select token from " + database_->table("event_log") + " where id = 2"), "1");
}

TEST_P(QueueAdminVerbs, ReleaseTakesThemOutOfQuarantine) {
  quarantine(1);
  quarantine(2);
  rows_->queue({.id = 3, .crashes = 2});
  clock_.advance(1h);
  EXPECT_EQ(apply(QueueAction::release, {.ids = {QueueId{1}, QueueId{3}}}), 1);
  const QueueRecord row = record(1);
  EXPECT_EQ(row.crashes, 0);
  EXPECT_FALSE(row.quarantined_at.has_value());
  EXPECT_EQ(row.available_at, clock_.now());
  EXPECT_EQ(row.status, Status::pending);
  EXPECT_EQ(row.last_error, "died") << "stays until the next one";
  EXPECT_TRUE(record(2).quarantined_at.has_value());
  EXPECT_EQ(record(3).crashes, 2);
}

TEST_P(QueueAdminVerbs, CancelMovesThemToTheLogWithTheReason) {
  rows_->queue({.id = 1,
                .status = Status::processing,
                .type = "T",
                .payload = "[ 1 ]",
                .attempts = 2,
                .token = 7,
                .error = "no luck",
                .started_ago = 1s,
                .lease = 1h});
  rows_->queue({.id = 2});
  quarantine(3);
  rows_->run("insert into " + database_->table("event_handler_state") +
             " (id, handler, result, failed, error, updated_at) values (1, 'mail', 0, 0, null, " +
             rows_->time(clock_.now()) + "), (1, 'mail#sent', 0, 0, null, " + rows_->time(clock_.now()) +
             "), (1, 'sms', 1, 2, 'busy', " + rows_->time(clock_.now()) + ")");
  EXPECT_EQ(apply(QueueAction::cancel, {.ids = {QueueId{1}, QueueId{3}}}, "ordered \"twice\""), 2);
  EXPECT_THAT(list(), ElementsAre(2));
  const LogEntry entry = storage().log_store().find(QueueId{1}).value();
  EXPECT_EQ(entry.status, Status::failed);
  EXPECT_EQ(entry.event.value().payload(), "[ 1 ]");
  EXPECT_EQ(entry.event.value().type(), "T");
  EXPECT_EQ(entry.attempts, 2);
  EXPECT_EQ(entry.finalized_at, clock_.now());
  EXPECT_EQ(entry.processing_started_at, clock_.now() - 1s);
  ASSERT_EQ(entry.results.size(), 3U) << "the sub task is no handler";
  EXPECT_EQ(entry.results[0].handler, "mail");
  EXPECT_EQ(entry.results[1].error, "busy");
  EXPECT_EQ(entry.results[2].handler, "(cancelled)");
  EXPECT_EQ(entry.results[2].verdict, HandlerVerdict::unrecoverable_error);
  EXPECT_EQ(entry.results[2].error, "ordered \"twice\" (before: no luck)");
  EXPECT_EQ(rows_->cell("select token from " + database_->table("event_log") + " where id = 1"), "8")
      << "not the worker's: its finalize is stale, not repeated";
  EXPECT_THAT(storage().log_store().find(QueueId{3}).value().results[0].error, HasSubstr("died"));
}

TEST_P(QueueAdminVerbs, WalksInBatchesAndMeetsEachRowOnce) {
  for (std::int64_t id = 1; id <= 5; ++id) rows_->queue({.id = id, .status = Status::processing});
  AdminBatch batch = admin().apply(QueueAction::requeue, {}, {}, 2, {});
  EXPECT_EQ(batch.changed, 2);
  EXPECT_EQ(batch.walked_to, 2);
  EXPECT_TRUE(batch.more);
  rows_->run("update " + database_->table("event_queue") + " set status = 1 where id = 1");
  batch = admin().apply(QueueAction::requeue, {}, QueueId{batch.walked_to}, 100, {});
  EXPECT_EQ(batch.changed, 3);
  EXPECT_FALSE(batch.more);
  EXPECT_EQ(record(1).status, Status::processing) << "claimed again meanwhile: left alone";
}

TEST_P(QueueAdminVerbs, ARowUnderLockIsPassedOver) {
  for (std::int64_t id = 1; id <= 3; ++id) rows_->queue({.id = id});
  if (backend() == "sqlite") {  // one writer: there is never anybody to pass over
    EXPECT_EQ(admin().apply(QueueAction::cancel, {}, {}, 100, "why").changed, 3);
    return;
  }
  Transaction worker = storage().begin();
  worker.execute("select id from " + database_->table("event_queue") + " where id = 2 for update");
  EXPECT_EQ(admin().apply(QueueAction::cancel, {}, {}, 100, "why").changed, 2);
  worker.rollback();
  EXPECT_THAT(list(), ElementsAre(2));
}

TEST_P(QueueAdminVerbs, WorksOnTheDatabasesOwnClock) {
  test::TestDatabase real(backend());
  test::QueueRows rows(real, Clock::system());
  QueueAdminStore& verbs = real.storage().queue_admin_store();
  rows.queue({.id = 1, .available_in = -1min});
  rows.queue({.id = 2, .status = Status::processing, .started_ago = 1h, .lease = -1min});
  rows.log({.id = 3});
  EXPECT_GE(verbs.counts({}).oldest_pending, 59s);
  EXPECT_LT(verbs.counts({}).oldest_pending, 1h);
  EXPECT_EQ(verbs.counts({}).abandoned, 1);
  EXPECT_EQ(verbs.list({.stuck_for = 5min}, 10, {}).size(), 1U);
  EXPECT_EQ(verbs.apply(QueueAction::requeue, {.stuck_for = 5min}, {}, 10, {}).changed, 1);
  EXPECT_EQ(verbs.counts({}).pending, 2);
  EXPECT_EQ(verbs.apply(QueueAction::cancel, {.ids = {QueueId{1}}}, {}, 10, "why").changed, 1);
  EXPECT_EQ(verbs.purge_log({.age = 1h, .keep_unread = true}, {}, 10).walk.changed, 0);
  EXPECT_EQ(verbs.replay({}, {}, everything, 10).changed, backend() == "sqlite" ? 2 : 1)
      << "elsewhere the cancelled one has no number yet";
  EXPECT_EQ(verbs.counts({}).delayed, 0) << "due now";
}

}  // namespace
}  // namespace postrider::conformance
