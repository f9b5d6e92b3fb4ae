// SPDX-License-Identifier: Apache-2.0
#include "logger/receiver_news.hpp"

#include <gmock/gmock.h>

namespace postrider::logger {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct ReceiverNewsTest : ::testing::Test {
  ManualClock clock;
  std::vector<std::string> lines;
  ReceiverNews news{"they wait", [this](LogLevel, std::string_view text) { lines.emplace_back(text); },
                    clock};
  const SendResult slower{.verdict = SendVerdict::throttled, .status = 429, .reason = "HTTP 429: slower"};
};

TEST_F(ReceiverNewsTest, AReceiverThatAsksForPausesForEverDoesNotGoUntold) {
  for (int second = 0; second < 60; ++second) {
    news.heard(slower);
    clock.advance(1s);
  }
  EXPECT_THAT(lines, IsEmpty()) << "for a while, that is how it should be";
  for (int second = 0; second < 120; ++second) {
    news.heard(slower);
    clock.advance(1s);
  }
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("takes no events"),
                                       HasSubstr("for 60 s: HTTP 429: slower; they wait")),
                                 HasSubstr("for 120 s")));
  news.heard({});
  news.heard({});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines.back(), HasSubstr("takes events again, after 180 s"));
}

TEST_F(ReceiverNewsTest, APauseNowAndThenIsNoNews) {
  for (int minute = 0; minute < 10; ++minute) {
    news.heard(slower);
    clock.advance(59s);
    news.heard(slower);
    news.heard({});
    clock.advance(1s);
  }
  EXPECT_THAT(lines, IsEmpty());
}

TEST_F(ReceiverNewsTest, AFailureThatBecomesARequestForPausesIsNotOver) {
  news.heard({.verdict = SendVerdict::transient, .reason = "down"});
  clock.advance(30s);
  news.heard(slower);
  clock.advance(30s);
  news.heard(slower);
  news.heard({});
  EXPECT_THAT(lines, ElementsAre(HasSubstr("takes no events: down"), HasSubstr("asked for pauses"),
                                 HasSubstr("again, after 60 s")));
}

}  // namespace
}  // namespace postrider::logger
