// SPDX-License-Identifier: Apache-2.0
// Nodes that run a projection are killed at every place between two durable steps, one after the other. In
// the end every entry is in the view once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "postrider/postrider.hpp"
#include "support/child_process.hpp"
#include "support/crash_run.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;

const std::string program = std::string(CRASH_CHILD_DIR) + "/projection_child";

class ProjectionCrash : public ::testing::TestWithParam<BackendKind> {
 protected:
  void SetUp() override {
    if (!CrashDatabase::available(GetParam())) GTEST_SKIP() << "no server. Hint: scripts/with-servers";
    database_.emplace(GetParam());
    storage_ = database_->open();
    storage_->migrate();
    view_ = database_->schema() + (GetParam() == BackendKind::postgres ? "." : "_") + "view";
    define("create table " + view_ + " (seq bigint not null)");
  }
  void TearDown() override {
    if (!database_) return;
    if (HasFailure()) {
      database_->keep();
    } else {
      define("drop table " + view_);
    }
  }
  void define(const std::string& sql) {
    Transaction tx = storage_->begin();
    tx.execute(sql);
    tx.commit();
  }
  void finish(EventQueue& queue, int count) {
    for (int i = 0; i < count; ++i) {
      ++published_;
      queue.publish(Event::json(published_ % 10 == 0 ? "Poison" : "T", std::to_string(published_)));
      ASSERT_EQ(queue.finalize(queue.poll().value().claim), Settled::applied);
    }
  }
  /// How a node ends that is to bring the view up to the end of the log.
  std::optional<ProcessEnd> run(const std::string& failpoint = {}) {
    ChildProcess::Environment environment;
    if (!failpoint.empty()) environment.emplace_back("POSTRIDER_FAILPOINT", failpoint);
    ChildProcess child({program, database_->url(), database_->schema(), view_, std::to_string(published_)},
                       environment);
    return child.wait(90s);
  }

  std::optional<CrashDatabase> database_;
  std::unique_ptr<Storage> storage_;
  std::string view_;
  int published_ = 0;
};

TEST_P(ProjectionCrash, EveryEntryIsInTheViewOnceWhereverANodeIsKilled) {
  EventQueue queue(*storage_, {.log = [](LogLevel, std::string_view) {}});
  int kills = 0;
  for (const std::string point :
       {"projection.read.after", "projection.handle.after", "projection.commit.before",
        "projection.commit.after", "projection.skip.before_commit", "<backend>.commit.before",
        "<backend>.commit.after"}) {
    std::string name = point;
    if (name.starts_with('<')) name.replace(0, name.find('>') + 1, to_string(GetParam()));
    for (const char* when : {"", "@2"}) {
      finish(queue, 20);
      const auto end = run(name + "=kill" + when);
      ASSERT_TRUE(end.has_value()) << point << when;
      EXPECT_TRUE(end->killed()) << point << when << ": " << end->text();
      ++kills;
    }
  }
  const auto last = run();
  ASSERT_TRUE(last && last->ok());
  EXPECT_EQ(kills, 14);
  Transaction tx = storage_->begin();
  const Rows rows = tx.execute("select seq, count(*) from " + view_ + " group by seq order by seq");
  tx.rollback();
  EXPECT_EQ(rows.size(), static_cast<std::size_t>(published_ - published_ / 10));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows.integer(i, 1), 1) << "entry " << rows.integer(i, 0);
    EXPECT_NE(rows.integer(i, 0) % 10, 0) << "poison";
  }
  EXPECT_EQ(ProjectionAdmin(*storage_).status("view").skipped, published_ / 10);
}

INSTANTIATE_TEST_SUITE_P(Backends, ProjectionCrash, ::testing::ValuesIn(crash_backends()),
                         [](const auto& chosen) { return std::string(to_string(chosen.param)); });

}  // namespace
}  // namespace postrider::test
