// SPDX-License-Identifier: Apache-2.0
// What fails around the commit of entries leaves nothing half done, and can be repeated.
#include "core/failpoint.hpp"
#include "storage/conformance/store_fixture.hpp"
#include "storage/entry_store.hpp"

#if defined(POSTRIDER_FAILPOINTS)
namespace postrider::conformance {
namespace {

class EntryFailpoint : public StoreConformance {
 protected:
  void TearDown() override { failpoints::clear(); }
  std::vector<InsertedEntry> insert() {
    std::vector<Entry> batch(2);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      batch[i].application_id = "a";
      batch[i].correlation_id = "c";
      batch[i].process_name = "Failing";
      batch[i].process_status = "S";
      batch[i].idempotency_key = "k" + std::to_string(i);
      batch[i].occurred_at = clock_.now();
    }
    return storage().entry_store().insert(batch);
  }
  void fail_at(const std::string& step) {
    failpoints::set(backend() + ".entries." + step,
                    [] { throw Error(ErrorCode::unavailable, {.retryable = true}, "made to fail"); });
    EXPECT_EQ(error_of([&] { insert(); }).code(), ErrorCode::unavailable);
    failpoints::clear();
  }
  std::size_t found() { return storage().entry_store().find({.words = {"failing"}}).entries.size(); }
};
POSTRIDER_FOR_EACH_BACKEND(EntryFailpoint);

TEST_P(EntryFailpoint, BeforeTheCommitNothingIsStored) {
  fail_at("before_commit");
  EXPECT_EQ(found(), 0U);
  for (const InsertedEntry& one : insert()) EXPECT_FALSE(one.duplicate);
  EXPECT_EQ(found(), 2U);
}

TEST_P(EntryFailpoint, AfterTheCommitARepeatIsKnownAsOne) {
  fail_at("after_commit");
  EXPECT_EQ(found(), 2U);
  for (const InsertedEntry& one : insert()) EXPECT_TRUE(one.duplicate);
  EXPECT_EQ(found(), 2U);
}

}  // namespace
}  // namespace postrider::conformance
#endif
