// SPDX-License-Identifier: Apache-2.0
#include "stream/append_batcher.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <latch>
#include <random>
#include <thread>

#include "postrider/error.hpp"

namespace postrider {
namespace {

using Sizes = std::vector<std::size_t>;

/// A flush that can be held up, and notes what it was given.
class Gate {
 public:
  std::vector<AppendVerdict> flush(std::span<const AppendRequest> requests) {
    const MutexLock lock(mutex_);
    sizes_.push_back(requests.size());
    ++entered_;
    changed_.notify_all();
    while (closed_) changed_.wait(mutex_);
    if (failure_ != nullptr) std::rethrow_exception(failure_);
    std::vector<AppendVerdict> verdicts;
    for (const AppendRequest& request : requests) {
      const auto first = Position{++last_};
      last_ += static_cast<std::int64_t>(request.events.size()) - 1;
      verdicts.emplace_back(Appended{first, Position{last_}});
    }
    return verdicts;
  }
  void close() {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  void open() {
    const MutexLock lock(mutex_);
    closed_ = false;
    changed_.notify_all();
  }
  void fail(std::exception_ptr failure) {
    const MutexLock lock(mutex_);
    failure_ = std::move(failure);
  }
  void await_entered(int count) {
    const MutexLock lock(mutex_);
    while (entered_ < count) changed_.wait(mutex_);
  }
  [[nodiscard]] Sizes sizes() const {
    const MutexLock lock(mutex_);
    return sizes_;
  }

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool closed_ POSTRIDER_GUARDED_BY(mutex_) = false;
  int entered_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::int64_t last_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  Sizes sizes_ POSTRIDER_GUARDED_BY(mutex_);
  std::exception_ptr failure_ POSTRIDER_GUARDED_BY(mutex_);
};

class AppendBatcherTest : public ::testing::Test {
 protected:
  std::future<AppendVerdict> append(std::size_t events = 1, std::stop_token cancel = {}) {
    return std::async(std::launch::async, [this, events, cancel] {
      const std::vector<AppendEvent> list(events, AppendEvent::builder("A").data("[1]").build());
      return batcher_->append({.events = list}, cancel);
    });
  }
  /// Begins a flush and holds it up.
  std::future<AppendVerdict> hold() {
    gate_.close();
    std::future<AppendVerdict> first = append();
    gate_.await_entered(1);
    return first;
  }
  void await_waiting(std::size_t count) const {
    while (batcher_->waiting() != count) std::this_thread::yield();
  }
  void restart(AppendBatcherOptions options) {
    batcher_.emplace(options, [this](std::span<const AppendRequest> r) { return gate_.flush(r); });
  }
  static ErrorCode refusal(std::future<AppendVerdict>& future) {
    try {
      const AppendVerdict verdict = future.get();
      if (const auto* error = std::get_if<std::exception_ptr>(&verdict)) std::rethrow_exception(*error);
    } catch (const Error& error) {
      return error.code();
    }
    ADD_FAILURE() << "not refused";
    return ErrorCode::database;
  }

  Gate gate_;
  std::optional<AppendBatcher> batcher_{std::in_place, AppendBatcherOptions{},
                                        [this](std::span<const AppendRequest> r) { return gate_.flush(r); }};
};

TEST_F(AppendBatcherTest, ALoneCallerIsFlushedAtOnce) {
  EXPECT_EQ(std::get<Appended>(append().get()), (Appended{Position{1}, Position{1}}));
  EXPECT_EQ(std::get<Appended>(append(3).get()), (Appended{Position{2}, Position{4}}));
  EXPECT_EQ(gate_.sizes(), (Sizes{1, 1}));
}

TEST_F(AppendBatcherTest, WhatComesDuringAFlushSharesTheNext) {
  auto first = hold();
  std::vector<std::future<AppendVerdict>> others;
  for (int i = 0; i < 5; ++i) {
    others.push_back(append());
    await_waiting(static_cast<std::size_t>(i) + 1);
  }
  gate_.open();
  EXPECT_EQ(std::get<Appended>(first.get()).first, Position{1});
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(std::get<Appended>(others[static_cast<std::size_t>(i)].get()).first, Position{i + 2})
        << "in order";
  }
  EXPECT_EQ(gate_.sizes(), (Sizes{1, 5}));
}

TEST_F(AppendBatcherTest, AFlushIsBoundedByEventsAndBytes) {
  for (const AppendBatcherOptions options :
       {AppendBatcherOptions{.events = 4}, AppendBatcherOptions{.bytes = 12}}) {
    restart(options);
    const std::size_t before = gate_.sizes().size();
    gate_.close();
    auto first = append();
    gate_.await_entered(static_cast<int>(before) + 1);
    std::vector<std::future<AppendVerdict>> others;
    for (const std::size_t events : {2U, 2U, 1U, 9U, 1U}) {  // of three bytes each
      others.push_back(append(events));
      await_waiting(others.size());
    }
    gate_.open();
    (void)first.get();
    for (auto& other : others) EXPECT_TRUE(std::holds_alternative<Appended>(other.get()));
    const Sizes sizes = gate_.sizes();
    EXPECT_EQ(Sizes(sizes.begin() + static_cast<std::ptrdiff_t>(before), sizes.end()),
              (Sizes{1, 2, 1, 1, 1}));
  }
}

TEST_F(AppendBatcherTest, AFailedFlushIsEverybodysAndTheNextGoesOn) {
  auto first = hold();
  auto second = append();
  auto third = append();
  await_waiting(2);
  gate_.fail(std::make_exception_ptr(Error(ErrorCode::unavailable, {.in_doubt = true}, "made to fail")));
  gate_.open();
  for (auto* one : {&first, &second, &third}) {
    try {
      const AppendVerdict verdict = one->get();
      std::rethrow_exception(std::get<std::exception_ptr>(verdict));
    } catch (const Error& error) {
      EXPECT_TRUE(error.in_doubt());
    }
  }
  gate_.fail(nullptr);
  EXPECT_EQ(std::get<Appended>(append().get()).first, Position{1});
}

TEST_F(AppendBatcherTest, WhoeverCancelsWhileHeWaitsIsNotWritten) {
  auto first = hold();
  std::stop_source cancel;
  auto second = append(1, cancel.get_token());
  await_waiting(1);
  auto third = append();
  await_waiting(2);
  cancel.request_stop();
  EXPECT_EQ(refusal(second), ErrorCode::closed);
  gate_.open();
  EXPECT_EQ(std::get<Appended>(first.get()).first, Position{1});
  EXPECT_EQ(std::get<Appended>(third.get()).first, Position{2});
  auto late = append(1, cancel.get_token());
  EXPECT_EQ(refusal(late), ErrorCode::closed);
}

TEST_F(AppendBatcherTest, WhoeverCancelsDuringHisFlushGetsItsVerdict) {
  std::stop_source cancel;
  gate_.close();
  auto first = append(1, cancel.get_token());
  gate_.await_entered(1);
  cancel.request_stop();
  gate_.open();
  EXPECT_EQ(std::get<Appended>(first.get()).first, Position{1});
}

TEST_F(AppendBatcherTest, ClosingLeavesNobodyWaiting) {
  auto first = hold();
  auto second = append();
  auto third = append();
  await_waiting(2);
  std::thread closing([&] { batcher_->close(); });
  EXPECT_EQ(refusal(second), ErrorCode::closed);
  EXPECT_EQ(refusal(third), ErrorCode::closed);
  gate_.open();
  closing.join();
  EXPECT_EQ(std::get<Appended>(first.get()).first, Position{1}) << "what has begun is finished";
  auto late = append();
  EXPECT_EQ(refusal(late), ErrorCode::closed);
}

TEST_F(AppendBatcherTest, ManyCallersSomeOfWhomCancelAllGetTheirAnswer) {
  constexpr int callers = 8;
  constexpr int rounds = 300;
  std::atomic<std::int64_t> appended{0};
  std::atomic<std::int64_t> cancelled{0};
  std::vector<std::thread> threads;
  threads.reserve(callers);
  for (int caller = 0; caller < callers; ++caller) {
    threads.emplace_back([&, caller] {
      std::minstd_rand random{static_cast<unsigned>(caller)};
      const std::vector<AppendEvent> one{AppendEvent::builder("A")};
      for (int round = 0; round < rounds; ++round) {
        std::stop_source cancel;
        std::thread stopper;
        if (random() % 4 == 0) stopper = std::thread([&] { cancel.request_stop(); });
        try {
          EXPECT_TRUE(
              std::holds_alternative<Appended>(batcher_->append({.events = one}, cancel.get_token())));
          ++appended;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::closed);
          ++cancelled;
        }
        if (stopper.joinable()) stopper.join();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(appended + cancelled, callers * rounds);
  std::size_t flushed = 0;
  for (const std::size_t size : gate_.sizes()) flushed += size;
  EXPECT_EQ(static_cast<std::int64_t>(flushed), appended) << "written when, and only when, told so";
}

}  // namespace
}  // namespace postrider
