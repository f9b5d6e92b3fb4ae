// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/error_map.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace postrider::mariadb {
namespace {

using ::testing::HasSubstr;

TEST(MariadbErrorMap, SaysWhatACallerCanAskFor) {
  struct Case {
    unsigned number;
    ErrorCode code;
    bool retryable;
    bool lost;
  };
  const Case cases[] = {
      {1062, ErrorCode::conflict, false, false},    {1205, ErrorCode::contention, true, false},
      {1213, ErrorCode::contention, true, false},   {1021, ErrorCode::storage_full, true, false},
      {1114, ErrorCode::storage_full, true, false}, {1146, ErrorCode::database, false, false},
      {2002, ErrorCode::unavailable, true, true},   {2003, ErrorCode::unavailable, true, true},
      {2006, ErrorCode::unavailable, true, true},   {2013, ErrorCode::unavailable, true, true},
      {1053, ErrorCode::unavailable, true, true},   {1927, ErrorCode::unavailable, true, true},
      {1040, ErrorCode::unavailable, true, true},   {1045, ErrorCode::unavailable, false, false},
      {1049, ErrorCode::unavailable, false, false}, {1044, ErrorCode::database, false, false},
      {1317, ErrorCode::timeout, true, false},      {1064, ErrorCode::database, false, false},
  };
  for (const Case& c : cases) {
    const Error error = to_error({.number = c.number, .sqlstate = "HY000", .message = "why"}, "doing");
    EXPECT_EQ(error.code(), c.code) << c.number;
    EXPECT_EQ(error.retryable(), c.retryable) << c.number;
    EXPECT_EQ(error.connection_lost(), c.lost) << c.number;
    EXPECT_FALSE(error.in_doubt()) << c.number;
    EXPECT_THAT(error.what(), HasSubstr("postrider: doing: why (error " + std::to_string(c.number) + ")"));
  }
}

TEST(MariadbErrorMap, ALostConnectionLeavesACommitInDoubt) {
  for (const unsigned number : {2006U, 2013U, 1053U, 1927U}) {
    const Error error = to_commit_error({.number = number}, "commit");
    EXPECT_TRUE(error.in_doubt()) << number;
    EXPECT_FALSE(error.retryable()) << number << ": repeating it may do it twice";
  }
  EXPECT_FALSE(to_commit_error({.number = 1213}, "commit").in_doubt());
}

TEST(MariadbErrorMap, FindsAFullDiskBehindOtherNumbers) {
  for (const char* const message : {"Got error 28 \"No space left on device\" from storage engine InnoDB",
                                    "Error writing file './x' (Errcode: 28 \"No space left on device\")"}) {
    EXPECT_EQ(to_error({.number = 1030, .message = message}, "write").code(), ErrorCode::storage_full)
        << message;
  }
  EXPECT_EQ(to_error({.number = 1030, .message = "Got error 128 from storage engine"}, "write").code(),
            ErrorCode::database);
}

TEST(MariadbErrorMap, HintsSayWhatToDo) {
  EXPECT_THAT(to_error({.number = 1045}, "x").what(), HasSubstr("password"));
  EXPECT_THAT(to_error({.number = 1153}, "x").what(), HasSubstr("max_allowed_packet"));
}

TEST(MariadbErrorMap, OnlyWhatIsMissingOfOursHintsAtMigrate) {
  const Error table =
      to_error({.number = 1146, .message = "Table 'db.postrider_outbox_event' doesn't exist"}, "x");
  EXPECT_EQ(table.code(), ErrorCode::schema);
  EXPECT_THAT(table.what(), HasSubstr("call storage->migrate()"));
  const Error column = to_error({.number = 1054,
                                 .message = "Unknown column 'seq' in 'field list'",
                                 .statement = "SELECT seq FROM postrider_outbox_event"},
                                "x");
  EXPECT_EQ(column.code(), ErrorCode::schema);
  for (const Failure& theirs :
       {Failure{.number = 1146, .message = "Table 'db.orders' doesn't exist"},
        Failure{.number = 1054, .message = "Unknown column 'x' in 'field list'", .statement = "SELECT x"}}) {
    const Error error = to_error(theirs, "x");
    EXPECT_EQ(error.code(), ErrorCode::database);
    EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("migrate")));
  }
}

}  // namespace
}  // namespace postrider::mariadb
