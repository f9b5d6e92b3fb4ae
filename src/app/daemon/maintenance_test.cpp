// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/maintenance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "postrider/event_queue.hpp"
#include "storage/queue_store.hpp"
#include "support/backend.hpp"
#include "support/eventually.hpp"
#include "support/logged_lines.hpp"

namespace postrider::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;

class MaintenanceTest : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend());
    config_.queue.cleanup_interval = 10ms;
    config_.queue.abandoned_timeout = 100ms;
  }
  [[nodiscard]] Storage& storage() { return database_->storage(); }
  [[nodiscard]] bool told(const std::string& text) {
    return test::eventually([&] { return ::testing::Value(log_.all(), Contains(HasSubstr(text))); });
  }

  std::optional<test::TestDatabase> database_;
  config::DaemonConfig config_;
  metrics::PrometheusMetrics metrics_;
  test::LoggedLines log_;
};
POSTRIDER_FOR_EACH_BACKEND(MaintenanceTest);

TEST_P(MaintenanceTest, RemovesWhatHandlersHaveStoredAboutFinishedEventsOnly) {
  if (IsSkipped() || HasFatalFailure()) return;
  EventQueue queue{storage()};
  queue.publish(Event::json("Finished", "{}"));
  queue.publish(Event::json("Open", "{}"));
  const HandlerResult result{.handler = "mail", .verdict = HandlerVerdict::success};
  std::vector<QueueId> ids;
  for (int i = 0; i < 2; ++i) {
    const auto claimed = queue.poll();
    ASSERT_TRUE(claimed.has_value());
    ASSERT_TRUE(storage().queue_store().save_states(claimed->claim, {&result, 1}));
    ids.push_back(claimed->claim.id);
    if (claimed->event->type() == "Finished") {
      ASSERT_EQ(queue.finalize(claimed->claim), Settled::applied);
    }
  }
  ASSERT_EQ(storage().queue_store().load_states(ids).size(), 2U);
  Maintenance maintenance(storage(), config_, metrics_, Clock::system(), log_.callback());
  maintenance.start();
  EXPECT_TRUE(test::eventually([&] { return storage().queue_store().load_states(ids).size() == 1; }));
  EXPECT_TRUE(test::eventually([&] {
    return metrics_.text().find("postrider_maintenance_removed_total{table=\"handler_states\"} 1") !=
           std::string::npos;
  })) << metrics_.text();
  maintenance.stop();
  EXPECT_EQ(storage().queue_store().load_states(ids).size(), 1U) << "an event in the queue keeps its states";
}

TEST_P(MaintenanceTest, TellsOfAbandonedEventsOnceAndLeavesThemToTheNextWorker) {
  if (IsSkipped() || HasFatalFailure()) return;
  EventQueue queue{storage(), {.abandoned_timeout = 100ms}};
  queue.publish(Event::json("Job", "{}"));
  ASSERT_TRUE(queue.poll().has_value());  // by a worker that dies
  Maintenance maintenance(storage(), config_, metrics_, Clock::system(), log_.callback());
  maintenance.start();
  EXPECT_TRUE(told("1 event of the queue abandoned"));
  EXPECT_TRUE(told("for 100 ms no other one"));
  EventQueue other{storage()};
  const auto again = other.poll();
  ASSERT_TRUE(again.has_value()) << "it is there for others";
  EXPECT_EQ(again->crashes, 1) << "and its crash counts";
  ASSERT_EQ(other.finalize(again->claim), Settled::applied);
  EXPECT_TRUE(told("no event of the queue is abandoned any more"));
  maintenance.stop();
  EXPECT_EQ(log_.all().size(), 2U);
}

TEST_P(MaintenanceTest, ADatabaseThatFailsIsToldOnceAndCounted) {
  if (IsSkipped() || HasFatalFailure()) return;
  storage().migrate({.target = 0});
  Maintenance maintenance(storage(), config_, metrics_, Clock::system(), log_.callback());
  maintenance.start();
  EXPECT_TRUE(told("cannot remove old rows, trying again"));
  EXPECT_TRUE(test::eventually([&] {
    const std::string text = metrics_.text();
    return text.find("postrider_maintenance_failures_total 0\n") == std::string::npos &&
           text.find("postrider_maintenance_failures_total 1\n") == std::string::npos;
  }));
  storage().migrate();
  EXPECT_TRUE(told("old rows are removed again"));
  maintenance.stop();
  EXPECT_EQ(log_.all().size(), 2U);
}

}  // namespace
}  // namespace postrider::daemon
