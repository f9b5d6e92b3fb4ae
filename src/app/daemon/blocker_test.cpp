// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/blocker.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "support/backend.hpp"

namespace postrider::daemon {
namespace {

class BlockerTest : public test::BackendTest {};
POSTRIDER_FOR_EACH_BACKEND(BlockerTest);

TEST_P(BlockerTest, TheTransactionThatOthersWaitForIsFoundByItsPid) {
  test::TestDatabase database(backend());
  Storage& storage = database.storage();
  if (storage.kind() != BackendKind::postgres) {
    EXPECT_FALSE(find_blocker(storage));
    return;
  }
  Transaction holder = storage.begin();
  holder.execute("select pg_advisory_xact_lock(4711)");
  const std::int64_t pid = holder.execute("select pg_backend_pid()").integer(0, 0);
  std::jthread waiter([&] {
    Transaction tx = storage.begin();
    tx.execute("select pg_advisory_xact_lock(4711)");
    tx.commit();
  });
  std::optional<Blocker> found;  // by the server's clock it takes a second
  while (!found || found->pid != pid) found = find_blocker(storage);
  EXPECT_EQ(found->waiting, 1);
  EXPECT_EQ(found->state, "idle in transaction");
  holder.commit();
  waiter.join();
  found = find_blocker(storage);
  EXPECT_TRUE(!found || found->pid != pid);
}

}  // namespace
}  // namespace postrider::daemon
