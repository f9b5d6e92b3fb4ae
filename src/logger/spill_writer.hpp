// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "logger/ledger.hpp"
#include "logger/spill_store.hpp"

namespace postrider::logger {

/// Writes events to the spill files, on a thread of its own. It is the last to end: whoever has an event that
/// goes nowhere else offers it here. Thread-safe.
class SpillWriter {
 public:
  SpillWriter(SpillStore& store, Ledger& ledger, const LoggerOptions& options);
  ~SpillWriter() { stop(); }
  SpillWriter(const SpillWriter&) = delete;
  SpillWriter& operator=(const SpillWriter&) = delete;

  void start();
  /// Writes what was offered before, then ends. What comes later is lost, and counted.
  void stop() POSTRIDER_EXCLUDES(mutex_);

  /// Called whenever there may be more room. Before any thread uses the writer.
  void on_room(std::function<void()> callback) { on_room_ = std::move(callback); }
  /// Called when it begins to wait for the replay to make room. As `on_room`.
  void on_full(std::function<void()> callback) { on_full_ = std::move(callback); }
  /// Who may take events that the disk refuses; returns how many it took, from the first. As `on_room`.
  void way_back(std::function<std::size_t(std::span<const EventRef>)> way) { way_back_ = std::move(way); }
  [[nodiscard]] std::size_t room() const POSTRIDER_EXCLUDES(mutex_);
  /// How many more events the files take within their limits, by what is known before they are written.
  /// Whoever offers more leaves it to the policy what becomes of them.
  [[nodiscard]] std::size_t spare() const POSTRIDER_EXCLUDES(mutex_);
  /// Takes over as many as there is room for, from the first. Never waits.
  [[nodiscard]] std::size_t take(std::span<const EventRef> events) POSTRIDER_EXCLUDES(mutex_);
  /// At the shutdown, when they have nowhere else to go: waits for room while the disk makes some, as nothing
  /// is gained by losing what it would take in a moment. The rest is lost, or left in mapped rings.
  void take_all(std::span<const EventRef> events) POSTRIDER_EXCLUDES(mutex_);
  /// Waits for room, until the deadline or the shutdown.
  void await_space(SteadyPoint deadline) POSTRIDER_EXCLUDES(mutex_);
  /// The shutdown has begun: nobody waits in `await_space`.
  void hurry() POSTRIDER_EXCLUDES(mutex_);
  /// The last write has failed. What it had is tried again.
  [[nodiscard]] bool failing() const noexcept { return failing_.load(std::memory_order_relaxed); }
  /// Everything offered before is written, and synced if it ever is. False when `deadline` passed before.
  [[nodiscard]] bool sync(SteadyPoint deadline) POSTRIDER_EXCLUDES(mutex_);
  /// The replay has made room.
  void room_made() POSTRIDER_EXCLUDES(mutex_);

  /// Counts, and tells of, what the store has found to be gone.
  void tell_removed();

  /// Since when the oldest event on disk is there, by the steady clock. Only sensible while there is one.
  [[nodiscard]] SteadyPoint oldest_since(SpillSeq cursor) const POSTRIDER_EXCLUDES(mutex_);

 private:
  void run() POSTRIDER_EXCLUDES(mutex_);
  /// Writes, or keeps in `unwritten_` what the disk refuses.
  void write(std::span<const EventRef> events);
  /// Stages the event, making room first as the policy says. False when there is none: the reason is `why`.
  [[nodiscard]] bool stage(const EventRef& event, LossReason& why);
  void write_staged();
  /// The disk has refused what is in `unwritten_`: it is tried again after a pause.
  void refused();
  /// Back to the front of the queue, until the next try; at the shutdown there is none.
  void keep_unwritten() POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t room_now() const POSTRIDER_REQUIRES(mutex_);
  void sync_store();
  void lose(const EventRef& event, LossReason reason) noexcept;
  void lose_at_the_end(const EventRef& event, LossReason reason) noexcept;
  [[nodiscard]] bool await_room(SteadyPoint deadline) POSTRIDER_EXCLUDES(mutex_);
  void mark_age() POSTRIDER_EXCLUDES(mutex_);

  SpillStore& store_;
  Ledger& ledger_;
  const LoggerOptions& options_;
  Clock& clock_;

  // The writer's thread's own.
  TimeWriter times_;
  std::vector<EventRef> staged_;
  std::vector<EventRef> unwritten_;
  Duration pause_{};  // before the next try
  SteadyPoint next_try_{};
  bool unsynced_ = false;
  SteadyPoint next_sync_{};
  std::thread thread_;
  std::function<void()> on_room_ = [] {};
  std::function<void()> on_full_ = [] {};
  std::function<std::size_t(std::span<const EventRef>)> way_back_;
  std::atomic<bool> failing_{false};
  std::atomic<std::uint64_t> line_bytes_{
      512};  // what the next ones are taken for: the mean of the last write

  mutable Mutex mutex_;
  CondVar arrived_;
  CondVar changed_;
  std::deque<EventRef> queue_ POSTRIDER_GUARDED_BY(mutex_);
  std::size_t writing_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::uint64_t sync_asked_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::uint64_t sync_done_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool hurrying_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool room_made_ POSTRIDER_GUARDED_BY(mutex_) = false;
  struct Age {
    SpillSeq from;
    SteadyPoint when;
  };
  std::deque<Age> ages_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider::logger
