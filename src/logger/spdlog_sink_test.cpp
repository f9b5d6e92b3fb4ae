// SPDX-License-Identifier: Apache-2.0
#include "postrider/spdlog_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>

#include "logger/logger_fixture.hpp"

namespace postrider::logger {
namespace {

TEST(SpdlogSinkTest, MessagesBecomeEvents) {
  const auto client = std::make_shared<FakeClient>();
  std::vector<std::string> texts;
  client->answer([&](std::span<const OutgoingEvent> events) {
    for (const auto& event : events) texts.emplace_back(event.members);
    return SendResult{};
  });
  const auto events = std::make_shared<AsyncEventLogger>(client, LoggerOptions{.max_batch_wait = 1ms});
  spdlog::logger log("shop", std::make_shared<SpdlogSink>(events, "Shop"));
  log.info("{} rooms", 3);
  log.error("no room\nleft");
  log.flush();
  ASSERT_TRUE(events->flush());
  ASSERT_EQ(texts.size(), 2U);
  EXPECT_THAT(texts[0],
              ::testing::HasSubstr(R"("processName":"Shop","processStatus":"IN_PROGRESS","step":"shop",)"
                                   R"("details":"3 rooms")"));
  EXPECT_THAT(texts[0], ::testing::HasSubstr(R"("level":"info")"));
  EXPECT_THAT(texts[1],
              ::testing::HasSubstr(R"("processStatus":"ERROR","step":"shop","details":"no room\nleft")"));
}

}  // namespace
}  // namespace postrider::logger
