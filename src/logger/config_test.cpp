// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "postrider/error.hpp"
#include "postrider/logger_config.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TEST(LoggerConfigTest, TakesTheSeedsNames) {
  LoggerOptions options;
  set_logger_option(options, "eventlog.async.queue-capacity", "10");
  set_logger_option(options, "base-retry-delay-ms", "250");
  set_logger_option(options, "max-spillover-size-mb", "7");
  set_logger_option(options, "spillover-path", "./spill");
  set_logger_option(options, "virtual-threads", "true");
  set_logger_option(options, "fsync", "group");
  set_logger_option(options, "ring", "mapped");
  set_logger_option(options, "full-policy", "block");
  set_logger_option(options, "enabled", "false");
  set_logger_option(options, "retry-budget", "0.25");
  EXPECT_EQ(options.queue_capacity, 10U);
  EXPECT_EQ(options.base_retry_delay, 250ms);
  EXPECT_EQ(options.max_spillover_bytes, 7U << 20U);
  EXPECT_EQ(options.spillover_path, "./spill");
  EXPECT_EQ(options.fsync, FsyncMode::group);
  EXPECT_EQ(options.ring, RingMode::mapped);
  EXPECT_EQ(options.full_policy, FullPolicy::block);
  EXPECT_FALSE(options.enabled);
  EXPECT_EQ(options.retry_budget, 0.25);
}

TEST(LoggerConfigTest, RefusesWhatIsNone) {
  LoggerOptions options;
  const auto message = [&](const char* name, const char* value) -> std::string {
    try {
      set_logger_option(options, name, value);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "taken";
  };
  EXPECT_THAT(message("queue-capacty", "1"), HasSubstr("queue-capacty"));
  EXPECT_THAT(message("queue-capacity", "many"), HasSubstr("'many'"));
  EXPECT_THAT(message("queue-capacity", "-1"), HasSubstr("it must be a whole number from 1 to 10000000"));
  EXPECT_THAT(message("queue-capacity", "1.5"), HasSubstr("it must be a whole number from 1 to 10000000"));
  EXPECT_THAT(message("max-batch-wait-ms", "-1"), HasSubstr("it must be a whole number from 0 to 3600000"));
  EXPECT_THAT(message("base-retry-delay-ms", "0"), HasSubstr("it must be a whole number from 1 to 86400000"));
  EXPECT_THAT(message("max-spillover-size-mb", "0"), HasSubstr("from 1 to 1073741824"));
  EXPECT_THAT(message("retry-budget", "-5"), HasSubstr("it must be a number from 0 to 10"));
  EXPECT_THAT(message("retry-budget", "nan"), HasSubstr("it must be a number from 0 to 10"));
  EXPECT_THAT(message("ring", "disk"), HasSubstr("memory mapped"));
}

TEST(LoggerConfigTest, TheEnvironmentIsApplied) {
  LoggerOptions options;
  const std::array<const char*, 4> good{"PATH=/bin", "EVENTLOG_ASYNC_BATCH_SIZE=7",
                                        "EVENTLOG_ASYNC_RING=mapped", nullptr};
  apply_environment(options, good.data());
  EXPECT_EQ(options.batch_size, 7U);
  EXPECT_EQ(options.ring, RingMode::mapped);
  const std::array<const char*, 2> misspelt{"EVENTLOG_ASYNC_BATCHSIZE=7", nullptr};
  const auto message = [&](const auto& variables) -> std::string {
    try {
      apply_environment(options, variables.data());
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_THAT(message(misspelt), HasSubstr("the environment variable EVENTLOG_ASYNC_BATCHSIZE is refused"));
  const std::array<const char*, 2> wrong{"EVENTLOG_ASYNC_BATCH_SIZE=1.5", nullptr};
  EXPECT_THAT(message(wrong),
              HasSubstr("EVENTLOG_ASYNC_BATCH_SIZE is refused: eventlog.async.batch-size cannot "
                        "be '1.5': it must be a whole number from 1 to 10000"));
}

}  // namespace
}  // namespace postrider
