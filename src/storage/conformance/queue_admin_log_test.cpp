// SPDX-License-Identifier: Apache-2.0
// The operator's verbs about the log: replay and purge.
#include "storage/conformance/queue_admin_fixture.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Status = QueueStatus;

class QueueAdminLogVerbs : public QueueAdminConformance {};
POSTRIDER_FOR_EACH_BACKEND(QueueAdminLogVerbs);

TEST_P(QueueAdminLogVerbs, ReplayPublishesThemAgainInTheOrderOfTheLog) {
  std::string bytes("\0\xff", 2);
  rows_->log({.id = 30,
              .event_id = "c",
              .type = "T",
              .tenant = "t",
              .key = "k",
              .headers = R"({"h":"v"})",
              .payload = "[ 1 ]",
              .attempts = 5});
  rows_->log({.id = 10, .event_id = "a", .bytes = bytes});
  rows_->log({.id = 20, .status = Status::failed, .event_id = "b"});
  clock_.advance(1h);
  EXPECT_EQ(admin().replay({}, {}, everything, 0).changed, 3);
  EXPECT_THAT(queued_events(), IsEmpty()) << "limit 0 only counts";
  const AdminBatch first = admin().replay({}, {}, everything, 2);
  EXPECT_EQ(first.changed, 2);
  EXPECT_EQ(first.walked_to, 2);
  EXPECT_TRUE(first.more);
  EXPECT_FALSE(admin().replay({}, LogSeq{first.walked_to}, everything, 2).more);
  EXPECT_THAT(queued_events(), ElementsAre("c", "a", "b"));
  const std::vector<QueueRecord> rows = admin().list({}, 10, {});
  EXPECT_EQ(rows[0].type, "T");
  EXPECT_EQ(rows[0].tenant_id, "t");
  EXPECT_EQ(rows[0].ordering_key, "k");
  EXPECT_EQ(rows[0].headers_json, R"({"h":"v"})");
  EXPECT_EQ(rows[0].payload, "[ 1 ]");
  EXPECT_EQ(rows[0].status, Status::pending);
  EXPECT_EQ(rows[0].attempts, 0);
  EXPECT_EQ(rows[0].available_at, clock_.now());
  EXPECT_EQ(rows[0].occurred_at, clock_.now() - 1h);
  EXPECT_EQ(rows[1].payload, bytes);
  EXPECT_TRUE(storage().log_store().find(QueueId{30}).has_value()) << "the log stays as it is";
}

TEST_P(QueueAdminLogVerbs, ReplayByFilter) {
  const auto count = [&](const QueueFilter& filter) {
    return admin().replay(filter, {}, everything, 0).changed;
  };
  rows_->log({.id = 1,
              .status = Status::failed,
              .type = "A",
              .tenant = "t",
              .results = R"([{"handler":"timeout","result":2,"error":"disk \"full\" 100%"}])"});
  rows_->log({.id = 2, .type = "A", .finalized_at = clock_.now() - 1h, .results = R"([{"handler":"full"}])"});
  rows_->log({.id = 3, .type = "B"});
  EXPECT_EQ(count({}), 3);
  EXPECT_EQ(count({.ids = {QueueId{1}, QueueId{9}}}), 1);
  EXPECT_EQ(count({.event_ids = {EventId("e2")}}), 1);
  EXPECT_EQ(count({.types = {"A"}}), 2);
  EXPECT_EQ(count({.tenant_id = "t"}), 1);
  EXPECT_EQ(count({.statuses = {Status::completed}}), 2);
  EXPECT_EQ(count({.older_than = 1h}), 1);
  EXPECT_EQ(count({.error_contains = "\"full\" 100%"}), 1) << "the text, not its JSON";
  EXPECT_EQ(count({.error_contains = "full"}), 1) << "a handler's name is no error";
  EXPECT_EQ(count({.error_contains = "FULL"}), 0);
  EXPECT_EQ(count({.error_contains = "timeout"}), 0);
  EXPECT_EQ(admin().replay({}, {}, LogSeq{2}, 0).changed, 2) << "not beyond the end that was given";
  EXPECT_THROW((void)count({.stuck_for = 1s}), Error);
  EXPECT_THROW((void)count({.quarantined = false}), Error);
}

TEST_P(QueueAdminLogVerbs, PurgeDeletesTheOldestInOrder) {
  const TimePoint now = clock_.now();
  rows_->log({.id = 9, .finalized_at = now - 10h});
  rows_->log({.id = 8, .finalized_at = now - 9h});
  rows_->log({.id = 7, .finalized_at = now - 8h});
  rows_->log({.id = 6, .finalized_at = now - 1h});
  rows_->log({.id = 5, .finalized_at = now - 9h});
  EXPECT_EQ(purge({.age = 8h, .keep_unread = true}, 0), 3) << "up to the first that is too young";
  EXPECT_EQ(purge({.age = 8h, .keep_unread = true}, 2), 2);
  EXPECT_FALSE(storage().log_store().find(QueueId{9}).has_value());
  EXPECT_TRUE(storage().log_store().find(QueueId{7}).has_value());
  EXPECT_EQ(purge({.age = 8h, .keep_unread = true}, 2), 1);
  EXPECT_EQ(purge({.age = 8h, .keep_unread = true}, 2), 0);
  const LogPage left = storage().log_store().read(LogSeq{0}, 10, {});
  ASSERT_EQ(left.entries.size(), 2U) << "no hole in what is left";
  EXPECT_EQ(left.entries[0].seq, LogSeq{4});
  EXPECT_EQ(purge({.age = 0s, .keep_unread = true}, 10), 2);
}

TEST_P(QueueAdminLogVerbs, PurgeKeepsWhatAProjectionHasNotRead) {
  for (std::int64_t id = 1; id <= 4; ++id) rows_->log({.id = id});
  for (const char* at : {"3", "2"}) {
    rows_->run("insert into " + database_->table("event_projection") +
               " (name, version, position, created_at, updated_at) values ('p', " + at + ", " + at + ", " +
               rows_->time(clock_.now()) + ", " + rows_->time(clock_.now()) + ")");
  }
  clock_.advance(1h);
  EXPECT_EQ(purge({.age = 1min, .keep_unread = true}, 0), 2);
  EXPECT_EQ(purge({.age = 1min, .keep_unread = true}, 100), 2);
  EXPECT_EQ(purge({.age = 1min, .keep_unread = true}, 100), 0);
  EXPECT_EQ(purge({.age = 1min, .keep_unread = false}, 100), 2) << "unless told otherwise";
}

TEST_P(QueueAdminLogVerbs, PurgeSaysWhenProjectionsHoldItBack) {
  for (std::int64_t id = 1; id <= 4; ++id) rows_->log({.id = id, .type = id == 4 ? "B" : "A"});
  rows_->run("insert into " + database_->table("event_projection") +
             " (name, version, position, created_at, updated_at) values ('p', 1, 2, " +
             rows_->time(clock_.now()) + ", " + rows_->time(clock_.now()) + ")");
  EXPECT_FALSE(admin().purge_log({.age = 1h}, {}, 0).held_back) << "too young";
  EXPECT_FALSE(admin().purge_log({.age = 1h}, {}, 10).held_back);
  clock_.advance(1h);
  EXPECT_TRUE(admin().purge_log({.age = 1h}, {}, 0).held_back);
  EXPECT_FALSE(admin().purge_log({.age = 1h, .keep_unread = false}, {}, 0).held_back);
  EXPECT_FALSE(admin().purge_log({.age = 1h}, {}, 1).held_back) << "there is more to do first";
  EXPECT_TRUE(admin().purge_log({.age = 1h}, {}, 10).held_back);
  const LogPurgeBatch in_vain = admin().purge_log({.age = 1h}, {}, 10);
  EXPECT_EQ(in_vain.walk.changed, 0);
  EXPECT_TRUE(in_vain.held_back);
  EXPECT_TRUE(admin().purge_log({.age = 1h, .filter = {.types = {"B"}}}, {}, 10).held_back);
  EXPECT_FALSE(admin().purge_log({.age = 1h, .filter = {.types = {"C"}}}, {}, 10).held_back);
  rows_->run("update " + database_->table("event_projection") + " set position = 4");
  EXPECT_FALSE(admin().purge_log({.age = 1h}, {}, 10).held_back);
  EXPECT_EQ(storage().log_store().head(), LogSeq{0});
}

TEST_P(QueueAdminLogVerbs, PurgeByFilterLeavesTheOthers) {
  for (std::int64_t id = 1; id <= 6; ++id) {
    rows_->log({.id = id,
                .status = id == 5 ? Status::failed : Status::completed,
                .type = id % 2 == 0 ? "A" : "B",
                .results = id == 5 ? R"([{"handler":"h","result":2,"error":"disk full"}])" : ""});
  }
  clock_.advance(1h);
  rows_->log({.id = 8, .type = "A"});
  const LogPurge what{.age = 1h, .filter = {.types = {"A"}}};
  EXPECT_EQ(purge(what, 0), 3);
  const LogPurgeBatch first = admin().purge_log(what, {}, 2);
  EXPECT_EQ(first.walk.changed, 2);
  EXPECT_EQ(first.walk.walked_to, 4);
  EXPECT_TRUE(first.walk.more);
  const LogPurgeBatch second = admin().purge_log(what, LogSeq{first.walk.walked_to}, 2);
  EXPECT_EQ(second.walk.changed, 1);
  EXPECT_FALSE(second.walk.more) << "the next one is too young";
  EXPECT_EQ(purge({.age = 0s, .filter = {.types = std::vector<std::string>{}}}, 10), 0);
  EXPECT_EQ(purge({.age = 0s, .filter = {.error_contains = "full"}}, 10), 1);
  std::vector<std::int64_t> left;
  for (const LogEntry& one : storage().log_store().read(LogSeq{0}, 10, {}).entries) {
    left.push_back(static_cast<std::int64_t>(one.id));
  }
  EXPECT_THAT(left, ElementsAre(1, 3, 8));
  EXPECT_THROW((void)purge({.filter = {.delayed = true}}, 10), Error);
}

}  // namespace
}  // namespace postrider::conformance
