// SPDX-License-Identifier: Apache-2.0
// Nodes that run a projection are killed at every place between two durable steps, one after the other. In
// the end every entry is in the view once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "postrider/postrider.hpp"
#include "support/crash_test.hpp"
#include "support/places.hpp"

namespace postrider::test {
namespace {

using namespace std::chrono_literals;

class ProjectionCrash : public CrashTest {
 protected:
  ProjectionCrash() : CrashTest(test::crash_child("projection_child")) {}
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> tables() const override {
    return {{"view", "seq bigint not null"}};
  }
  void finish(EventQueue& queue, int count) {
    for (int i = 0; i < count; ++i) {
      ++published_;
      queue.publish(Event::json(published_ % 10 == 0 ? "Poison" : "T", std::to_string(published_)));
      ASSERT_EQ(queue.finalize(queue.poll().value().claim), Settled::applied);
    }
  }
  /// How a node ends that is to bring the view up to the end of the log.
  std::optional<ProcessEnd> project(const std::string& failpoint = {}) {
    return start({table("view"), std::to_string(published_)}, failpoint)->wait(90s);
  }

  int published_ = 0;
};

TEST_P(ProjectionCrash, EveryEntryIsInTheViewOnceWhereverANodeIsKilled) {
  EventQueue queue(*storage_, {.log = [](LogLevel, std::string_view) {}});
  int kills = 0;
  for (const std::string name :
       {"projection.read.after", "projection.handle.after", "projection.commit.before",
        "projection.commit.after", "projection.skip.before_commit", "<backend>.commit.before",
        "<backend>.commit.after"}) {
    for (const char* when : {"", "@2"}) {
      finish(queue, 20);
      const auto end = project(point(name) + "=kill" + when);
      ASSERT_TRUE(end.has_value()) << name << when;
      EXPECT_TRUE(end->killed()) << name << when << ": " << end->text();
      ++kills;
    }
  }
  const auto last = project();
  ASSERT_TRUE(last && last->ok());
  EXPECT_EQ(kills, 14);
  Transaction tx = storage_->begin();
  const Rows rows = tx.execute("select seq, count(*) from " + table("view") + " group by seq order by seq");
  tx.rollback();
  EXPECT_EQ(rows.size(), static_cast<std::size_t>(published_ - published_ / 10));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows.integer(i, 1), 1) << "entry " << rows.integer(i, 0);
    EXPECT_NE(rows.integer(i, 0) % 10, 0) << "poison";
  }
  EXPECT_EQ(ProjectionAdmin(*storage_).status("view").skipped, published_ / 10);
}

POSTRIDER_FOR_EACH_CRASH_BACKEND(ProjectionCrash);

}  // namespace
}  // namespace postrider::test
