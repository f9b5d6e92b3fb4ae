// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/migration_target.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "backends/sqlite/storage.hpp"
#include "postrider/error.hpp"
#include "support/temp_dir.hpp"

namespace postrider::sqlite {
namespace {

using ::testing::HasSubstr;

TEST(SqliteMigrationTarget, WithoutFts5ItSaysSoAndLeavesWholeStepsOnly) {
  const test::TempDir dir;
  Connection connection(ConnectionOptions{.name = "test", .path = dir.file("test.db")});
  // What a library that was built without it looks like.
  ASSERT_EQ(sqlite3_drop_modules(connection.native(), nullptr), SQLITE_OK);
  std::string message;
  {
    SqliteMigrationTarget target(connection, Identifier("postrider"), Clock::system());
    try {
      (void)run_migrations(target, embedded_migrations(), Identifier("postrider"), {});
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
      EXPECT_FALSE(error.retryable());
      message = error.what();
    }
  }
  EXPECT_THAT(message, HasSubstr("built without FTS5"));
  EXPECT_THAT(message, HasSubstr("Hint: link a libsqlite3 that has it"));
  SqliteMigrationTarget target(connection, Identifier("postrider"), Clock::system());
  EXPECT_THAT(target.applied(), ::testing::ElementsAre(1, 2)) << "the next run goes on here";
  EXPECT_EQ(connection.execute("select count(*) from sqlite_master where name like '%event_log_entries%'", {})
                .integer(0, 0),
            0);
}

}  // namespace
}  // namespace postrider::sqlite
