// SPDX-License-Identifier: Apache-2.0
#include "outbox/options.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "postrider/error.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;

TEST(OutboxOptions, HasTheDocumentedDefaults) {
  const OutboxOptions options = checked({});
  EXPECT_EQ(options.workers, 4U);
  EXPECT_EQ(options.hot_queue_capacity, 1000U);
  EXPECT_EQ(options.cold_queue_capacity, 1000U);
  EXPECT_EQ(options.hot_queue_bytes, 64U << 20);
  EXPECT_EQ(options.cold_queue_bytes, 64U << 20);
  EXPECT_TRUE(options.poller_enabled);
  EXPECT_EQ(options.poller_interval, 5000ms);
  EXPECT_EQ(options.poller_batch_size, 200U);
  EXPECT_EQ(options.poller_skip_recent, 1000ms);
  EXPECT_EQ(options.retry_base_delay, 200ms);
  EXPECT_EQ(options.retry_max_delay, 60'000ms);
  EXPECT_EQ(options.retry_max_attempts, 10);
  EXPECT_EQ(options.retry_policy->delay(Attempt{1}, 0.5), 200ms);
  EXPECT_EQ(options.clock, &Clock::system());
  EXPECT_FALSE(options.node_name.empty());
  EXPECT_LE(options.node_name.size(), 64U);
  EXPECT_NE(options.node_name, checked({}).node_name);
}

struct Refused {
  const char* option;
  std::function<void(OutboxOptions&)> spoil;
};

class OutboxOptionsRefuse : public ::testing::TestWithParam<Refused> {};

TEST_P(OutboxOptionsRefuse, NamesTheOption) {
  OutboxOptions options;
  GetParam().spoil(options);
  try {
    static_cast<void>(checked(options));
    FAIL() << GetParam().option << " was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find(std::string("OutboxOptions::") + GetParam().option),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("it must be"), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Each, OutboxOptionsRefuse,
    ::testing::Values(
        Refused{"workers", [](OutboxOptions& o) { o.workers = 0; }},
        Refused{"workers", [](OutboxOptions& o) { o.workers = 1025; }},
        Refused{"hot_queue_capacity", [](OutboxOptions& o) { o.hot_queue_capacity = 0; }},
        Refused{"cold_queue_capacity", [](OutboxOptions& o) { o.cold_queue_capacity = 1'000'001; }},
        Refused{"hot_queue_bytes", [](OutboxOptions& o) { o.hot_queue_bytes = (1U << 20) - 1; }},
        Refused{"cold_queue_bytes", [](OutboxOptions& o) { o.cold_queue_bytes = 0; }},
        Refused{"poller_interval", [](OutboxOptions& o) { o.poller_interval = 0ms; }},
        Refused{"poller_batch_size", [](OutboxOptions& o) { o.poller_batch_size = 0; }},
        Refused{"poller_skip_recent", [](OutboxOptions& o) { o.poller_skip_recent = -1ms; }},
        Refused{"retry_base_delay", [](OutboxOptions& o) { o.retry_base_delay = 0ms; }},
        Refused{"retry_max_delay", [](OutboxOptions& o) { o.retry_max_delay = 1ms; }},
        Refused{"retry_max_attempts", [](OutboxOptions& o) { o.retry_max_attempts = 0; }},
        Refused{"lease", [](OutboxOptions& o) { o.lease = 99ms; }},
        Refused{"completer_batch_size", [](OutboxOptions& o) { o.completer_batch_size = 10'001; }},
        Refused{"completer_linger", [](OutboxOptions& o) { o.completer_linger = 2s; }},
        Refused{"drain_timeout", [](OutboxOptions& o) { o.drain_timeout = -1s; }},
        Refused{"node_name", [](OutboxOptions& o) { o.node_name = std::string(65, 'n'); }},
        Refused{"node_name", [](OutboxOptions& o) { o.node_name = "\xff"; }}),
    [](const auto& test) { return std::string(test.param.option) + "_" + std::to_string(test.index); });

}  // namespace
}  // namespace postrider
