// SPDX-License-Identifier: Apache-2.0
// What the tests of the operator's verbs share.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "postrider/error.hpp"
#include "storage/log_store.hpp"
#include "storage/queue_admin_store.hpp"
#include "support/queue_rows.hpp"

namespace postrider::conformance {

using namespace std::chrono_literals;

class QueueAdminConformance : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend(), test::TestDatabase::Options{.clock = &clock_});
    rows_.emplace(*database_, clock_);
  }
  Storage& storage() { return database_->storage(); }
  QueueAdminStore& admin() { return storage().queue_admin_store(); }

  std::vector<std::int64_t> list(const QueueFilter& filter = {}, std::size_t limit = 100,
                                 std::int64_t after = 0) {
    std::vector<std::int64_t> ids;
    for (const QueueRecord& one : admin().list(filter, limit, QueueId{after})) {
      ids.push_back(static_cast<std::int64_t>(one.id));
    }
    return ids;
  }
  QueueRecord record(std::int64_t id) {
    const auto found = admin().list({.ids = {QueueId{id}}}, 1, {});
    if (found.empty()) ADD_FAILURE() << "no row " << id;
    return found.empty() ? QueueRecord{} : found[0];
  }
  std::int64_t apply(QueueAction action, const QueueFilter& filter = {}, std::string_view reason = "why") {
    const std::int64_t expected = admin().count(action, filter);
    const AdminBatch batch = admin().apply(action, filter, {}, 1000, reason);
    EXPECT_EQ(batch.changed, expected) << "the dry run told the truth";
    EXPECT_FALSE(batch.more);
    return batch.changed;
  }
  /// Ids of the queue rows published by a replay, in order.
  std::vector<std::string> queued_events() {
    std::vector<std::string> ids;
    for (const QueueRecord& one : admin().list({}, 100, {})) ids.push_back(one.event_id);
    return ids;
  }
  void quarantine(std::int64_t id) {
    rows_->queue({.id = id, .crashes = 3, .token = 4, .error = "died", .quarantined = true});
  }
  std::int64_t purge(const LogPurge& what, std::size_t limit) {
    return admin().purge_log(what, {}, limit).walk.changed;
  }
  static constexpr LogSeq everything{std::numeric_limits<std::int64_t>::max()};

  ManualClock clock_;
  std::optional<test::TestDatabase> database_;
  std::optional<test::QueueRows> rows_;
};

}  // namespace postrider::conformance
