// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/figures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <latch>
#include <thread>

#include "postrider/clock.hpp"
#include "storage/progress_store.hpp"
#include "support/backend.hpp"

namespace postrider::daemon {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// A database that hangs when it is told to, as a frozen server does.
class HangingStorage final : public Storage {
 public:
  explicit HangingStorage(Storage& real) : real_(real) {}

  struct Hang {
    std::latch begun{1};
    std::latch over{1};
  };
  enum class In { ping, reading };
  /// The next one hangs until this is over.
  void hang(In in, Hang& hang) { (in == In::ping ? in_ping_ : in_reading_) = &hang; }

  void ping() override {
    hang_if_told(in_ping_);
    real_.ping();
  }
  Transaction begin() override { return real_.begin(); }
  MigrationReport migrate(const MigrateOptions& options) override { return real_.migrate(options); }
  BackendKind kind() const noexcept override { return real_.kind(); }
  const std::string& name() const noexcept override { return real_.name(); }
  PoolStats pool_stats() const override { return real_.pool_stats(); }
  OutboxStore& outbox_store() override { return real_.outbox_store(); }
  OutboxAdminStore& outbox_admin_store() override { return real_.outbox_admin_store(); }
  OutboxSearchStore& outbox_search_store() override { return real_.outbox_search_store(); }
  OutboxPendingStore& outbox_pending_store() override { return real_.outbox_pending_store(); }
  QueueStore& queue_store() override { return real_.queue_store(); }
  QueueAdminStore& queue_admin_store() override { return real_.queue_admin_store(); }
  LogStore& log_store() override { return real_.log_store(); }
  ProjectionStore& projection_store() override { return real_.projection_store(); }
  EntryStore& entry_store() override { return real_.entry_store(); }
  ProgressStore& progress_store() override { return real_.progress_store(); }
  LeaseStore& lease_store() override { return real_.lease_store(); }
  RelayAdminStore& relay_admin_store() override { return real_.relay_admin_store(); }
  StreamStore& stream_store() override {
    hang_if_told(in_reading_);
    return real_.stream_store();
  }
  AuditStore& audit_store() override { return real_.audit_store(); }

 private:
  static void hang_if_told(std::atomic<Hang*>& told) {
    Hang* const hang = told.exchange(nullptr);
    if (hang == nullptr) return;
    hang->begun.count_down();
    hang->over.wait();
  }

  Storage& real_;
  std::atomic<Hang*> in_ping_{nullptr};
  std::atomic<Hang*> in_reading_{nullptr};
};
using In = HangingStorage::In;

class FigureBoardTest : public ::testing::Test {
 protected:
  bool up() const {
    const std::shared_ptr<const Figures> figures = board_.latest();
    return figures != nullptr && figures->database_up;
  }
  std::string database_metric() {
    board_.record_database();
    const std::string text = metrics_.text();
    constexpr std::string_view name = "\npostrider_database_up ";
    const std::size_t at = text.find(name);
    return at == std::string::npos ? text : text.substr(at + name.size(), 1);
  }
  void move_file(const char* from, const char* to) const {
    const std::string file = database_.url().substr(std::string_view("sqlite:").size());
    ASSERT_EQ(std::rename((file + from).c_str(), (file + to).c_str()), 0) << file;
  }
  /// `then` runs when a turn has hung for so long.
  template <class Then>
  void while_it_hangs(In in, Duration time, Then then) {
    HangingStorage::Hang hang;
    storage_.hang(in, hang);
    std::thread looks([this] { board_.look_if_due(); });
    hang.begun.wait();
    clock_.advance(time);
    then();
    hang.over.count_down();
    looks.join();
  }

  ManualClock clock_;
  test::TestDatabase database_{"sqlite"};
  HangingStorage storage_{database_.storage()};
  metrics::PrometheusMetrics metrics_;
  FigureBoard board_{storage_, StorageOptions{}.schema, metrics_, clock_};
};

TEST_F(FigureBoardTest, NothingIsKnownBeforeTheFirstLook) {
  EXPECT_EQ(board_.latest(), nullptr);
  EXPECT_EQ(database_metric(), "0");
  board_.look();
  EXPECT_TRUE(up());
  EXPECT_EQ(database_metric(), "1");
}

TEST_F(FigureBoardTest, ADatabaseThatHangsIsNotTakenForUpByWhatItSaidBefore) {
  board_.look();
  for (const In in : {In::ping, In::reading}) {
    while_it_hangs(in, 4s, [&] {
      EXPECT_TRUE(up()) << "a moment is no outage";
      clock_.advance(1s);
      const std::shared_ptr<const Figures> figures = board_.latest();
      EXPECT_FALSE(figures->database_up);
      EXPECT_EQ(figures->trouble, "it has not answered for 5 s");
      EXPECT_EQ(database_metric(), "0");
    });
    EXPECT_TRUE(up());
    EXPECT_EQ(database_metric(), "1");
  }
}

TEST_F(FigureBoardTest, WritesThatGoOnFailingAreSeen) {
  board_.look();
  metrics_.increment_flush_failures();
  board_.look();
  EXPECT_FALSE(board_.latest()->refuses_writes) << "it may have been away for a moment";
  for (const auto& fail :
       {&MetricsExporter::increment_poll_failures, &MetricsExporter::increment_flush_failures}) {
    (metrics_.*fail)();
    board_.look();
    EXPECT_TRUE(board_.latest()->refuses_writes);
  }
  board_.look();
  EXPECT_FALSE(board_.latest()->refuses_writes) << "it is over";
}

TEST_F(FigureBoardTest, OfPairsThatAreGoneTheMetricsSayNothing) {
  ProgressStore& progress = database_.storage().progress_store();
  progress.add(std::vector<NewPair>{{{"wallets", "kafka"}, Position{0}}, {{"old", "kafka"}, Position{0}}});
  board_.look();
  EXPECT_THAT(metrics_.text(), HasSubstr(R"(postrider_relay_pair_active{publisher="kafka",topic="old"} 1)"));
  Transaction tx = database_.storage().begin();
  tx.execute("delete from " + database_.table("outbox_topic_progress") + " where topic = 'old'");
  tx.commit();
  board_.look();
  EXPECT_THAT(metrics_.text(), ::testing::Not(HasSubstr(R"(topic="old")")));
  EXPECT_THAT(metrics_.text(),
              HasSubstr(R"(postrider_relay_pair_active{publisher="kafka",topic="wallets"} 1)"));
}

TEST_F(FigureBoardTest, AFirstLookThatHangsIsSeenToo) {
  while_it_hangs(In::ping, 5s, [&] {
    ASSERT_NE(board_.latest(), nullptr);
    EXPECT_FALSE(up());
  });
}

TEST_F(FigureBoardTest, WhatAlwaysTakesLongIsNoSilence) {
  while_it_hangs(In::reading, 8s, [] {});
  clock_.advance(1min);
  while_it_hangs(In::reading, 15s, [&] {
    EXPECT_TRUE(up());
    clock_.advance(1s);
    EXPECT_FALSE(up()) << "but twice as long is";
  });
}

TEST_F(FigureBoardTest, AFileThatWasRemovedIsNotTakenForUpBecauseItCanStillBeRead) {
  board_.look();
  move_file("", ".aside");
  board_.look();
  ASSERT_FALSE(up());
  EXPECT_THAT(board_.latest()->trouble, HasSubstr("removed or replaced"));
  EXPECT_EQ(database_metric(), "0");
  move_file(".aside", "");
  board_.look();
  EXPECT_TRUE(up());
}

TEST_F(FigureBoardTest, BetweenRareLooksItIsStillAskedWhetherItAnswers) {
  while_it_hangs(In::reading, 8s, [] {});  // after this long there is no look for a minute
  EXPECT_TRUE(up());
  move_file("", ".aside");
  board_.look_if_due();
  EXPECT_FALSE(up());
  move_file(".aside", "");
  board_.look_if_due();
  EXPECT_TRUE(up()) << "who is back is looked at at once";
}

}  // namespace
}  // namespace postrider::daemon
