// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/failpoint.hpp"
#include "postrider/async_logger.hpp"
#include "postrider/error.hpp"
#include "postrider/testing.hpp"
#include "support/temp_dir.hpp"

namespace postrider::logger {

using namespace std::chrono_literals;

/// A receiver that does as it is told, and remembers what it has taken.
class FakeClient final : public EventLogClient {
 public:
  using Answer = std::function<SendResult(std::span<const OutgoingEvent>)>;

  static SendResult failed(int status = 503) {
    return {.verdict = SendVerdict::transient, .status = status, .reason = "down"};
  }

  /// Nothing: everything is taken.
  void answer(Answer answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  void down() {
    answer([](auto) { return failed(); });
  }
  void up() { answer({}); }
  /// Requests stay where they are until `release` or `cancel`.
  void hang() {
    const std::lock_guard lock(mutex_);
    hanging_ = true;
  }
  void release() {
    {
      const std::lock_guard lock(mutex_);
      hanging_ = false;
    }
    changed_.notify_all();
  }

  SendResult send(std::span<const OutgoingEvent> events) override {
    Answer answer;
    {
      std::unique_lock lock(mutex_);
      ++requests_;
      sizes_.push_back(events.size());
      changed_.notify_all();
      changed_.wait(lock, [&] { return !hanging_ || cancelled_; });
      if (hanging_) return failed(0);
      answer = answer_;
    }
    const SendResult result = answer ? answer(events) : SendResult{};
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < events.size(); ++i) {
      const bool taken = result.items.empty() ? result.verdict == SendVerdict::delivered
                                              : result.items[i].verdict == SendVerdict::delivered;
      if (!taken) continue;
      keys_.emplace_back(events[i].key);
      texts_.emplace_back(events[i].members);
    }
    changed_.notify_all();
    return result;
  }
  void cancel() noexcept override {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }

  bool await_delivered(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 30s, [&] { return keys_.size() >= count; });
  }
  bool await_requests(std::size_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 30s, [&] { return requests_ >= count; });
  }
  std::vector<std::string> keys() const {
    const std::lock_guard lock(mutex_);
    return keys_;
  }
  /// The "details" of what was taken, in order.
  std::vector<std::string> details() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all;
    for (const std::string& text : texts_) all.push_back(details_of(text));
    return all;
  }
  std::vector<std::size_t> sizes() const {
    const std::lock_guard lock(mutex_);
    return sizes_;
  }
  std::size_t requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  static std::string details_of(std::string_view members) {
    constexpr std::string_view name = R"("details":")";
    const std::size_t begin = members.find(name);
    if (begin == std::string_view::npos) return "";
    members.remove_prefix(begin + name.size());
    return std::string(members.substr(0, members.find('"')));
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Answer answer_;
  bool hanging_ = false;
  bool cancelled_ = false;
  std::size_t requests_ = 0;
  std::vector<std::string> keys_;
  std::vector<std::string> texts_;
  std::vector<std::size_t> sizes_;
};

inline EventLogEntry numbered(std::size_t number) {
  EventLogEntry entry = EventLogEntry::process_step("Test", "Step");
  entry.details(std::to_string(number));
  return entry;
}

inline std::vector<std::string> numbers(std::size_t first, std::size_t last) {
  std::vector<std::string> all;
  for (std::size_t i = first; i <= last; ++i) all.push_back(std::to_string(i));
  return all;
}

/// Meanwhile no file may become larger than that: a disk that has room for lines, and none for rings.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes = 256 * 1024) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit small{bytes, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  ~SmallFiles() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
    std::signal(SIGXFSZ, handler_);
  }
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  void (*const handler_)(int);
  rlimit before_{};
};

/// Calls `action` whenever one of these points is passed; not in builds without failpoints.
class PointWatch {
 public:
  PointWatch(std::vector<std::string> points, const std::function<void(const std::string&)>& action)
      : points_(std::move(points)) {
#if defined(POSTRIDER_FAILPOINTS)
    for (const std::string& point : points_) failpoints::set(point, [=] { action(point); });
#endif
  }
  ~PointWatch() {
#if defined(POSTRIDER_FAILPOINTS)
    for (const std::string& point : points_) failpoints::set(point, {});
#endif
  }
  PointWatch(const PointWatch&) = delete;
  PointWatch& operator=(const PointWatch&) = delete;

 private:
  const std::vector<std::string> points_;
};

/// Wakes a test whenever the books of a logger have changed. Without failpoints it has to look by itself.
class BookWatch {
 public:
  /// False when it was not so within 30 s.
  bool await(const std::function<bool()>& is_so) {
    const auto deadline = std::chrono::steady_clock::now() + 30s;
    for (;;) {
      std::unique_lock lock(mutex_);
      const std::uint64_t seen = changes_;
      lock.unlock();  // what is asked takes locks of its own
      if (is_so()) return true;
      lock.lock();
      const bool woken =
          changed_.wait_until(lock, std::min(deadline, std::chrono::steady_clock::now() + look),
                              [&] { return changes_ != seen; });
      if (!woken && std::chrono::steady_clock::now() >= deadline) return false;
    }
  }

 private:
#if defined(POSTRIDER_FAILPOINTS)
  static constexpr auto look = 30s;
#else
  static constexpr auto look = 1ms;
#endif
  void changed() {
    {
      const std::lock_guard lock(mutex_);
      ++changes_;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t changes_ = 0;
  PointWatch points_{
      {"logger.booked", "logger.queued", "logger.replay.committed", "logger.replay.cycled", "logger.held"},
      [this](const std::string&) { changed(); }};
};

struct LoggerFixture : ::testing::Test {
  test::TempDir temp;
  BookWatch books;
  std::shared_ptr<FakeClient> client = std::make_shared<FakeClient>();
  std::mutex mutex;
  std::map<std::string, std::uint64_t> losses;

  /// Quick, quiet, and with a callback that notes every loss.
  LoggerOptions options(bool spilling = true) {
    LoggerOptions made;
    made.spillover_path = spilling ? temp.file("spill") : "";
    made.max_batch_wait = 1ms;
    made.base_retry_delay = 1us;
    made.max_retry_delay = 2us;
    made.replay_interval = std::chrono::hours{1};  // `replay_soon` when a test wants it
    made.fsync = FsyncMode::none;
    made.ring_bytes = 1 << 20;
    made.log = [](LogLevel, std::string_view) {};
    made.on_loss = [this](const LostEvent& lost) {
      const std::lock_guard lock(mutex);
      losses[std::string(to_string(lost.reason))] += lost.count;
    };
    return made;
  }
  /// No retries: what fails once goes to disk.
  LoggerOptions direct(bool spilling = true) {
    LoggerOptions made = options(spilling);
    made.max_retries = 0;
    return made;
  }
  bool await(const AsyncEventLogger& logger, const std::function<bool(const LoggerStats&)>& is_so) {
    return books.await([&] { return is_so(logger.stats()); });
  }
  /// Nothing is on its way any more. The drain, which has found nothing the second time, waits for events and
  /// for no time: a test that counts who waits for its clock may rely on that.
  static bool come_to_rest(AsyncEventLogger& logger) { return logger.flush() && logger.flush(); }
  /// All of it was replayed.
  bool await_empty_disk(const AsyncEventLogger& logger) {
    return await(logger, [](const LoggerStats& stats) { return stats.on_disk == 0; });
  }

  /// One sender, a queue of two, retries after a second of `clock`; for `crowd_out_a_retry`.
  LoggerOptions crowded(ManualClock& clock, bool spilling) {
    LoggerOptions made = options(spilling);
    made.queue_capacity = made.batch_size = 2;
    made.max_batch_wait = 0us;
    made.clock = &clock;
    made.base_retry_delay = made.max_retry_delay = 1s;
    made.circuit_breaker_threshold = 1000;
    return made;
  }
  /// Event 1 waits for a retry, 2 and 3 are in a request that hangs, 4 and 5 fill the queue.
  void crowd(AsyncEventLogger& logger) {
    client->down();
    logger.log(numbered(1));
    ASSERT_TRUE(await(logger, [](const LoggerStats& stats) { return stats.retries == 1; }));
    client->hang();
    log_numbers(logger, 2, 3);
    ASSERT_TRUE(client->await_requests(2));
    log_numbers(logger, 4, 5);
    ASSERT_TRUE(await(logger, [](const LoggerStats& stats) { return stats.queue_depth == 2; }));
  }
  /// When the retry falls due, the queue is full.
  void crowd_out_a_retry(AsyncEventLogger& logger, ManualClock& clock) {
    ASSERT_NO_FATAL_FAILURE(crowd(logger));
    clock.advance(1s);
    client->up();
    client->release();
    ASSERT_TRUE(logger.flush());
  }
  /// Event 0 is in a request that hangs, the queue is full of 1 to 5.
  void fill_queue_of_five(AsyncEventLogger& logger) {
    client->hang();
    logger.log(numbered(0));
    ASSERT_TRUE(client->await_requests(1));
    log_numbers(logger, 1, 5);
    ASSERT_TRUE(await(logger, [](const LoggerStats& stats) { return stats.queue_depth == 5; }));
  }

  static void log_numbers(AsyncEventLogger& logger, std::size_t first, std::size_t last) {
    for (std::size_t i = first; i <= last; ++i) logger.log(numbered(i));
  }
  static void expect_balance(const LoggerStats& stats) {
    EXPECT_EQ(stats.logged + stats.recovered + stats.adopted,
              stats.delivered + stats.pending() + stats.dead + stats.all_lost());
  }
  /// What the callback was told is what was counted.
  void expect_losses_told(const LoggerStats& stats) {
    const std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < stats.lost.size(); ++i) {
      const std::string name(to_string(static_cast<LossReason>(i)));
      EXPECT_EQ(stats.lost.at(i), losses.contains(name) ? losses.at(name) : 0) << name;
    }
  }
  std::string file(const std::string& name) const {
    std::ifstream in(temp.path() / "spill" / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

}  // namespace postrider::logger
