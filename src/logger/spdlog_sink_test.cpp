// SPDX-License-Identifier: Apache-2.0
#include "postrider/spdlog_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>

#include "logger/logger_fixture.hpp"

namespace postrider::logger {
namespace {

struct SpdlogSinkTest : ::testing::Test {
  std::shared_ptr<FakeClient> client = std::make_shared<FakeClient>();
  std::vector<std::string> texts;
  std::shared_ptr<AsyncEventLogger> events =
      std::make_shared<AsyncEventLogger>(client, LoggerOptions{.max_batch_wait = 1ms});
  spdlog::logger log{"shop", std::make_shared<SpdlogSink>(events, "Shop")};

  SpdlogSinkTest() {
    client->answer([this](std::span<const OutgoingEvent> sent) {
      for (const auto& event : sent) texts.emplace_back(event.members);
      return SendResult{};
    });
  }
};

TEST_F(SpdlogSinkTest, MessagesBecomeEvents) {
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

TEST_F(SpdlogSinkTest, ALongMessageIsShortenedAndNotLostWhole) {
  std::string umlauts = "x";  // so that a cut in the middle of bytes would halve one
  for (int i = 0; i < 40'000; ++i) umlauts += "ü";
  log.info(umlauts);
  log.info(std::string(65'537, 'y'));
  log.info(std::string(65'536, 'z'));
  log.info(std::string(60'000, '\xff'));
  log.flush();
  ASSERT_TRUE(events->flush());
  EXPECT_EQ(events->stats().all_lost(), 0U);
  ASSERT_EQ(texts.size(), 4U);
  EXPECT_THAT(texts[0], ::testing::HasSubstr("üü… (shortened from 80001 bytes)\""));
  EXPECT_THAT(texts[1], ::testing::HasSubstr("yy… (shortened from 65537 bytes)\""));
  EXPECT_THAT(texts[2], ::testing::HasSubstr("zz\""));
  EXPECT_THAT(texts[3], ::testing::HasSubstr("\uFFFD… (shortened from 60000 bytes)\""));
}

}  // namespace
}  // namespace postrider::logger
