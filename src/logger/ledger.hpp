// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "logger/entry_json.hpp"
#include "logger/lane.hpp"
#include "logger/limited_news.hpp"
#include "postrider/async_logger.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider::logger {

/// The books, and the end of every event: whoever holds an EventRef hands it to exactly one of `delivered`,
/// `spilled`, `dead` and `lost`, which count it and give its place back. Thread-safe.
class Ledger {
 public:
  Ledger(const LoggerOptions& options, EntryDefaults defaults);

  /// These are on their way from the rings now. Marks them for `flush`.
  void enter(std::span<EventRef> events) POSTRIDER_EXCLUDES(mutex_);

  void delivered(std::span<const EventRef> events) noexcept;
  void spilled(std::span<const EventRef> events) noexcept;
  void dead(const EventRef& event) noexcept;
  void lost(const EventRef& event, LossReason reason) noexcept;
  /// Given back to a mapped ring, where the next process finds it.
  void left_in_ring(const EventRef& event) noexcept;

  // Events that are not in a ring.
  void replayed(std::uint64_t count) noexcept;
  void replayed_dead() noexcept;
  void adopted(std::uint64_t count) noexcept { adopted_ += count; }
  void quarantined(std::uint64_t lines) noexcept { quarantined_ += lines; }
  void retried(std::uint64_t count) noexcept;
  /// They count as spilled no more.
  void unspilled(std::uint64_t count) noexcept { spilled_ -= count; }
  void lost_from_disk(std::string_view members, LossReason reason) noexcept;
  void lost_unseen(std::uint64_t count, LossReason reason) noexcept;
  /// In two steps, for what is noticed before anybody can be told: the books, and the callback.
  void count_unseen(std::uint64_t count, LossReason reason) noexcept;
  void tell_unseen(std::uint64_t count, LossReason reason) noexcept;
  /// By `log()`.
  void refused(const EventLogEntry& entry, LossReason reason) noexcept;

  /// Writes of the losses that were held back: `all`, or those whose time has come.
  void tell_held_back(bool all) noexcept;

  /// The event as JSON, without braces. False when its record is damaged.
  [[nodiscard]] bool append_event(std::string& out, const EventRef& event) const;
  /// The same behind a pointer, which must have `event_room`: its end, or null.
  [[nodiscard]] std::size_t event_room(const EventRef& event) const noexcept;
  [[nodiscard]] char* write_event(char* out, const EventRef& event, TimeWriter& times) const;

  /// Waits until all that entered before is done with, and what entered before an earlier call that gave up.
  [[nodiscard]] bool await_entered(Clock& clock, SteadyPoint deadline) POSTRIDER_EXCLUDES(mutex_);
  /// Waits until a chunk of some ring has become free, or the deadline.
  void await_space(Clock& clock, SteadyPoint deadline, const std::function<bool()>& retry)
      POSTRIDER_EXCLUDES(mutex_);

  /// Those who wait for space look again.
  void wake_all() POSTRIDER_EXCLUDES(mutex_);

  /// The calling thread is in an `on_loss` callback: what it logs is marked, and its loss not told.
  [[nodiscard]] static bool telling() noexcept { return telling_; }

  [[nodiscard]] std::uint64_t outstanding() const noexcept { return outstanding_[0] + outstanding_[1]; }
  void fill(LoggerStats& stats) const noexcept;

 private:
  void leave(const EventRef& event) noexcept;
  void count_lost(LossReason reason, std::uint64_t count, std::string_view detail = {}) noexcept;
  void tell(const LostEvent& event) noexcept;
  /// The line in the log, whether there is a callback or not.
  void write_of_loss(LossReason reason, std::uint64_t count, std::string_view detail = {}) noexcept;

  static thread_local constinit bool telling_;

  const LoggerOptions& options_;
  const EntryDefaults defaults_;

  std::atomic<std::uint64_t> delivered_{0};
  std::atomic<std::uint64_t> replayed_{0};
  std::atomic<std::uint64_t> adopted_{0};
  std::atomic<std::uint64_t> spilled_{0};
  std::atomic<std::uint64_t> dead_{0};
  std::atomic<std::uint64_t> quarantined_{0};
  std::atomic<std::uint64_t> retries_{0};
  std::atomic<std::uint64_t> callback_failures_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> left_{0};
  std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(LossReason::count_of_reasons)> lost_{};
  std::array<LimitedNews, static_cast<std::size_t>(LossReason::count_of_reasons)> news_{};
  std::array<std::atomic<std::uint64_t>, 2> outstanding_{};

  Mutex mutex_;
  CondVar changed_;
  std::uint8_t epoch_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::atomic<int> waiters_{0};
};

}  // namespace postrider::logger
