// SPDX-License-Identifier: Apache-2.0
#include "outbox/completer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "postrider/error.hpp"
#include "postrider/testing.hpp"

namespace postrider {
namespace {

using namespace std::chrono_literals;
using Counter = testing::RecordingMetrics::Counter;

/// A store whose writes fail as told. Only what the completer calls does anything.
class FailingStore final : public OutboxStore {
 public:
  std::size_t complete(std::span<const Completion> results) override {
    const MutexLock lock(mutex_);
    ++calls_;
    called_.notify_all();
    while (calls_ < wait_for_calls_) called_.wait(mutex_);
    if (failures_ > 0) {
      --failures_;
      throw Error(ErrorCode::unavailable, {.retryable = true, .connection_lost = true}, "cannot write",
                  "server gone");
    }
    for (const Completion& result : results) {
      if (result.lease.id == poison_) throw Error(ErrorCode::database, "cannot write", "refused for good");
    }
    for (const Completion& result : results) written_.push_back(result.lease.id.str());
    return results.size();
  }
  void insert(Tx&, std::string_view, std::span<const NewOutboxRow>) override {}
  std::vector<ClaimedEvent> claim(const ClaimRequest&) override { return {}; }
  std::vector<EventId> renew(std::span<const LeaseRef>, Duration) override { return {}; }
  std::vector<EventId> predecessors(std::string_view, const EventId&, std::size_t) override { return {}; }
  void check_schema() override {}

  void fail_next(int times) {
    const MutexLock lock(mutex_);
    failures_ = times;
  }
  /// Nothing is read before this many calls are under way.
  void wait_for_calls(int calls) {
    const MutexLock lock(mutex_);
    wait_for_calls_ = calls;
  }
  void poison(EventId id) {
    const MutexLock lock(mutex_);
    poison_ = id;
  }
  std::vector<std::string> written() {
    const MutexLock lock(mutex_);
    return written_;
  }
  int calls() {
    const MutexLock lock(mutex_);
    return calls_;
  }

 private:
  Mutex mutex_;
  CondVar called_;
  int wait_for_calls_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  int failures_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  int calls_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  EventId poison_ POSTRIDER_GUARDED_BY(mutex_);
  std::vector<std::string> written_ POSTRIDER_GUARDED_BY(mutex_);
};

class CompleterTest : public ::testing::Test {
 protected:
  CompleterOptions options() {
    return {.batch_size = 512,
            .linger = 0ms,
            .queue_capacity = 16,
            .stop_timeout = 5s,
            .clock = &Clock::system(),
            .metrics = &metrics_,
            .log = [](LogLevel, std::string_view) {}};
  }
  static FinishedEvent done(const char* id) {
    return {Completion{{EventId{id}, Token{1}}, Completion::Kind::done, {}, {}, {}}, {}};
  }

  FailingStore store_;
  testing::RecordingMetrics metrics_;
  testing::Signal flushed_;
};

TEST_F(CompleterTest, HazardO5_AFailedFlushIsRetriedOnItsOwn) {
  store_.fail_next(3);
  Completer completer(store_, options(), [&](auto) { flushed_.set(); });
  completer.start();
  completer.submit(done("a"));
  ASSERT_TRUE(flushed_.await());
  EXPECT_EQ(store_.written(), std::vector<std::string>{"a"});
  EXPECT_EQ(metrics_.get(Counter::flush_failures), 3U);
  EXPECT_EQ(metrics_.get(Counter::dispatch_failure), 0U)
      << "a failed write must not look like a failed delivery";
}

TEST_F(CompleterTest, OneRefusedResultDoesNotHoldUpItsNeighbours) {
  store_.poison(EventId{"bad"});
  Completer completer(store_, options(), [&](auto batch) {
    if (batch.back().completion.lease.id == EventId{"c"}) flushed_.set();
  });
  completer.start();
  for (const char* id : {"a", "bad", "c"}) completer.submit(done(id));
  ASSERT_TRUE(flushed_.await());
  EXPECT_EQ(store_.written(), (std::vector<std::string>{"a", "c"}));
}

TEST_F(CompleterTest, StopWritesWhatIsQueued) {
  CompleterOptions slow = options();
  slow.linger = 500ms;
  Completer completer(store_, slow, [](auto) {});
  completer.start();
  for (const char* id : {"a", "b", "c"}) completer.submit(done(id));
  completer.stop();
  EXPECT_EQ(store_.written().size(), 3U);
}

TEST_F(CompleterTest, StopGivesUpOnADatabaseThatStaysAway) {
  store_.fail_next(1'000'000);
  CompleterOptions hurried = options();
  hurried.stop_timeout = 50ms;
  Completer completer(store_, hurried, [](auto) {});
  completer.start();
  completer.submit(done("a"));
  completer.stop();
  EXPECT_TRUE(store_.written().empty());
  EXPECT_GE(store_.calls(), 1);
}

TEST_F(CompleterTest, ALateResultMayRaceTheNextStart) {
  Completer completer(store_, options(), [](auto) {});
  completer.submit(done("too-early"));
  std::thread late([&] {
    for (int i = 0; i < 100; ++i) completer.submit(done("late"));
  });
  for (int i = 0; i < 20; ++i) {
    completer.start();
    completer.stop();
  }
  late.join();
  for (const std::string& written : store_.written()) EXPECT_EQ(written, "late");
}

TEST_F(CompleterTest, CanBeStartedAgain) {
  Completer completer(store_, options(), [](auto) {});
  for (const char* id : {"a", "b"}) {
    completer.start();
    completer.submit(done(id));
    completer.stop();
  }
  EXPECT_EQ(store_.written(), (std::vector<std::string>{"a", "b"}));
}

TEST_F(CompleterTest, TwoThreadsThatWriteInlineDoNotMixTheirResults) {
  store_.wait_for_calls(2);
  Completer completer(store_, options(), [](auto) {});
  const FinishedEvent here = done("a");
  const FinishedEvent there = done("b");
  std::thread other([&] { completer.write_now({&there, 1}); });
  completer.write_now({&here, 1});
  other.join();
  std::vector<std::string> written = store_.written();
  std::sort(written.begin(), written.end());
  EXPECT_EQ(written, (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace postrider
