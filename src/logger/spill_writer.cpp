// SPDX-License-Identifier: Apache-2.0
#include "logger/spill_writer.hpp"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "core/wording.hpp"

namespace postrider::logger {
namespace {

constexpr std::size_t most_at_once = 4096;
constexpr std::size_t write_bytes = 1 << 20;

}  // namespace

SpillWriter::SpillWriter(SpillStore& store, Ledger& ledger, const LoggerOptions& options)
    : store_(store), ledger_(ledger), options_(options), clock_(*options.clock) {
  ages_.push_back({0, clock_.steady_now()});  // what was found, counts from now
}

void SpillWriter::start() {
  thread_ = std::thread([this] { run(); });
}

void SpillWriter::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_all();
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SpillWriter::offer(std::span<const EventRef> events, bool patient) {
  constexpr Duration patience = std::chrono::seconds{10};
  const bool waits = patient || options_.full_policy == FullPolicy::block;
  std::vector<EventRef> lost;
  {
    const MutexLock lock(mutex_);
    const SteadyPoint deadline =
        clock_.steady_now() + (patient ? std::max(patience, options_.block_timeout) : options_.block_timeout);
    for (const EventRef& event : events) {
      while (queue_.size() >= options_.queue_capacity && waits && !stopping_ &&
             clock_.steady_now() < deadline) {
        arrived_.notify_one();  // what is queued already must not wait for the rest
        clock_.wait_until(changed_, mutex_, deadline);
      }
      if (stopping_ ||
          (queue_.size() >= options_.queue_capacity && options_.full_policy != FullPolicy::drop_oldest)) {
        lost.push_back(event);
        continue;
      }
      if (queue_.size() >= options_.queue_capacity) {
        lost.push_back(queue_.front());
        queue_.pop_front();
      }
      queue_.push_back(event);
    }
  }
  arrived_.notify_one();
  for (const EventRef& event : lost) lose(event, LossReason::spillover_queue_full);
}

bool SpillWriter::sync(SteadyPoint deadline) {
  const MutexLock lock(mutex_);
  const std::uint64_t mine = ++sync_asked_;
  arrived_.notify_one();
  while (sync_done_ < mine && !stopping_) {
    if (clock_.steady_now() >= deadline) return false;
    clock_.wait_until(changed_, mutex_, deadline);
  }
  return true;
}

void SpillWriter::room_made() {
  {
    const MutexLock lock(mutex_);
    room_made_ = true;
  }
  changed_.notify_all();
}

bool SpillWriter::await_room(SteadyPoint deadline) {
  const MutexLock lock(mutex_);
  while (!room_made_ && !stopping_ && clock_.steady_now() < deadline)
    clock_.wait_until(changed_, mutex_, deadline);
  return std::exchange(room_made_, false) && !stopping_;
}

void SpillWriter::run() {
  std::vector<EventRef> batch;
  for (;;) {
    std::uint64_t asked = 0;
    bool last = false;
    {
      const MutexLock lock(mutex_);
      while (queue_.empty() && !stopping_ && sync_asked_ == sync_done_) {
        if (!unsynced_) {
          arrived_.wait(mutex_);
        } else if (clock_.steady_now() < next_sync_) {
          clock_.wait_until(arrived_, mutex_, next_sync_);
        } else {
          break;
        }
      }
      const std::size_t count = std::min(most_at_once, queue_.size());
      batch.assign(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
      queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(count));
      writing_ = count;
      // Only when the queue is empty: a sync is for all that was offered before it.
      asked = queue_.empty() ? sync_asked_ : sync_done_;
      last = stopping_ && queue_.empty();
    }
    changed_.notify_all();
    write(batch);
    bool sync_now = last || (unsynced_ && clock_.steady_now() >= next_sync_);
    {
      const MutexLock lock(mutex_);
      sync_now = sync_now || asked != sync_done_;
    }
    if (sync_now) sync_store();
    {
      const MutexLock lock(mutex_);
      writing_ = 0;
      sync_done_ = asked;
      if (last && queue_.empty()) return;
    }
    changed_.notify_all();
  }
}

void SpillWriter::write(std::span<const EventRef> events) {
  if (events.empty()) return;
  // A process killed between a write and the moment when the ring knows of it leaves these events in both
  // places. What one write has is therefore small where that can happen, unless each write also waits for the
  // disk.
  const bool survives = options_.ring == RingMode::mapped && options_.fsync != FsyncMode::group;
  const std::size_t most = survives ? options_.batch_size : most_at_once;
  for (const EventRef& event : events) {
    LossReason why{};
    if (!stage(event, why)) {
      lose(event, why);
      continue;
    }
    staged_.push_back(event);
    if (store_.staged_bytes() >= write_bytes || staged_.size() >= most) write_staged();
  }
  write_staged();
}

bool SpillWriter::stage(const EventRef& event, LossReason& why) {
  std::optional<SteadyPoint> deadline;  // most events never ask for the time
  for (;;) {
    char* const end = ledger_.write_event(store_.open_line(ledger_.event_room(event)), event, times_);
    if (end == nullptr) {
      why = LossReason::serialization;
      return false;
    }
    const SpillFull full = store_.close_line(end);
    if (full == SpillFull::no) return true;
    if (!deadline) deadline = clock_.steady_now() + options_.block_timeout;
    why = full == SpillFull::events ? LossReason::spillover_max_events : LossReason::spillover_max_size;
    if (options_.full_policy == FullPolicy::drop_newest) return false;
    write_staged();
    if (options_.full_policy == FullPolicy::block) {
      if (!await_room(*deadline)) return false;
      continue;
    }
    const std::uint64_t dropped = store_.drop_oldest();
    if (dropped == 0) return false;
    ledger_.lost_unseen(dropped, why);
  }
}

void SpillWriter::write_staged() {
  if (staged_.empty()) return;
  if (const int error = store_.write_staged(); error != 0) {
    options_.log(LogLevel::error, "postrider: cannot write " + counted(staged_.size(), "event") +
                                      " to the spill folder: " + std::generic_category().message(-error));
    for (const EventRef& event : staged_) lose(event, LossReason::spillover_io_error);
    staged_.clear();
    return;
  }
  mark_age();
  if (options_.fsync != FsyncMode::group) {
    ledger_.spilled(staged_);
    if (options_.fsync == FsyncMode::interval && !unsynced_) {
      unsynced_ = true;
      next_sync_ = clock_.steady_now() + options_.fsync_interval;
    }
    staged_.clear();
    return;
  }
  const std::size_t unkept = std::min<std::size_t>(store_.sync(), staged_.size());
  for (std::size_t i = 0; i < unkept; ++i) {
    lose(staged_.back(), LossReason::spillover_io_error);
    staged_.pop_back();
  }
  ledger_.spilled(staged_);
  staged_.clear();
}

void SpillWriter::sync_store() {
  // With `group` nothing is unsynced but what a full file of the reader's left behind.
  ledger_.lost_unseen(store_.sync(), LossReason::spillover_io_error);
  unsynced_ = false;
}

void SpillWriter::lose(const EventRef& event, LossReason reason) noexcept {
  bool stopping = false;
  {
    const MutexLock lock(mutex_);
    stopping = stopping_;
  }
  // A ring that was to be a mapped file may have become plain memory.
  if (stopping && event.lane->survives()) {
    ledger_.left_in_ring(event);
  } else {
    ledger_.lost(event, reason);
  }
}

void SpillWriter::mark_age() {
  constexpr Duration apart = std::chrono::seconds{1};
  constexpr std::size_t most = 1024;
  const SteadyPoint now = clock_.steady_now();
  const MutexLock lock(mutex_);
  if (now - ages_.back().when < apart) return;
  if (ages_.size() == most) ages_.erase(ages_.begin() + most / 2);
  ages_.push_back({store_.next_seq() - staged_.size(), now});
}

SteadyPoint SpillWriter::oldest_since(SpillSeq cursor) const {
  const MutexLock lock(mutex_);
  SteadyPoint when = ages_.front().when;
  for (const Age& age : ages_) {
    if (age.from > cursor) break;
    when = age.when;
  }
  return when;
}

}  // namespace postrider::logger
