// SPDX-License-Identifier: Apache-2.0
// An operator's verb about pending events is killed at every place between two durable steps. A batch is done
// or it is not, and the verb can be called again.
#include <gtest/gtest.h>

#include "postrider/postrider.hpp"
#include "storage/outbox_store.hpp"
#include "support/crash_test.hpp"
#include "support/places.hpp"

namespace postrider::test {
namespace {

class OutboxAdminCrash : public CrashTest {
 protected:
  OutboxAdminCrash() : CrashTest(test::crash_child("admin_child")) {}
  static constexpr std::int64_t batch = 200;  // of the verbs, in one transaction
  static constexpr std::int64_t total = 450;

  std::int64_t count(const std::string& where) {
    return number("select count(*) from " + table("outbox_event") + " where " + where);
  }
  /// All are one node's.
  void publish() {
    std::vector<Event> events;
    for (std::int64_t i = 0; i < total; ++i) events.push_back(Event::json("T", std::to_string(i)));
    std::vector<NewOutboxRow> rows;
    for (const Event& event : events) rows.push_back({.event = &event, .lease = std::chrono::hours{1}});
    Transaction tx = storage_->begin();
    storage_->outbox_store().insert(tx, "n", rows);
    tx.commit();
  }
};

TEST_P(OutboxAdminCrash, ACancelledEventIsADeadLetterOrAsItWas) {
  publish();
  killed("outbox-cancel", "outbox.admin.before_commit=kill");
  EXPECT_EQ(count("status = 0 and token = 1 and owner = 'n'"), total);
  killed("outbox-cancel", "outbox.admin.after_commit=kill");
  EXPECT_EQ(count("status = 3 and token = 2 and last_error = 'cancelled: why'"), batch);
  killed("outbox-cancel", "outbox.admin.before_commit=kill@2");
  EXPECT_EQ(count("status = 3"), 2 * batch);
  done("outbox-cancel");
  EXPECT_EQ(count("status = 3 and token = 2 and done_at is not null"), total) << "each once";
}

TEST_P(OutboxAdminCrash, ARequeuedEventIsFreeOrAsItWas) {
  publish();
  killed("outbox-requeue", "outbox.admin.before_commit=kill");
  EXPECT_EQ(count("token = 1 and owner = 'n'"), total);
  killed("outbox-requeue", "outbox.admin.after_commit=kill");
  EXPECT_EQ(count("token = 2 and owner is null and lease_until is null"), batch);
  done("outbox-requeue");
  EXPECT_EQ(count("status = 0 and token = 2 and owner is null and lease_until is null"), total)
      << "each once";
}

POSTRIDER_FOR_EACH_CRASH_BACKEND(OutboxAdminCrash);

}  // namespace
}  // namespace postrider::test
