// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "postrider/event_manager.hpp"
#include "postrider/event_queue.hpp"
#include "postrider/testing.hpp"
#include "storage/log_store.hpp"
#include "storage/queue_store.hpp"
#include "support/backend.hpp"

namespace postrider {

using namespace std::chrono_literals;
using QueueCounter = testing::RecordingMetrics::Counter;

/// A fresh database per test, with the tables made. `clock_` drives it when the test asks for it.
class QueueTest : public test::BackendTest {
 protected:
  /// `manual`: the database's time and the queue's time come from `clock_`.
  void open(bool manual = false, QueueOptions options = {}) {
    database_ = std::make_unique<test::TestDatabase>(
        backend(),
        test::TestDatabase::Options{.clock = manual ? &clock_ : nullptr, .migrate = true, .pool_size = 12});
    if (manual) options.clock = &clock_;
    options_ = options;
    queue_ = make_queue(database_->storage());
  }
  /// One more node on the same tables.
  std::unique_ptr<EventQueue> make_queue(Storage& storage) {
    QueueOptions options = options_;
    options.metrics = &metrics_;
    options.log = [this](LogLevel, std::string_view line) {
      const MutexLock lock(log_mutex_);
      log_.emplace_back(line);
    };
    return std::make_unique<EventQueue>(storage, options);
  }

  [[nodiscard]] Storage& storage() { return database_->storage(); }
  [[nodiscard]] EventQueue& queue() { return *queue_; }

  /// Retries come after exactly one second per failure.
  static EventManagerOptions manager_options() {
    class Linear final : public RetryPolicy {
     public:
      [[nodiscard]] Duration delay(Attempt failed, double) const override {
        return std::chrono::seconds(static_cast<std::int32_t>(failed));
      }
    };
    EventManagerOptions options;
    options.retry_policy = std::make_shared<const Linear>();
    options.settle_linger = 0ms;
    return options;
  }

  static Event event(const std::string& payload = "{}", const std::string& type = "T") {
    return Event::json(type, payload);
  }
  static Event keyed(const std::string& key, int number) {
    return Event::builder("T").ordering_key(key).json(std::to_string(number)).build();
  }

  std::int64_t count(const std::string& table, const std::string& where = "1 = 1") {
    Transaction tx = storage().begin();
    return tx.execute("select count(*) from " + database_->table(table) + " where " + where).integer(0, 0);
  }
  std::vector<LogEntry> log_entries() {
    storage().queue_store().sequence_log();
    return storage().log_store().read(LogSeq{0}, 10'000, {}).entries;
  }
  LogEntry only_entry() {
    const std::vector<LogEntry> entries = log_entries();
    EXPECT_EQ(entries.size(), 1U);
    return entries.empty() ? LogEntry{} : entries.front();
  }
  std::vector<std::string> log_lines() {
    const MutexLock lock(log_mutex_);
    return log_;
  }

  ManualClock clock_;
  testing::RecordingMetrics metrics_;
  QueueOptions options_;
  Mutex log_mutex_;
  std::vector<std::string> log_ POSTRIDER_GUARDED_BY(log_mutex_);
  std::unique_ptr<test::TestDatabase> database_;
  std::unique_ptr<EventQueue> queue_;
};

}  // namespace postrider
