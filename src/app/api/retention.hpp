// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "core/periodic_task.hpp"
#include "postrider/clock.hpp"
#include "postrider/log.hpp"
#include "storage/entry_store.hpp"

namespace postrider::api {

/// Entries of one transaction: a pause that nobody notices, also on SQLite, which has one writer.
inline constexpr std::size_t purge_batch = 500;

/// Removes all entries that happened before `time`, in batches, each in a transaction of its own. Told after
/// each how many are gone, `go_on` may end it. Returns how many are gone.
std::int64_t purge_entries(EntryStore& store, TimePoint time,
                           const std::function<bool(std::int64_t removed)>& go_on);

/// Removes entries as they get older than `age`: looks at the start and once a minute, on a thread of its
/// own. A database that is away is told to the log once, and tried again.
class Retention {
 public:
  /// `store` and `clock` outlive it.
  Retention(EntryStore& store, Duration age, Clock& clock, LogCallback log);
  ~Retention() { stop(); }
  Retention(const Retention&) = delete;
  Retention& operator=(const Retention&) = delete;

  void start() { task_.start(); }
  /// After the batch that is under way.
  void stop();
  [[nodiscard]] std::int64_t removed() const noexcept { return removed_; }

 private:
  void run() noexcept;

  EntryStore& store_;
  const Duration age_;
  Clock& clock_;
  const LogCallback log_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> removed_{0};
  bool failing_ = false;  // the task's thread only
  PeriodicTask task_;
};

}  // namespace postrider::api
