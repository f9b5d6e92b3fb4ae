// SPDX-License-Identifier: Apache-2.0
#include "storage/wake_hub.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <vector>

#include "storage/wake_channel.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;

/// Counts messages; each waits until the test lets it go.
class CountingChannel final : public WakeChannel {
 public:
  void notify(std::string_view) override {
    const MutexLock lock(mutex_);
    ++messages_;
    changed_.notify_all();
    while (held_) changed_.wait(mutex_);
    if (failing_) throw std::runtime_error("server gone");
  }
  std::unique_ptr<Subscription> listen(std::string_view, std::function<void()>) override { return nullptr; }

  void hold(bool held) {
    const MutexLock lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  void fail() {
    const MutexLock lock(mutex_);
    failing_ = true;
  }
  void await(int messages) {
    const MutexLock lock(mutex_);
    while (messages_ < messages) changed_.wait(mutex_);
  }
  int messages() {
    const MutexLock lock(mutex_);
    return messages_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  int messages_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  bool held_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool failing_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

LogCallback into(std::vector<std::string>& lines) {
  return [&lines](LogLevel, std::string_view line) { lines.emplace_back(line); };
}

TEST(WakeHub, TellsThisNodeAtOnce) {
  std::vector<std::string> log;
  WakeHub hub(std::make_shared<detail::Signal>(), nullptr, wake_topic::queue, 1ms, into(log));
  int woken = 0;
  const std::uint64_t number = hub.here().subscribe([&] { ++woken; });
  hub.wake();
  hub.wake();
  EXPECT_EQ(woken, 2);
  hub.here().unsubscribe(number);
  hub.wake();
  EXPECT_EQ(woken, 2);
}

TEST(WakeHub, HazardQ9ManySignalsBecomeOneMessage) {
  std::vector<std::string> log;
  CountingChannel channel;
  channel.hold(true);
  {
    WakeHub hub(std::make_shared<detail::Signal>(), &channel, wake_topic::queue, 1us, into(log));
    hub.wake();
    channel.await(1);  // under way, and held
    for (int i = 0; i < 1000; ++i) hub.wake();
    channel.hold(false);
    channel.await(2);
  }
  EXPECT_EQ(channel.messages(), 2);
}

TEST(WakeHub, WhatIsPendingIsSentAtTheEnd) {
  std::vector<std::string> log;
  CountingChannel channel;
  channel.hold(true);
  std::thread release;
  {
    WakeHub hub(std::make_shared<detail::Signal>(), &channel, wake_topic::queue, 1h, into(log));
    hub.wake();
    channel.await(1);
    hub.wake();
    release = std::thread([&] { channel.hold(false); });
  }
  release.join();
  EXPECT_EQ(channel.messages(), 2);
}

TEST(WakeHub, AnIntervalOfZeroMeansNoMessages) {
  std::vector<std::string> log;
  CountingChannel channel;
  { WakeHub(std::make_shared<detail::Signal>(), &channel, wake_topic::queue, 0us, into(log)).wake(); }
  EXPECT_EQ(channel.messages(), 0);
}

TEST(WakeHub, AFailureIsSaidOnceAndDoesNoHarm) {
  std::vector<std::string> log;
  CountingChannel channel;
  channel.fail();
  {
    WakeHub hub(std::make_shared<detail::Signal>(), &channel, wake_topic::queue, 1us, into(log));
    hub.wake();
    channel.await(1);
    hub.wake();
    channel.await(2);
  }
  ASSERT_EQ(log.size(), 1U);
  EXPECT_NE(log[0].find("server gone"), std::string::npos);
}

}  // namespace
}  // namespace postrider
