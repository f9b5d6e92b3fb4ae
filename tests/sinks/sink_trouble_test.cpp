// SPDX-License-Identifier: Apache-2.0
// The receiver is down, dies or stands still: nothing is lost, order is kept, and it goes on within seconds.
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "postrider/event_store.hpp"
#include "postrider/open.hpp"
#include "postrider/outbox.hpp"
#include "postrider/relay.hpp"
#include "sinks/sink_fixture.hpp"
#include "support/temp_dir.hpp"

namespace postrider::test {
namespace {

using Clock = std::chrono::steady_clock;

/// Whether a thread of this process waits for something.
bool asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  return name_end != std::string::npos && line.compare(name_end, 3, ") S") == 0;
}

class SinkTrouble : public SinkConformance {
 protected:
  void SetUp() override {
    SinkConformance::SetUp();
    if (!receiver_->is_server()) GTEST_SKIP() << "nothing here to kill";
  }
};

TEST_F(SinkTrouble, DownAtStart) {
  receiver_->kill();
  const auto sink = receiver_->sink({.timeout = 1s});
  const std::vector<Event> events = numbered(10, 1);
  const auto begin = Clock::now();
  const PublishResult result = sink->send(messages(events));
  EXPECT_EQ(result.kind(), PublishResult::Kind::unavailable);
  EXPECT_EQ(result.count(10), 0U);
  EXPECT_FALSE(result.reason().empty());
  EXPECT_THAT(sink->trouble(), ::testing::AllOf(result.reason(), ::testing::HasSubstr("127.0.0.1:")))
      << "an operator must see where";
  EXPECT_LT(Clock::now() - begin, 5s);
  receiver_->start();
  const auto back = Clock::now();
  EXPECT_TRUE(send_all(*sink, messages(events)));
  EXPECT_LT(Clock::now() - back, 10s);
  EXPECT_EQ(sink->trouble(), "");
  expect_complete_and_in_order(10, 1);
}

TEST_F(SinkTrouble, KilledUnderLoad) {
  const auto sink = receiver_->sink({.timeout = 2s});
  std::atomic<bool> done = false;
  const std::vector<Event> events = numbered(6'000, 5);
  std::atomic<std::size_t> sent = 0;
  std::jthread sender([&] {
    const std::vector<SinkMessage> all = messages(events);
    for (std::size_t at = 0; at < all.size(); at += 50) {
      EXPECT_TRUE(send_all(*sink, std::span(all).subspan(at, 50), 50, 120s));
      sent = at + 50;
    }
    done = true;
  });
  for (std::size_t kills = 1; kills <= 3 && !done; ++kills) {
    ASSERT_TRUE(eventually([&] { return sent >= kills * 1'000; }, 120s));
    receiver_->kill();
    receiver_->start();
  }
  sender.join();
  ASSERT_TRUE(done);
  expect_complete_and_in_order(6'000, 5);
}

TEST_F(SinkTrouble, Frozen) {
  const auto sink = receiver_->sink({.timeout = 1s});
  const std::vector<Event> events = numbered(300, 3);
  const std::vector<SinkMessage> all = messages(events);
  ASSERT_TRUE(send_all(*sink, std::span(all).first(100)));
  receiver_->freeze();
  const auto begin = Clock::now();
  const PublishResult result = sink->send(std::span(all).subspan(100, 100));
  EXPECT_EQ(result.kind(), PublishResult::Kind::unavailable);
  EXPECT_LT(Clock::now() - begin, 4s) << "the timeout holds";
  receiver_->thaw();
  const auto back = Clock::now();
  EXPECT_TRUE(send_all(*sink, std::span(all).subspan(100 + result.count(100))));
  EXPECT_LT(Clock::now() - back, 10s);
  expect_complete_and_in_order(300, 3);
}

TEST_F(SinkTrouble, FrozenUnderLoad) {
  const auto sink = receiver_->sink({.timeout = 500ms, .limits = {.breaker_threshold = 0}});
  const std::vector<Event> events = numbered(6'000, 5);
  std::atomic<std::size_t> sent = 0;
  std::atomic<int> failures = 0;
  std::jthread sender([&](const std::stop_token& stop) {
    const std::vector<SinkMessage> all = messages(events);
    while (sent < all.size() && !stop.stop_requested()) {
      const std::size_t some = std::min<std::size_t>(200, all.size() - sent);
      const PublishResult result = sink->send(std::span(all).subspan(sent, some));
      EXPECT_NE(result.kind(), PublishResult::Kind::refused) << result.reason();
      sent += result.count(some);
      if (result.kind() == PublishResult::Kind::unavailable) ++failures;
    }
  });
  for (std::size_t freezes = 1; freezes <= 3; ++freezes) {
    ASSERT_TRUE(eventually([&] { return sent >= freezes * 1'000; }, 120s));
    const int before = failures;
    receiver_->freeze();
    // The batch that was on its way, and its retry: both may still be there when it wakes.
    ASSERT_TRUE(eventually([&] { return failures >= before + 2 || sent == events.size(); }));
    receiver_->thaw();
  }
  EXPECT_TRUE(eventually([&] { return sent == events.size(); }, 120s));
  sender.request_stop();
  sender.join();
  EXPECT_GE(failures, 2);
  expect_complete_and_in_order(6'000, 5);
}

TEST_F(SinkTrouble, CloseEndsASendThatWaits) {
  const auto sink = receiver_->sink({.timeout = 30s});
  const std::vector<Event> events = numbered(10, 1);
  ASSERT_TRUE(send_all(*sink, messages(events)));
  receiver_->freeze();
  std::atomic<pid_t> thread = 0;
  std::jthread sender([&] {
    const std::vector<SinkMessage> all = messages(events);
    thread = ::gettid();
    EXPECT_EQ(sink->send(all).kind(), PublishResult::Kind::unavailable);
  });
  ASSERT_TRUE(eventually([&] { return thread != 0 && asleep(thread); })) << "in the call";
  const auto begin = Clock::now();
  sink->close();
  sender.join();
  EXPECT_LT(Clock::now() - begin, 5s);
  receiver_->thaw();
}

TEST_F(SinkTrouble, TheRelayGoesOnFromItsProgress) {
  const TempDir folder;
  const auto storage = open("sqlite:" + folder.file("store.db"));
  storage->migrate();
  EventStore store(*storage);
  constexpr int count = 3'000;
  for (int i = 0; i < count; i += 500) {
    std::vector<AppendEvent> some;
    for (int n = i; n < i + 500; ++n) {
      some.push_back(
          AppendEvent::builder("Counted")
              .tag("key", "k" + std::to_string(n % 3))
              .data("{\"key\":\"k" + std::to_string(n % 3) + "\",\"n\":" + std::to_string(n / 3) + "}")
              .build());
    }
    store.append(some);
  }
  const auto sink = receiver_->sink({.timeout = 2s});
  RelayOptions options;
  options.log = [](LogLevel, std::string_view) {};
  Relay relay(*storage, options);
  relay.add({.name = "all"}, sink_publisher(sink, {.name = "broker", .key_tag = "key"}),
            {.polling_interval = 50ms, .batch_size = 200});
  relay.start();
  ASSERT_TRUE(eventually([&] { return receiver_->received().size() >= 400; }));
  receiver_->kill();
  receiver_->start();
  const auto position = [&] { return relay.admin().find("all", "broker")->position; };
  EXPECT_TRUE(eventually([&] { return position() == Position{count}; }, 60s));
  relay.stop();
  expect_complete_and_in_order(count, 3);
  EXPECT_EQ(relay.admin().find("all", "broker")->state, PairState::active)
      << "its absence was no failure of events";
}

TEST_F(SinkTrouble, TheOutboxTriesAgainWithoutCounting) {
  const TempDir folder;
  const auto storage = open("sqlite:" + folder.file("outbox.db"));
  storage->migrate();
  const auto sink = receiver_->sink({.timeout = 1s});
  OutboxOptions options;
  options.log = [](LogLevel, std::string_view) {};
  options.retry_max_attempts = 1;  // what counts is dead at once
  Outbox outbox(*storage, options);
  outbox.on_all(sink_listener(sink, 100ms));
  receiver_->kill();
  outbox.start();
  const std::vector<Event> events = numbered(200, 4);
  {
    Transaction tx = storage->begin();
    for (const Event& event : events) outbox.publish(tx, event);
    tx.commit();
  }
  receiver_->start();
  expect_complete_and_in_order(200, 4);
  outbox.stop();
}

}  // namespace
}  // namespace postrider::test
