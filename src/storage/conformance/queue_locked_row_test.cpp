// SPDX-License-Identifier: Apache-2.0
// Results about rows that somebody's open transaction has locked.
#include "storage/conformance/queue_fixture.hpp"

namespace postrider::conformance {
namespace {

using ::testing::ElementsAre;

class QueueLockedRow : public QueueConformance {};
POSTRIDER_FOR_EACH_BACKEND(QueueLockedRow);

TEST_P(QueueLockedRow, DoesNotHoldUpTheOthers) {
  if (storage().kind() == BackendKind::sqlite) return;  // it has one writer, and no locks on rows
  publish_all({"locked", "a", "b", "c"});
  claim();
  const std::vector<Settlement> batch{
      {.claim = held("locked")},
      {.claim = held("a")},
      {.claim = held("b"), .kind = Settlement::Kind::retry, .delay = 1s, .error = "no luck"},
      {.claim = held("c"), .kind = Settlement::Kind::release}};
  {
    Transaction theirs = storage().begin();
    theirs.execute("select 1 from " + queue() + " where event_id = ? for update", "locked");
    EXPECT_THAT(store().settle(batch),
                ElementsAre(Settled::busy, Settled::applied, Settled::applied, Settled::applied));
    EXPECT_EQ(retry("locked", 1s), Settled::busy);
  }
  EXPECT_EQ(row("locked").status, QueueStatus::processing) << "as it was";
  EXPECT_THAT(store().settle(batch),
              ElementsAre(Settled::applied, Settled::repeated, Settled::repeated, Settled::repeated));
}

}  // namespace
}  // namespace postrider::conformance
