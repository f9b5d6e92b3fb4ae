// SPDX-License-Identifier: Apache-2.0
// The plan of every statement of the event store, prepared while the tables were empty, under the settings
// that our own transactions use: see plan_fixture.hpp.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/postgres/plan_fixture.hpp"
#include "backends/postgres/stream_sql.hpp"

namespace postrider::postgres {
namespace {

class StreamPlanTest : public PlanTest {
 protected:
  void SetUp() override {
    PlanTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    sql_.emplace(database_->options().schema);
    connection_ = connect();
    const std::string groups = "0, 1000000, 100, 1000000, '{1,2}', '{1,3}', '{7,8,9}'";
    prepare(
        {"events", "event_tags"},
        {
            {"head", &sql_->head, "", {"Backward using events_pkey"}},
            {"probe_one",
             &sql_->probe_one,
             "'{7,8}', '{0,1}', '{9,9}'",
             {"Backward using event_tags_pkey", "events_pkey"}},
            {"probe_groups",
             &sql_->probe_groups,
             "'{1,3}', '{2,3}', '{0,0}', '{9,9}', '{7,8,9}'",
             {"Backward using event_tags_pkey", "events_pkey"},
             true},
            {"read_all",
             &sql_->read_all,
             "0, 1000000, 100, 1000000",
             {"Scan using events_pkey", "Backward using events_pkey"}},
            {"read_all_backwards",
             &sql_->read_all_backwards,
             "0, 1000000, 100, 1000000",
             {"Backward using events_pkey"}},
            {"read_groups", &sql_->read_groups, groups, {"Scan using event_tags_pkey", "events_pkey"}, true},
            {"read_groups_backwards",
             &sql_->read_groups_backwards,
             groups,
             {"Backward using event_tags_pkey", "events_pkey"},
             true},
            {"read_at", &sql_->read_at, "1000000, '{1,5,9}'", {"events_pkey"}},
        });
  }

  /// Hash 7 is at every event, hash 8 at every third, the others are rare.
  void fill(int from, int to) {
    const std::string range =
        "FROM generate_series(" + std::to_string(from) + ", " + std::to_string(to) + ") AS i";
    run(connection_,
        "INSERT INTO " + database_->table("events") +
            " (position, event_id, type, tags, data, occurred_at, stored_at, size) SELECT i, 'e', 'T', "
            "'[]', '{}', now(), now(), 4 " +
            range);
    run(connection_, "INSERT INTO " + database_->table("event_tags") + " SELECT 7, i " + range);
    run(connection_,
        "INSERT INTO " + database_->table("event_tags") + " SELECT 8, i " + range + " WHERE i % 3 = 0");
    run(connection_, "INSERT INTO " + database_->table("event_tags") + " SELECT 1000 + i / 5, i " + range);
  }
  std::optional<StreamSql> sql_;
};

TEST_F(StreamPlanTest, StaysOnItsIndexesFromEmptyToHalfAMillionEvents) {
  expect_good_plans("empty");
  fill(1, 10'000);
  expect_good_plans("10,000 events, not analysed");
  analyze();
  expect_good_plans("10,000 events, analysed");
  fill(10'001, 500'000);
  expect_good_plans("500,000 events, analysed at 10,000");
  analyze();
  expect_good_plans("500,000 events, analysed");
}

}  // namespace
}  // namespace postrider::postgres
