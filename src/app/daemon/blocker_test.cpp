// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/blocker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "app/daemon/diagnosis.hpp"
#include "app/daemon/figures.hpp"
#include "postrider/open.hpp"
#include "support/backend.hpp"

namespace postrider::daemon {
namespace {

using namespace std::chrono_literals;

class BlockerTest : public test::BackendTest {};
POSTRIDER_FOR_EACH_BACKEND(BlockerTest);

TEST_P(BlockerTest, TheTransactionThatOthersWaitForIsFoundByItsPid) {
  test::TestDatabase database(backend());
  Storage& storage = database.storage();
  if (storage.kind() != BackendKind::postgres) {
    EXPECT_FALSE(find_blocker(storage, database.options().schema));
    return;
  }
  const auto wait_for = [&](int lock) {
    Transaction tx = storage.begin();
    tx.execute("select pg_advisory_xact_lock(" + std::to_string(lock) + ")");
    tx.commit();
  };
  // Somebody else's affair, and older.
  Transaction stranger = storage.begin();
  stranger.execute("select pg_advisory_xact_lock(4712)");
  std::jthread strangers_waiter([&] { wait_for(4712); });
  Transaction holder = storage.begin();
  holder.execute("select count(*) from " + database.table("outbox_event"));
  holder.execute("select pg_advisory_xact_lock(4711)");
  const std::int64_t pid = holder.execute("select pg_backend_pid()").integer(0, 0);
  std::jthread waiter([&] { wait_for(4711); });
  std::optional<Blocker> found;  // by the server's clock it takes a second
  while (!found) found = find_blocker(storage, database.options().schema);
  EXPECT_EQ(found->pid, pid);
  EXPECT_EQ(found->waiting, 1);
  EXPECT_EQ(found->state, "idle in transaction");
  holder.commit();
  waiter.join();
  EXPECT_FALSE(find_blocker(storage, database.options().schema)) << "the stranger is none";
  stranger.commit();
}

TEST_P(BlockerTest, WhoLocksATableIsNamedThoughTheFiguresCannotBeRead) {
  test::TestDatabase database(backend());
  if (database.storage().kind() != BackendKind::postgres) return;  // it is the only one that tells
  StorageOptions hasty = database.options();
  hasty.io_timeout = 1s;
  const std::unique_ptr<Storage> looking = open(database.url(), hasty);
  metrics::PrometheusMetrics metrics;
  FigureBoard board(*looking, hasty.schema, metrics, Clock::system());
  board.look();
  ASSERT_TRUE(board.latest()->database_up);
  Transaction holder = database.storage().begin();
  holder.execute("lock table " + database.table("outbox_event") + " in access exclusive mode");
  const std::int64_t pid = holder.execute("select pg_backend_pid()").integer(0, 0);
  std::jthread waiter([&] {
    Transaction tx = database.storage().begin();
    tx.execute("select count(*) from " + database.table("outbox_event"));
    tx.commit();
  });
  while (!board.latest()->blocker) board.look();
  EXPECT_FALSE(board.latest()->database_up);
  EXPECT_EQ(board.latest()->blocker->pid, pid);
  EXPECT_THAT(stuck_line(diagnose(board.latest().get(), {})),
              ::testing::HasSubstr("process " + std::to_string(pid)));
  holder.commit();
  waiter.join();
  board.look();
  EXPECT_TRUE(board.latest()->database_up);
  EXPECT_FALSE(board.latest()->blocker);
}

}  // namespace
}  // namespace postrider::daemon
