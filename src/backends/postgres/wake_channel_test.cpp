// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/wake_channel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "postrider/detail/sync.hpp"
#include "postrider/postgres.hpp"
#include "support/postgres.hpp"
#include "support/wakes.hpp"

namespace postrider::postgres {
namespace {

using namespace std::chrono_literals;
using test::error_of;
using test::PostgresTest;
using test::Wakes;

class WakeChannelTest : public PostgresTest {
 protected:
  [[nodiscard]] std::string channel() const {
    return wake_channel_name(database_->options().schema.str(), "queue");
  }
  /// The server processes that have run LISTEN on this test's channel.
  [[nodiscard]] std::string listening() const {
    return "FROM pg_stat_activity WHERE query = 'LISTEN " + channel() + "'";
  }
  [[nodiscard]] std::unique_ptr<WakeChannel::Subscription> subscribe(Storage& to, Wakes& wakes) {
    return to.wake_channel()->listen("queue", [&wakes] { wakes(); });
  }
};

TEST_F(WakeChannelTest, ASignalReachesAnotherNodeAndThisOne) {
  auto other = database_->open_another();
  Wakes here;
  Wakes there;
  const auto first = subscribe(storage(), here);
  const auto second = subscribe(*other, there);
  ASSERT_TRUE(here.more_than(0)) << "once connected, because something may have been missed";
  ASSERT_TRUE(there.more_than(0));
  for (int i = 0; i < 3; ++i) {
    const int before_here = here.count();
    const int before_there = there.count();
    storage().wake_channel()->notify("queue");
    EXPECT_TRUE(here.more_than(before_here));
    EXPECT_TRUE(there.more_than(before_there));
  }
}

TEST_F(WakeChannelTest, OtherTopicsAndSchemasAreNotHeard) {
  Wakes wakes;
  const auto subscription = subscribe(storage(), wakes);
  ASSERT_TRUE(wakes.more_than(0));
  StorageOptions elsewhere = database_->options();
  elsewhere.schema = "somewhere_else";
  auto other = database_->open_another(elsewhere);
  other->wake_channel()->notify("queue");
  storage().wake_channel()->notify("other");
  // Signals of one server come in order: when this one is there the others would be.
  storage().wake_channel()->notify("queue");
  ASSERT_TRUE(wakes.more_than(1));
  EXPECT_EQ(wakes.count(), 2);
}

TEST_F(WakeChannelTest, ATerminatedConnectionIsMadeAnewAndWakes) {
  Wakes wakes;
  std::vector<std::string> lines;
  Mutex mutex;
  StorageOptions options = database_->options();
  options.log = [&](LogLevel, std::string_view line) {
    const MutexLock lock(mutex);
    lines.emplace_back(line);
  };
  auto node = database_->open_another(options);
  {
    const auto subscription = subscribe(*node, wakes);
    ASSERT_TRUE(wakes.more_than(0));
    ASSERT_EQ(query("SELECT count(pg_terminate_backend(pid, 30000)) " + listening()).integer(0, 0), 1);
    ASSERT_TRUE(wakes.more_than(1)) << "something may have been missed meanwhile";
    storage().wake_channel()->notify("queue");
    EXPECT_TRUE(wakes.more_than(2));
  }
  const MutexLock lock(mutex);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) { return line.find("hear of") != line.npos; }),
            1);
}

TEST_F(WakeChannelTest, DestructionIsPromptAndLeavesNoConnection) {
  Wakes wakes;
  auto subscription = subscribe(storage(), wakes);
  ASSERT_TRUE(wakes.more_than(0));
  const SteadyPoint began = std::chrono::steady_clock::now();
  subscription.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s) << "it would wait for 30 s otherwise";
  const int before = wakes.count();
  storage().wake_channel()->notify("queue");
  EXPECT_EQ(wakes.count(), before);
  // The server takes a moment to notice.
  const SteadyPoint deadline = std::chrono::steady_clock::now() + 30s;
  std::int64_t left = 1;
  while (left > 0 && std::chrono::steady_clock::now() < deadline) {
    left = query("SELECT count(*) " + listening()).integer(0, 0);
  }
  EXPECT_EQ(left, 0);
}

TEST_F(WakeChannelTest, DestructionIsPromptWhileThereIsNoServer) {
  StorageOptions options = database_->options();
  options.log = {};
  auto nowhere = driver().open("postgresql://nobody@127.0.0.1:1/none", options);
  Wakes wakes;
  auto subscription = subscribe(*nowhere, wakes);
  const SteadyPoint began = std::chrono::steady_clock::now();
  subscription.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  EXPECT_EQ(wakes.count(), 0);
}

TEST_F(WakeChannelTest, BehindATransactionPoolerItSaysSoOnceAndRests) {
  std::vector<std::string> lines;
  ConnectionContext context{.url = url(), .name = "pooled", .log = [&](LogLevel, std::string_view line) {
                              lines.emplace_back(line);
                            }};
  context.unnamed_statements = true;  // as when the pool has noticed the pooler
  Wakes wakes;
  {
    PostgresWakeChannel channel(database_->options().schema, context, {});
    const auto subscription = channel.listen("queue", [&wakes] { wakes(); });
    ASSERT_TRUE(wakes.more_than(0));
  }
  EXPECT_EQ(wakes.count(), 1);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("LISTEN useless"), std::string::npos) << lines[0];
}

TEST_F(WakeChannelTest, WhatIsWokenMayThrow) {
  Wakes wakes;
  StorageOptions options = database_->options();
  options.log = {};
  auto node = database_->open_another(options);
  const auto subscription = node->wake_channel()->listen("queue", [&wakes] {
    wakes();
    throw std::runtime_error("not now");
  });
  ASSERT_TRUE(wakes.more_than(0));
  storage().wake_channel()->notify("queue");
  EXPECT_TRUE(wakes.more_than(1));
}

TEST(WakeChannelName, FitsIntoWhatTheServerTakesAndKeepsSchemasApart) {
  EXPECT_EQ(wake_channel_name("postrider", "queue"), "postrider_queue");
  const std::string schema(62, 'a');
  const std::string a = wake_channel_name(schema + "x", "queue");
  const std::string b = wake_channel_name(schema + "y", "queue");
  EXPECT_EQ(a.size(), 63U);
  EXPECT_NE(a, b);
  EXPECT_TRUE(a.ends_with("_queue"));
  for (const char* bad : {"", "Queue", "a b", "a;b"}) {
    EXPECT_EQ(error_of([&] { (void)wake_channel_name("s", bad); }).code(), ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace postrider::postgres
