// SPDX-License-Identifier: Apache-2.0
#include "storage/pool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace postrider {
namespace {

using namespace std::chrono_literals;

/// What the server does, shared by all its connections.
struct Server {
  std::atomic<int> connects{0};
  std::atomic<int> pings{0};
  std::atomic<int> closed{0};
  std::atomic<bool> away{false};
  std::atomic<bool> locked_out{false};
};

class FakeConnection final : public PooledConnection {
 public:
  explicit FakeConnection(Server& server) : server_(server) {}
  ~FakeConnection() override { ++server_.closed; }
  [[nodiscard]] bool usable() const noexcept override { return !broken; }
  [[nodiscard]] bool ping() noexcept override {
    ++server_.pings;
    return !server_.away;
  }
  bool broken = false;

 private:
  Server& server_;
};

class PoolTest : public ::testing::Test {
 protected:
  ConnectionPool make(std::size_t size, Duration acquire_timeout = 10s) {
    return ConnectionPool(
        {.size = size,
         .acquire_timeout = acquire_timeout,
         .name = "fake:db",
         .log =
             [this](LogLevel level, std::string_view line) {
               const std::lock_guard lock(log_mutex_);
               log_.push_back((level == LogLevel::info ? "info: " : "warning: ") + std::string(line));
             }},
        [this]() -> std::unique_ptr<PooledConnection> {
          ++server_.connects;
          if (server_.locked_out) throw Error(ErrorCode::unavailable, "wrong password");
          if (server_.away) {
            throw Error(ErrorCode::unavailable, {.retryable = true}, "connection refused");
          }
          return std::make_unique<FakeConnection>(server_);
        },
        clock_);
  }
  /// It was there once, and is away from now on; attempts to connect are counted anew.
  void lose_server(ConnectionPool& pool) {
    (void)pool.acquire();
    pool.clear_idle();
    server_.away = true;
    server_.connects = 0;
  }
  /// Until so many threads sleep on the clock, which is when advancing it makes sense.
  void await_waiters(std::size_t count) {
    while (clock_.waiters() != count) std::this_thread::yield();
  }
  void await_connects(int count) {
    while (server_.connects != count) std::this_thread::yield();
  }
  static ErrorCode code_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_TRUE(error.retryable()) << error.what();
      return error.code();
    }
    ADD_FAILURE() << "nothing was thrown";
    return ErrorCode::database;
  }
  ManualClock clock_;
  Server server_;
  std::mutex log_mutex_;
  std::vector<std::string> log_;
};

TEST_F(PoolTest, ConnectsOnDemandAndReusesTheLastOneGivenBack) {
  ConnectionPool pool = make(4);
  EXPECT_EQ(server_.connects, 0);
  const PooledConnection* first = nullptr;
  {
    const auto lease = pool.acquire();
    first = lease.get();
    EXPECT_EQ(pool.stats().in_use, 1U);
  }
  EXPECT_EQ(pool.stats().in_use, 0U);
  EXPECT_EQ(pool.stats().open, 1U);
  EXPECT_EQ(pool.stats().limit, 4U);
  EXPECT_EQ(pool.acquire().get(), first);
  EXPECT_EQ(server_.connects, 1);
}

TEST_F(PoolTest, AtTheDeadlineItSaysThatAllAreInUse) {
  ConnectionPool pool = make(1, 10s);
  const auto held = pool.acquire();
  std::jthread waiter([&] {
    try {
      (void)pool.acquire();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::timeout);
      EXPECT_TRUE(error.retryable());
      EXPECT_THAT(error.what(), ::testing::HasSubstr("fake:db"));
      EXPECT_THAT(error.what(), ::testing::HasSubstr("pool_size"));
    }
  });
  await_waiters(1);
  EXPECT_EQ(pool.stats().waiting, 1U);
  clock_.advance(10s);
  waiter.join();
  EXPECT_EQ(pool.stats().waiting, 0U);
  EXPECT_EQ(server_.connects, 1);
}

TEST_F(PoolTest, AWaiterGetsWhatIsGivenBack) {
  ConnectionPool pool = make(1);
  auto held = std::make_unique<ConnectionPool::Lease>(pool.acquire());
  std::jthread waiter([&] { EXPECT_TRUE(static_cast<bool>(pool.acquire())); });
  await_waiters(1);
  held.reset();
  waiter.join();
  EXPECT_EQ(server_.connects, 1);
}

TEST_F(PoolTest, ABrokenConnectionIsReplaced) {
  ConnectionPool pool = make(1);
  {
    const auto lease = pool.acquire();
    static_cast<FakeConnection&>(*lease).broken = true;
  }
  EXPECT_EQ(pool.stats().open, 0U);
  EXPECT_EQ(server_.closed, 1);
  (void)pool.acquire();
  EXPECT_EQ(server_.connects, 2);
  pool.acquire().discard();
  EXPECT_EQ(pool.stats().open, 0U);
}

TEST_F(PoolTest, ALongRestIsFollowedByAPing) {
  ConnectionPool pool = make(2);
  (void)pool.acquire();
  clock_.advance(30s);
  (void)pool.acquire();
  EXPECT_EQ(server_.pings, 0) << "30 s are not too long";
  clock_.advance(30s + 1us);
  (void)pool.acquire();
  EXPECT_EQ(server_.pings, 1);
  EXPECT_EQ(server_.connects, 1);
}

TEST_F(PoolTest, AConnectionThatDiedAtRestIsReplacedUnnoticed) {
  ConnectionPool pool = make(2);
  {
    const auto one = pool.acquire();
    const auto two = pool.acquire();
  }
  clock_.advance(1min);
  server_.away = true;
  std::jthread caller([&] { EXPECT_TRUE(static_cast<bool>(pool.acquire())); });
  await_waiters(1);
  EXPECT_EQ(server_.closed, 2);
  EXPECT_EQ(server_.pings, 1) << "one that is silent is as good as all: each might take a timeout";
  server_.away = false;
  clock_.advance(50ms);
  caller.join();
  EXPECT_EQ(pool.stats().open, 1U);
}

TEST_F(PoolTest, WhileTheServerIsAwayAttemptsBackOff) {
  ConnectionPool pool = make(8, 1s);
  lose_server(pool);
  std::jthread caller([&] { EXPECT_EQ(code_of([&] { (void)pool.acquire(); }), ErrorCode::unavailable); });
  // 50, 100, 200, 400 ms; the next pause would end after the deadline.
  for (int attempt = 1; attempt <= 4; ++attempt) {
    await_connects(attempt);
    await_waiters(1);
    clock_.advance(50ms * (1 << (attempt - 1)) - 1us);
    await_waiters(1);
    EXPECT_EQ(server_.connects, attempt);
    clock_.advance(1us);
  }
  caller.join();
  EXPECT_EQ(server_.connects, 5);
}

TEST_F(PoolTest, WhileTheServerIsAwayOneCallerTriesForAll) {
  ConnectionPool pool = make(8, 1s);
  lose_server(pool);
  std::vector<std::jthread> callers;
  const auto call = [&] { EXPECT_TRUE(static_cast<bool>(pool.acquire())); };
  callers.emplace_back(call);
  await_connects(1);
  await_waiters(1);
  for (int i = 0; i < 3; ++i) callers.emplace_back(call);
  await_waiters(4);
  EXPECT_EQ(server_.connects, 1);
  clock_.advance(50ms);
  await_connects(2);
  await_waiters(4);
  EXPECT_EQ(server_.connects, 2) << "of four that woke up";
  server_.away = false;
  clock_.advance(100ms);
  callers.clear();
  EXPECT_EQ(pool.stats().in_use, 0U);
}

/// Nobody can wait: without patience of his own, or because the server has never been there.
TEST_F(PoolTest, CallersThatCannotWaitFailFastAndDoNotHammerTheServer) {
  for (const Duration acquire_timeout : {Duration{0s}, Duration{1h}}) {
    SCOPED_TRACE(acquire_timeout.count());
    ConnectionPool pool = make(8, acquire_timeout);
    server_.connects = 0;
    server_.away = true;
    EXPECT_EQ(code_of([&] { (void)pool.acquire(); }), ErrorCode::unavailable);
    EXPECT_EQ(code_of([&] { (void)pool.acquire(); }), ErrorCode::unavailable);
    EXPECT_EQ(server_.connects, 1) << "the second did not hammer the server";
    clock_.advance(50ms);
    server_.away = false;
    EXPECT_TRUE(static_cast<bool>(pool.acquire()));
  }
}

TEST_F(PoolTest, AnErrorFromBeforeSaysThatNobodyHasTriedSince) {
  ConnectionPool pool = make(8, 0s);
  server_.away = true;
  const auto message = [&]() -> std::string {
    try {
      (void)pool.acquire();
    } catch (const Error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(message(), "postrider: connection refused");
  clock_.advance(10ms);
  EXPECT_EQ(
      message(),
      "postrider: no connection to fake:db: not trying again for 40 ms; the last attempt failed: connection "
      "refused");
  EXPECT_EQ(server_.connects, 1);
  clock_.advance(40ms - 1us);
  EXPECT_THAT(message(), ::testing::HasSubstr("for 1 ms;"));
  clock_.advance(1us);
  EXPECT_EQ(message(), "postrider: connection refused") << "this one has tried";
  EXPECT_EQ(server_.connects, 2);
  EXPECT_EQ(pool.stats().trouble, "postrider: connection refused");
  server_.away = false;
  clock_.advance(1s);
  EXPECT_NO_THROW((void)pool.acquire());
  EXPECT_EQ(pool.stats().trouble, "");
}

TEST_F(PoolTest, AServerThatComesBackIsFoundWithinASecond) {
  ConnectionPool pool = make(8, 1h);
  lose_server(pool);
  std::jthread caller([&] { EXPECT_TRUE(static_cast<bool>(pool.acquire())); });
  for (int attempt = 1; attempt <= 12; ++attempt) {
    await_connects(attempt);
    await_waiters(1);
    clock_.advance(1s);
  }
  await_connects(13);
  await_waiters(1);
  server_.away = false;
  clock_.advance(1s);
  caller.join();
  EXPECT_EQ(server_.connects, 14);
}

TEST_F(PoolTest, AnOutageIsToldOnceAndItsEndToo) {
  ConnectionPool pool = make(8, 0s);
  for (int outage = 0; outage < 2; ++outage) {
    log_.clear();
    lose_server(pool);
    for (int attempt = 0; attempt < 25; ++attempt) {
      EXPECT_EQ(code_of([&] { (void)pool.acquire(); }), ErrorCode::unavailable);
      clock_.advance(1s);
    }
    EXPECT_THAT(
        log_,
        ::testing::ElementsAre(
            "warning: postrider: fake:db takes no connections, and is tried again: connection refused"));
    server_.away = false;
    (void)pool.acquire();
    (void)pool.acquire();
    ASSERT_EQ(log_.size(), 2U);
    EXPECT_EQ(log_[1], "info: postrider: fake:db takes connections again, after 25s");
  }
}

TEST_F(PoolTest, OfAServerThatWasNeverThereWhoAskedIsTold) {
  ConnectionPool pool = make(8, 0s);
  server_.away = true;
  EXPECT_EQ(code_of([&] { (void)pool.acquire(); }), ErrorCode::unavailable);
  server_.away = false;
  clock_.advance(1s);
  (void)pool.acquire();
  EXPECT_TRUE(log_.empty());
}

TEST_F(PoolTest, WhatNoWaitingCuresIsThrownAtOnce) {
  ConnectionPool pool = make(8, 10s);
  server_.locked_out = true;
  for (int i = 0; i < 3; ++i) {
    try {
      (void)pool.acquire();
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("wrong password"));
    }
  }
  EXPECT_EQ(server_.connects, 1);
  EXPECT_EQ(pool.stats().open, 0U);
  EXPECT_EQ(pool.stats().waiting, 0U);
}

TEST_F(PoolTest, IdleConnectionsCanBeClosed) {
  ConnectionPool pool = make(4);
  const auto kept = pool.acquire();
  (void)pool.acquire();
  pool.clear_idle();
  EXPECT_EQ(pool.stats().open, 1U);
  EXPECT_EQ(pool.stats().in_use, 1U);
  EXPECT_EQ(server_.closed, 1);
}

TEST_F(PoolTest, ManyThreadsNeverExceedItsSize) {
  ConnectionPool pool = make(3, 1h);
  std::atomic<int> in_use{0};
  std::atomic<int> most{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 200; ++round) {
          const auto lease = pool.acquire();
          const int now = ++in_use;
          int seen = most;
          while (now > seen && !most.compare_exchange_weak(seen, now)) {
          }
          --in_use;
        }
      });
    }
  }
  EXPECT_LE(most, 3);
  EXPECT_LE(server_.connects, 3);
  EXPECT_EQ(pool.stats().in_use, 0U);
}

}  // namespace
}  // namespace postrider
