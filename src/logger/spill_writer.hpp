// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
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

  /// Takes the events over. Waits for room only with the policy `block`, or when told to be `patient`: at the
  /// shutdown nothing is gained by losing what the disk would take in a moment.
  void offer(std::span<const EventRef> events, bool patient = false) POSTRIDER_EXCLUDES(mutex_);
  /// Everything offered before is written, and synced if it ever is. False when `deadline` passed before.
  [[nodiscard]] bool sync(SteadyPoint deadline) POSTRIDER_EXCLUDES(mutex_);
  /// The replay has made room.
  void room_made() POSTRIDER_EXCLUDES(mutex_);

  /// Since when the oldest event on disk is there, by the steady clock. Only sensible while there is one.
  [[nodiscard]] SteadyPoint oldest_since(SpillSeq cursor) const POSTRIDER_EXCLUDES(mutex_);

 private:
  void run() POSTRIDER_EXCLUDES(mutex_);
  void write(std::span<const EventRef> events);
  /// Stages the event, making room first as the policy says. False when there is none: the reason is `why`.
  [[nodiscard]] bool stage(const EventRef& event, LossReason& why);
  void write_staged();
  void sync_store();
  void lose(const EventRef& event, LossReason reason) noexcept;
  [[nodiscard]] bool await_room(SteadyPoint deadline) POSTRIDER_EXCLUDES(mutex_);
  void mark_age() POSTRIDER_EXCLUDES(mutex_);

  SpillStore& store_;
  Ledger& ledger_;
  const LoggerOptions& options_;
  Clock& clock_;

  // The writer's thread's own.
  TimeWriter times_;
  std::vector<EventRef> staged_;
  bool unsynced_ = false;
  SteadyPoint next_sync_{};
  std::thread thread_;

  mutable Mutex mutex_;
  CondVar arrived_;
  CondVar changed_;
  std::deque<EventRef> queue_ POSTRIDER_GUARDED_BY(mutex_);
  std::size_t writing_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::uint64_t sync_asked_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::uint64_t sync_done_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool room_made_ POSTRIDER_GUARDED_BY(mutex_) = false;
  struct Age {
    SpillSeq from;
    SteadyPoint when;
  };
  std::deque<Age> ages_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider::logger
