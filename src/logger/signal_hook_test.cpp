// SPDX-License-Identifier: Apache-2.0
#include "logger/signal_hook.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <optional>
#include <string>

namespace postrider::logger {
namespace {

using namespace std::chrono_literals;

std::atomic<int> handled{0};

/// A handler of the program's own, which was there before.
class OwnHandler {
 public:
  OwnHandler() {
    handled = 0;
    struct sigaction own {};
    own.sa_handler = [](int) { ++handled; };
    ::sigaction(SIGTERM, &own, &before_);
  }
  ~OwnHandler() { ::sigaction(SIGTERM, &before_, nullptr); }
  OwnHandler(const OwnHandler&) = delete;
  OwnHandler& operator=(const OwnHandler&) = delete;

 private:
  struct sigaction before_ {};
};

TEST(SignalHookTest, EachRunsInItsTurnBeforeTheSignalDoesWhatItDid) {
  const OwnHandler own;
  std::string order;
  std::promise<void> ran;
  std::optional<SignalHook> first([&] { order += std::to_string(handled) + "a"; });
  std::optional<SignalHook> gone([&] { order += "gone"; });
  std::optional<SignalHook> second([&] {
    order += std::to_string(handled) + "b";
    ran.set_value();
  });
  gone.reset();
  ASSERT_EQ(::raise(SIGTERM), 0);
  ASSERT_EQ(ran.get_future().wait_for(30s), std::future_status::ready);
  first.reset();
  second.reset();  // waits for the end of the thread
  EXPECT_EQ(order, "0a0b");
  EXPECT_EQ(handled, 1);
}

TEST(SignalHookTest, ASignalThatIsIgnoredStaysSo) {
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGINT, &ignore, &before);
  {
    const OwnHandler own;
    std::promise<int> ran;
    const SignalHook hook([&] { ran.set_value(1); });
    ASSERT_EQ(::raise(SIGINT), 0);
    struct sigaction now {};
    ::sigaction(SIGINT, nullptr, &now);
    EXPECT_EQ(now.sa_handler, SIG_IGN);
    ASSERT_EQ(::raise(SIGTERM), 0);
    ASSERT_EQ(ran.get_future().wait_for(30s), std::future_status::ready) << "once, for the other signal";
  }
  ::sigaction(SIGINT, &before, nullptr);
}

TEST(SignalHookTest, AfterTheLastOneTheSignalsAreAsBefore) {
  const OwnHandler own;
  bool ran = false;
  for (int i = 0; i < 2; ++i) {
    const SignalHook hook([&] { ran = true; });
  }
  ASSERT_EQ(::raise(SIGTERM), 0);
  EXPECT_EQ(handled, 1);
  EXPECT_FALSE(ran);
}

TEST(SignalHookTest, ASignalToAForkedChildIsNotTheParents) {
  const OwnHandler own;
  std::atomic<bool> ran{false};
  std::optional<SignalHook> hook([&] { ran = true; });
  const pid_t child = ::fork();
  if (child == 0) {
    ::raise(SIGTERM);
    // Where signals are not delivered at once (ThreadSanitizer), they are in a call that waits.
    while (handled == 0 && ::poll(nullptr, 0, 30'000) < 0) {
    }
    ::_exit(handled == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "its own handler ran";
  hook.reset();  // it would have read of it
  EXPECT_FALSE(ran);
  EXPECT_EQ(handled, 0);
}

}  // namespace
}  // namespace postrider::logger
