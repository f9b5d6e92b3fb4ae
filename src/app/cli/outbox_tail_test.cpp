// SPDX-License-Identifier: Apache-2.0
#include "app/cli/outbox_tail.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "postrider/outbox.hpp"
#include "support/backend.hpp"

namespace postrider::cli {
namespace {

using ::testing::ElementsAre;

class OutboxTailTest : public test::BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    database_.emplace(backend());
    opened_ = {
        .url = database_->url(), .options = database_->options(), .storage = database_->open_another()};
  }
  void publish(const std::string& type) { publish(Event::json(type, "{}")); }
  void publish(const Event& event) {
    Transaction tx = database_->storage().begin();
    (void)Outbox(database_->storage()).publish(tx, event);
    tx.commit();
  }
  /// Remembers what is shown; the first time `then` is run.
  OutboxTail::Show shown(std::function<void()> then = {}) {
    return [this, then = std::move(then)](const OutboxRecord& record) {
      const bool first = shown_.empty();
      shown_.push_back(record.type);
      if (first && then) then();
      return true;
    };
  }

  std::optional<test::TestDatabase> database_;
  Database opened_;
  std::vector<std::string> shown_;
};

TEST_P(OutboxTailTest, WhatIsPublishedWhileTheFirstLinesAreShownIsShownNext) {
  for (const char* const type : {"A", "B", "C"}) publish(type);
  OutboxTail tail(opened_, {.lines = 2, .follow = true}, shown([&] {
                    publish("D");
                    publish("E");
                  }));
  EXPECT_THAT(shown_, ElementsAre("B", "C"));
  EXPECT_TRUE(tail.look());
  EXPECT_THAT(shown_, ElementsAre("B", "C", "D", "E"));
  EXPECT_FALSE(tail.look());
}

TEST_P(OutboxTailTest, FirstLinesReachBackBehindTheLastMinute) {
  // The time of this ULID is long ago.
  publish(Event::builder("Old").json("{}").id(EventId("01F0000000ABCDEFGHJKMNPQRS")).build());
  publish("A");
  OutboxTail tail(opened_, {.lines = 5, .follow = true}, shown());
  EXPECT_THAT(shown_, ElementsAre("Old", "A"));
  EXPECT_FALSE(tail.look());
  shown_.clear();
  const OutboxTail once(opened_, {.lines = 1}, shown());
  EXPECT_THAT(shown_, ElementsAre("A"));
}

TEST_P(OutboxTailTest, WithoutLinesOnlyWhatComesIsShown) {
  publish("A");
  OutboxTail tail(opened_, {.lines = 0, .follow = true}, shown());
  publish("B");
  EXPECT_TRUE(tail.look());
  EXPECT_THAT(shown_, ElementsAre("B"));
}

POSTRIDER_FOR_EACH_BACKEND(OutboxTailTest);

}  // namespace
}  // namespace postrider::cli
