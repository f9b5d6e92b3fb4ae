// SPDX-License-Identifier: Apache-2.0
#include "postrider/logger_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>

#include "postrider/error.hpp"
#include "support/temp_dir.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

struct LoggerFile : ::testing::Test {
  test::TempDir temp;
  const std::string path = temp.file("shop.toml");

  EventLogConfig read(const std::string& text, std::vector<const char*> environment = {}) {
    std::ofstream(path) << text;
    environment.push_back(nullptr);
    return read_event_log_config(path, environment.data());
  }
  std::string refusal(const std::string& text) {
    try {
      (void)read(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "taken";
  }
};

/// Every line of the seed's §7, in TOML.
constexpr const char* seeds = R"(
[eventlog]
enabled = true
base-url = "https://your-eventlog-api.example.com"

[eventlog.async]
enabled = true
queue-capacity = 10001
max-retries = 4
base-retry-delay-ms = 1001
max-retry-delay-ms = 30001
circuit-breaker-threshold = 6
circuit-breaker-reset-ms = 30002
spillover-path = "./spillover"
replay-interval-ms = 10003
max-spillover-events = 10004
max-spillover-size-mb = 51
virtual-threads = false
batch-size = 52
sender-threads = 2
max-batch-wait-ms = 101
)";

TEST_F(LoggerFile, TakesTheSeedsTablesAsTheyAre) {
  const EventLogConfig config = read(seeds);
  EXPECT_EQ(config.client.base_url, "https://your-eventlog-api.example.com");
  const LoggerOptions& options = config.logger;
  EXPECT_TRUE(options.enabled);
  EXPECT_EQ(options.queue_capacity, 10'001U);
  EXPECT_EQ(options.max_retries, 4);
  EXPECT_EQ(options.base_retry_delay, 1001ms);
  EXPECT_EQ(options.max_retry_delay, 30'001ms);
  EXPECT_EQ(options.circuit_breaker_threshold, 6);
  EXPECT_EQ(options.circuit_breaker_reset, 30'002ms);
  EXPECT_EQ(options.spillover_path, "./spillover");
  EXPECT_EQ(options.replay_interval, 10'003ms);
  EXPECT_EQ(options.max_spillover_events, 10'004U);
  EXPECT_EQ(options.max_spillover_bytes, 51U << 20U);
  EXPECT_EQ(options.batch_size, 52U);
  EXPECT_EQ(options.sender_threads, 2U);
  EXPECT_EQ(options.max_batch_wait, 101ms);
}

TEST_F(LoggerFile, TakesWhatTheSeedDoesNotHave) {
  const EventLogConfig config = read(R"(
title = "an application's own file"
[eventlog]
bearer-token = "secret"
ca-file = "/etc/ca.pem"
connect-timeout-ms = 5
request-timeout-ms = 6
gzip = true
oauth-token-url = "https://id.example.com/token"
oauth-client-id = "me"
oauth-client-secret = "s"
oauth-scope = "a b"
[eventlog.async]
fsync = "group"
fsync-interval-ms = 7
ring = "mapped"
ring-bytes = 65536
full-policy = "drop-oldest"
block-timeout-ms = 8
retry-budget = 1
replay-batch-size = 9
replay-rate = 10
shutdown-timeout-ms = 11
handle-signals = true
application-id = "shop"
originating-system = "SHOP"
user-id = "7"
[storage]
anything = 1
)");
  EXPECT_EQ(config.client.bearer_token, "secret");
  EXPECT_EQ(config.client.ca_file, "/etc/ca.pem");
  EXPECT_EQ(config.client.connect_timeout, 5ms);
  EXPECT_EQ(config.client.request_timeout, 6ms);
  EXPECT_TRUE(config.client.gzip);
  EXPECT_EQ(config.client.oauth.token_url, "https://id.example.com/token");
  EXPECT_EQ(config.client.oauth.client_id, "me");
  EXPECT_EQ(config.client.oauth.client_secret, "s");
  EXPECT_EQ(config.client.oauth.scope, "a b");
  EXPECT_EQ(config.logger.fsync, FsyncMode::group);
  EXPECT_EQ(config.logger.fsync_interval, 7ms);
  EXPECT_EQ(config.logger.ring, RingMode::mapped);
  EXPECT_EQ(config.logger.ring_bytes, 65'536U);
  EXPECT_EQ(config.logger.full_policy, FullPolicy::drop_oldest);
  EXPECT_EQ(config.logger.block_timeout, 8ms);
  EXPECT_EQ(config.logger.retry_budget, 1.0);
  EXPECT_EQ(config.logger.replay_batch_size, 9U);
  EXPECT_EQ(config.logger.replay_rate, 10U);
  EXPECT_EQ(config.logger.shutdown_timeout, 11ms);
  EXPECT_TRUE(config.logger.handle_signals);
  EXPECT_EQ(config.logger.application_id, "shop");
  EXPECT_EQ(config.logger.originating_system, "SHOP");
  EXPECT_EQ(config.logger.user_id, "7");
}

TEST_F(LoggerFile, TheEnvironmentCountsMore) {
  const std::string text =
      "[eventlog]\nbase-url = \"http://a\"\n[eventlog.async]\nbatch-size = 5\nqueue-capacity = 6\n";
  const EventLogConfig config = read(text, {"EVENTLOG_ASYNC_BATCH_SIZE=7", "EVENTLOG_BASE_URL=http://b",
                                            "EVENTLOG_BEARER_TOKEN=t", "EVENTLOG_OF_SOMEBODY_ELSE=1"});
  EXPECT_EQ(config.logger.batch_size, 7U);
  EXPECT_EQ(config.logger.queue_capacity, 6U);
  EXPECT_EQ(config.client.base_url, "http://b");
  EXPECT_EQ(config.client.bearer_token, "t");
}

TEST_F(LoggerFile, EitherSwitchTurnsItOff) {
  EXPECT_FALSE(read("[eventlog]\nenabled = false\n").logger.enabled);
  EXPECT_FALSE(read("[eventlog]\nenabled = true\n[eventlog.async]\nenabled = false\n").logger.enabled);
  EXPECT_FALSE(read("", {"EVENTLOG_ENABLED=false"}).logger.enabled);
  EXPECT_TRUE(read("[eventlog]\nenabled = false\n", {"EVENTLOG_ENABLED=true"}).logger.enabled);
}

TEST_F(LoggerFile, WhoIsSwitchedOffNeedsNoAddress) {
  EXPECT_FALSE(read("[eventlog]\nenabled = false\n").client.enabled);
  EXPECT_TRUE(read("[eventlog]\nenabled = false\nbase-url = \"http://a\"\n").client.enabled);
  EXPECT_TRUE(read("").client.enabled) << "the client says that the address is missing";
}

TEST_F(LoggerFile, WhatIsWrongIsRefusedWithItsLine) {
  EXPECT_THAT(refusal("[eventlog.async]\n\nqueue-capacty = 1\n"),
              AllOf(HasSubstr(path + ", line 3: there is no option 'queue-capacty' in [eventlog.async]"),
                    EndsWith("did you mean queue-capacity?")));
  EXPECT_THAT(refusal("[eventlog]\nbase_url = \"x\"\n"),
              AllOf(HasSubstr("line 2"), EndsWith("did you mean base-url?")));
  EXPECT_THAT(refusal("[eventlog.asynch]\nbatch-size = 1\n"),
              AllOf(HasSubstr("line 1: there is no table 'eventlog.asynch'"),
                    EndsWith("did you mean eventlog.async?")));
  EXPECT_THAT(refusal("[eventlog.async]\nbatch-size = 1\nring = \"disk\"\n"),
              HasSubstr("line 3: eventlog.async.ring cannot be 'disk': it must be one of memory mapped"));
  EXPECT_THAT(
      refusal("[eventlog.async]\nbatch-size = -1\n"),
      HasSubstr(
          "line 2: eventlog.async.batch-size cannot be '-1': it must be a whole number from 1 to 10000"));
  EXPECT_THAT(refusal("[eventlog.async]\nbatch-size = 1.5\n"), HasSubstr("line 2"));
  EXPECT_THAT(refusal("[eventlog.async]\nspillover-path = false\n"),
              HasSubstr("line 2: eventlog.async.spillover-path cannot be false: it must be a text"));
  EXPECT_THAT(refusal("[eventlog.async]\nbatch-size = [1, 2]\n"),
              HasSubstr("the option 'batch-size' in [eventlog.async] is no list"));
  EXPECT_THAT(refusal("title = \"x\"\neventlog = 3\n"),
              AllOf(HasSubstr("line 2: eventlog cannot be 3: it must be a table"), HasSubstr("[eventlog]")));
  EXPECT_THAT(refusal("eventlog = [3]\n"), HasSubstr("line 1: eventlog[0] cannot be 3"));
  EXPECT_THAT(refusal("[[eventlog]]\nenabled = true\n"),
              HasSubstr("line 1: [[eventlog]] is refused. Hint: write it as [eventlog]"));
  EXPECT_THAT(refusal("[eventlog.async]\nbatch-size 1\n"), HasSubstr("line 2: column "));
}

}  // namespace
}  // namespace postrider
