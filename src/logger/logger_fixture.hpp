// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

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

struct LoggerFixture : ::testing::Test {
  test::TempDir temp;
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
