// SPDX-License-Identifier: Apache-2.0
// An operator's verb is killed at every place between two durable steps. A batch is done or it is not, and
// the verb can be called again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "postrider/postrider.hpp"
#include "support/crash_test.hpp"
#include "support/places.hpp"

namespace postrider::test {
namespace {

class QueueAdminCrash : public CrashTest {
 protected:
  QueueAdminCrash() : CrashTest(test::crash_child("admin_child")) {}
  static constexpr std::int64_t batch = 200;  // of the verbs, in one transaction
  static constexpr std::int64_t total = 450;

  void SetUp() override {
    CrashTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    queue_.emplace(*storage_, QueueOptions{.log = [](LogLevel, std::string_view) {}});
  }
  std::int64_t number_in(const std::string& name, const std::string& what) {
    return number("select " + what + " from " + table(name));
  }
  std::int64_t count(const std::string& name, const std::string& where = "1 = 1") {
    return number_in(name + " where " + where, "count(*)");
  }
  void publish() {
    std::vector<Event> events;
    for (std::int64_t i = 0; i < total; ++i) events.push_back(Event::json("T", std::to_string(i)));
    queue_->publish(events);
  }
  void finish_all() {
    publish();
    for (const QueuedEvent& one : queue_->poll(total))
      ASSERT_EQ(queue_->finalize(one.claim), Settled::applied);
  }

  std::optional<EventQueue> queue_;
};

TEST_P(QueueAdminCrash, ACancelledEventIsInTheLogOnceAndNumbered) {
  publish();
  killed("cancel", "queue.admin.before_commit=kill");
  EXPECT_EQ(count("event_queue"), total);
  killed("cancel", "queue.admin.after_commit=kill");
  EXPECT_EQ(count("event_queue"), total - batch);
  EXPECT_EQ(count("event_log"), batch);
  killed("cancel", "queue.admin.before_commit=kill@2");
  EXPECT_EQ(count("event_queue"), total - 2 * batch);
  done("cancel");
  EXPECT_EQ(count("event_queue"), 0);
  EXPECT_EQ(count("event_log"), total);
  EXPECT_EQ(number_in("event_log", "count(distinct id)"), total);
  EXPECT_EQ(EventLog(*storage_).head(), LogSeq{total}) << "those of the killed ones have numbers too";
}

TEST_P(QueueAdminCrash, ARequeuedEventIsPendingOrAsItWas) {
  publish();
  ASSERT_EQ(queue_->poll(total).size(), static_cast<std::size_t>(total));
  killed("requeue", "queue.admin.before_commit=kill");
  EXPECT_EQ(count("event_queue", "status = 1 and token = 1 and owner is not null"), total);
  killed("requeue", "queue.admin.after_commit=kill");
  EXPECT_EQ(count("event_queue", "status = 0 and token = 2 and owner is null"), batch);
  done("requeue");
  EXPECT_EQ(count("event_queue", "status = 0 and token = 2 and owner is null"), total) << "each once";
}

TEST_P(QueueAdminCrash, AReleasedEventIsOutOfQuarantineOrAsItWas) {
  publish();
  run("update " + table("event_queue") + " set crashes = 3, quarantined_at = created_at");
  killed("release", "queue.admin.before_commit=kill");
  EXPECT_EQ(count("event_queue", "quarantined_at is not null and crashes = 3"), total);
  killed("release", "queue.admin.after_commit=kill");
  EXPECT_EQ(count("event_queue", "quarantined_at is null and crashes = 0"), batch);
  done("release");
  EXPECT_EQ(count("event_queue", "quarantined_at is null and crashes = 0 and token = 1"), total)
      << "each once";
}

TEST_P(QueueAdminCrash, AReplayStopsBetweenTwoBatches) {
  finish_all();
  killed("replay", "queue.admin.replayed=kill");
  EXPECT_EQ(count("event_queue"), batch) << "published whole or not at all";
  EXPECT_EQ(count("event_log"), total) << "the log stays";
  EXPECT_EQ(number_in("event_queue", "count(distinct event_id)"), batch);
}

TEST_P(QueueAdminCrash, APurgeStopsBetweenTwoBatches) {
  finish_all();
  killed("purge", "queue.admin.purged=kill");
  EXPECT_EQ(count("event_log"), total - batch);
  EXPECT_EQ(number_in("event_log", "min(seq)"), batch + 1) << "the oldest ones, in order";
  done("purge");
  EXPECT_EQ(count("event_log"), 0);
}

POSTRIDER_FOR_EACH_CRASH_BACKEND(QueueAdminCrash);

}  // namespace
}  // namespace postrider::test
