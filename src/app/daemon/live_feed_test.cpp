// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/live_feed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "postrider/testing.hpp"

namespace postrider::daemon {
namespace {

using ::testing::HasSubstr;
using State = http::BodyStream::State;

class LiveFeedTest : public ::testing::Test {
 protected:
  std::shared_ptr<http::BodyStream> join() {
    return feed_.join([] { return true; });
  }
  int made_ = 0;
  ManualClock clock_;
  LiveFeed feed_{[this] { return R"({"n":)" + std::to_string(++made_) + "}"; }, clock_, 2};
};

TEST_F(LiveFeedTest, AListenerIsToldAtOnceAndThenEachTime) {
  const auto listener = join();
  ASSERT_NE(listener, nullptr);
  EXPECT_EQ(listener->take().first, "retry: 2000\nevent: overview\ndata: {\"n\":1}\n\n");
  feed_.tell();
  EXPECT_EQ(listener->take().first, "event: overview\ndata: {\"n\":2}\n\n");
}

TEST_F(LiveFeedTest, OneTextForAllAndNoneForNobody) {
  feed_.tell();
  EXPECT_EQ(made_, 0);
  const auto first = join();
  const auto second = join();
  feed_.tell();
  EXPECT_EQ(made_, 3);
  EXPECT_THAT(first->take().first, HasSubstr(R"({"n":3})"));
  EXPECT_THAT(second->take().first, HasSubstr(R"({"n":3})"));
}

TEST_F(LiveFeedTest, ListenersAreBoundedAndThoseWhoLeftMakeRoom) {
  const auto first = join();
  const auto second = join();
  EXPECT_EQ(join(), nullptr);
  first->abandon();
  EXPECT_EQ(feed_.listeners(), 1U);
  EXPECT_NE(join(), nullptr);
}

TEST_F(LiveFeedTest, WhoMayNotListenAnyMoreIsToldNothingMore) {
  bool may = true;
  const auto first = feed_.join([&] { return may; });
  const auto second = join();
  feed_.tell();
  EXPECT_EQ(first->take().second, State::open);
  (void)second->take();
  may = false;
  feed_.tell();
  const auto [text, state] = first->take();
  EXPECT_EQ(text, "");
  EXPECT_EQ(state, State::closed);
  EXPECT_THAT(second->take().first, HasSubstr("event: overview")) << "others go on";
  EXPECT_EQ(feed_.listeners(), 1U);
}

TEST_F(LiveFeedTest, StoppingSaysGoodbye) {
  const auto listener = join();
  feed_.stop();
  EXPECT_EQ(listener->take().second, State::closed);
  EXPECT_EQ(feed_.listeners(), 0U);
}

TEST_F(LiveFeedTest, TheClockTellsOnceASecond) {
  const auto listener = join();
  (void)listener->take();
  feed_.start();
  std::string text;
  // The task may not wait yet when the clock moves: move it until it has.
  while (text.empty()) {
    clock_.advance(std::chrono::seconds{1});
    text = listener->take().first;
  }
  EXPECT_THAT(text, HasSubstr("event: overview"));
  feed_.stop();
}

}  // namespace
}  // namespace postrider::daemon
