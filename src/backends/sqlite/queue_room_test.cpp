// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backends/sqlite/storage.hpp"
#include "support/temp_dir.hpp"

namespace postrider::sqlite {
namespace {

class SqliteQueueRoom : public ::testing::Test {
 protected:
  SqliteQueueRoom() {
    storage_.migrate({});
    const Event event = Event::builder("E").json("\"" + std::string(200, 'x') + "\"").build();
    const std::vector<NewQueueRow> rows(2'000, NewQueueRow{.event = &event});
    Transaction tx = storage_.begin();
    (void)storage_.queue_store().insert(tx, rows);
    tx.commit();
  }
  std::size_t claim(const std::string& owner) {
    return storage_.queue_store()
        .claim({.owner = owner, .lease = std::chrono::seconds{30}, .limit = 2'000})
        .events.size();
  }
  std::int64_t pages() {
    Connection connection({.name = file_, .path = file_});
    Statement statement = connection.prepare("pragma page_count");
    return statement.step() ? statement.integer(0) : 0;
  }

  test::TempDir dir_;
  const std::string file_ = dir_.file("room.db");
  SqliteStorage storage_{"sqlite:" + file_, {}};
};

TEST_F(SqliteQueueRoom, AClaimedRowKeepsItsSize) {
  const std::int64_t before = pages();
  ASSERT_EQ(claim("a-host-with-a-name.example-1234567-1"), 2'000U);
  EXPECT_EQ(pages(), before) << "rows that grow split their pages";
}

TEST_F(SqliteQueueRoom, ALongerOwnerIsClaimedForAllTheSame) {
  EXPECT_EQ(claim(std::string(64, 'n')), 2'000U);
}

}  // namespace
}  // namespace postrider::sqlite
