// SPDX-License-Identifier: Apache-2.0
// For your own tests: what a listener saw, what was counted, and waiting for either without sleeping.
// `ManualClock`, which moves time by hand, is in postrider/clock.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/listener.hpp"
#include "postrider/metrics.hpp"
#include "postrider/publisher.hpp"

namespace postrider::testing {

/// How long the waits below last at most, in real time. Only a failing test waits that long.
inline constexpr Duration patience = std::chrono::seconds{30};

/// A flag that one thread raises and others wait for. Thread-safe.
class Signal {
 public:
  void set();
  void reset();
  [[nodiscard]] bool is_set() const;
  /// False when `timeout` passed before it was set.
  [[nodiscard]] bool await(Duration timeout = patience) const;

 private:
  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool set_ POSTRIDER_GUARDED_BY(mutex_) = false;
};

/// A listener that remembers what it was given. Thread-safe; copies share one memory, so keep one and
/// register another:
///
///     testing::RecordingListener seen;
///     outbox.on("UserCreated", seen);
///     ...
///     ASSERT_TRUE(seen.await(1));
///     EXPECT_EQ(seen.events()[0].payload(), R"({"name":"Ada"})");
class RecordingListener {
 public:
  struct Received {
    Event event;
    Delivery delivery;
  };

  RecordingListener();

  /// What a dispatcher calls: remembers the event, then answers as it was told to, at first
  /// `Outcome::done()`.
  Outcome operator()(const Event& event, const Delivery& delivery) const;

  /// How many times it was called, failures included.
  [[nodiscard]] std::size_t count() const;
  /// In the order of the calls.
  [[nodiscard]] std::vector<Event> events() const;
  [[nodiscard]] std::vector<Received> received() const;
  /// Waits until it was called `calls` times in all. The outcome of the last call may still be on its way
  /// into the database then. False when `timeout` passed before.
  [[nodiscard]] bool await(std::size_t calls, Duration timeout = patience) const;

  /// The next `calls` calls return this outcome; several plans are worked off one after the other.
  void answer_next(std::size_t calls, Outcome outcome);
  /// The next `calls` calls fail with this reason.
  void fail_next(std::size_t calls, std::string reason = "told to fail");
  /// Every call without a plan returns this outcome from now on.
  void answer(Outcome outcome);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// A publisher that takes everything, remembers it, and lets a test wait for it. Thread-safe.
///
///     auto latch = std::make_shared<testing::Latch>("KafkaPublisher");
///     relay.add({.name = "all"}, latch);
///     ...
///     ASSERT_TRUE(latch->await(3));
class Latch final : public Publisher {
 public:
  explicit Latch(std::string name = "Latch") : name_(std::move(name)) {}

  PublishResult publish_batch(std::span<const StoredEvent> events, const PublishContext& context) override;
  std::string name() const override { return name_; }
  bool healthy() const override { return healthy_; }
  PublishMode mode() const noexcept override { return mode_; }

  struct Received {
    StoredEvent event;
    std::string topic;
    Epoch epoch{};
  };
  /// In the order of the calls, as many of each batch as it took.
  [[nodiscard]] std::vector<Received> received() const;
  [[nodiscard]] std::vector<Position> positions() const;
  [[nodiscard]] std::size_t batches() const;
  /// Waits until it has taken so many events. False when `timeout` passed before.
  [[nodiscard]] bool await(std::size_t events, Duration timeout = patience) const;

  /// Called with each batch before it is taken, without a lock: may wait, throw, or say how it ends.
  using Answer = std::function<PublishResult(std::span<const StoredEvent>)>;
  void answer(Answer answer);
  void set_healthy(bool healthy) noexcept { healthy_ = healthy; }
  void set_mode(PublishMode mode) noexcept { mode_ = mode; }

 private:
  const std::string name_;
  std::atomic<bool> healthy_{true};
  std::atomic<PublishMode> mode_{PublishMode::batch};
  mutable Mutex mutex_;
  mutable CondVar changed_;
  Answer answer_ POSTRIDER_GUARDED_BY(mutex_);
  std::vector<Received> received_ POSTRIDER_GUARDED_BY(mutex_);
  std::size_t batches_ POSTRIDER_GUARDED_BY(mutex_) = 0;
};

/// Remembers every count. Thread-safe; counting takes no lock unless somebody waits.
class RecordingMetrics final : public MetricsExporter {
 public:
  enum class Counter {
    hot_enqueued,
    hot_dropped,
    cold_enqueued,
    dispatch_success,
    dispatch_failure,
    dispatch_dead,
    stale_completions,
    flush_failures,
    poll_failures,
    // How many times each of these was observed, and what came together.
    queue_waits,
    listener_runs,
    flushes,
    flushed_events,
    claims,
    claimed_events,
    // The queue's.
    queue_published,
    queue_completed,
    queue_completed_with_errors,
    queue_retried,
    queue_unhandled,
    queue_quarantined,
    queue_stale,
    queue_claim_failures,
    queue_settle_failures,
    handler_failures,
    queue_claims,
    queue_claimed_events,
    queue_settles,
    queue_settled_events,
    handler_runs,
    // Projections'.
    projection_handled,
    projection_failures,
    projection_skipped,
    projection_records,
    // The relay's.
    relay_published,
    relay_failures,
    relay_dead_letters,
    relay_refused_writes,
    relay_leader_changes,
    relay_tail_reads,
    relay_own_reads,
    relay_batches,
    count_of_counters,
  };

  [[nodiscard]] std::uint64_t get(Counter counter) const noexcept;
  /// Waits until the counter is at least `value`. False when `timeout` passed before.
  [[nodiscard]] bool await(Counter counter, std::uint64_t value, Duration timeout = patience) const;

  // The gauges as recorded last.
  [[nodiscard]] std::size_t hot_depth() const noexcept { return hot_depth_; }
  [[nodiscard]] std::size_t cold_depth() const noexcept { return cold_depth_; }
  [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_; }
  [[nodiscard]] Duration oldest_lag() const noexcept { return Duration{oldest_lag_}; }
  [[nodiscard]] std::int64_t projection_lag() const noexcept { return projection_lag_; }  ///< in events

  void increment_hot_enqueued() override { add(Counter::hot_enqueued); }
  void increment_hot_dropped() override { add(Counter::hot_dropped); }
  void increment_cold_enqueued() override { add(Counter::cold_enqueued); }
  void increment_dispatch_success() override { add(Counter::dispatch_success); }
  void increment_dispatch_failure() override { add(Counter::dispatch_failure); }
  void increment_dispatch_dead() override { add(Counter::dispatch_dead); }
  void increment_stale_completions(std::size_t events) override { add(Counter::stale_completions, events); }
  void increment_flush_failures() override { add(Counter::flush_failures); }
  void increment_poll_failures() override { add(Counter::poll_failures); }

  void record_queue_depths(std::size_t hot, std::size_t cold) override;
  void record_oldest_lag(Duration lag) override { oldest_lag_ = lag.count(); }
  void record_in_flight(std::size_t events) override { in_flight_ = events; }

  void observe_queue_wait(Duration) override { add(Counter::queue_waits); }
  void observe_listener_time(Duration) override { add(Counter::listener_runs); }
  void observe_flush(std::size_t events, Duration) override;
  void observe_claim(std::size_t events, Duration) override;

  void increment_queue_published(std::size_t events) override { add(Counter::queue_published, events); }
  void increment_queue_completed() override { add(Counter::queue_completed); }
  void increment_queue_completed_with_errors() override { add(Counter::queue_completed_with_errors); }
  void increment_queue_retried() override { add(Counter::queue_retried); }
  void increment_queue_unhandled() override { add(Counter::queue_unhandled); }
  void increment_queue_quarantined(std::size_t events) override { add(Counter::queue_quarantined, events); }
  void increment_queue_stale(std::size_t events) override { add(Counter::queue_stale, events); }
  void increment_queue_claim_failures() override { add(Counter::queue_claim_failures); }
  void increment_queue_settle_failures() override { add(Counter::queue_settle_failures); }
  void increment_handler_failures() override { add(Counter::handler_failures); }
  void observe_queue_claim(std::size_t events, Duration) override;
  void observe_queue_settle(std::size_t events, Duration) override;
  void observe_handler_time(Duration) override { add(Counter::handler_runs); }

  void increment_projection_handled(std::size_t entries) override {
    add(Counter::projection_handled, entries);
  }
  void increment_projection_failures() override { add(Counter::projection_failures); }
  void increment_projection_skipped() override { add(Counter::projection_skipped); }
  void record_projection(const ProjectionStatus& status) override;
  void increment_relay_published(std::size_t events) override { add(Counter::relay_published, events); }
  void increment_relay_failures() override { add(Counter::relay_failures); }
  void increment_relay_dead_letters() override { add(Counter::relay_dead_letters); }
  void increment_relay_refused_writes(std::size_t pairs) override {
    add(Counter::relay_refused_writes, pairs);
  }
  void increment_relay_leader_changes() override { add(Counter::relay_leader_changes); }
  void observe_relay_read(std::size_t, bool tail, Duration) override {
    add(tail ? Counter::relay_tail_reads : Counter::relay_own_reads);
  }
  void observe_relay_publish(std::size_t, Duration) override { add(Counter::relay_batches); }

 private:
  void add(Counter counter, std::uint64_t by = 1);

  static constexpr std::size_t counters = static_cast<std::size_t>(Counter::count_of_counters);
  std::array<std::atomic<std::uint64_t>, counters> counts_{};
  std::atomic<std::size_t> hot_depth_{0};
  std::atomic<std::size_t> cold_depth_{0};
  std::atomic<std::size_t> in_flight_{0};
  std::atomic<std::int64_t> oldest_lag_{0};
  std::atomic<std::int64_t> projection_lag_{0};

  mutable std::atomic<std::size_t> awaiting_{0};
  mutable Mutex mutex_;
  mutable CondVar changed_;
};

}  // namespace postrider::testing
