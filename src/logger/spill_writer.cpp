// SPDX-License-Identifier: Apache-2.0
#include "logger/spill_writer.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace postrider::logger {
namespace {

constexpr std::size_t most_at_once = 4096;
constexpr std::size_t write_bytes = 1 << 20;
// Between two tries of a disk that refuses.
constexpr Duration shortest_pause = std::chrono::milliseconds{100};
constexpr Duration longest_pause = std::chrono::seconds{5};

}  // namespace

SpillWriter::SpillWriter(SpillStore& store, Ledger& ledger, const LoggerOptions& options)
    : store_(store), ledger_(ledger), options_(options), clock_(*options.clock) {
  // What was found is as old as its file at least.
  const TimePoint now = clock_.now();
  const Duration age = now - std::min(now, store_.oldest_written().value_or(now));
  ages_.push_back({0, clock_.steady_now() - age});
}

void SpillWriter::start() {
  tell_removed();
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

std::size_t SpillWriter::room_now() const {
  return options_.queue_capacity - std::min(options_.queue_capacity, queue_.size());
}

std::size_t SpillWriter::room() const {
  const MutexLock lock(mutex_);
  return room_now();
}

std::size_t SpillWriter::spare() const {
  const SpillLimits& limits = store_.limits();
  // What is being written may be counted in the files as well for a moment: rather too little than too much.
  const MutexLock lock(mutex_);
  const std::uint64_t waiting = queue_.size() + writing_;
  const std::uint64_t events = store_.events();
  const std::uint64_t bytes = store_.bytes();
  const std::uint64_t most =
      std::min(limits.max_events - std::min(limits.max_events, events),
               (limits.max_bytes - std::min(limits.max_bytes, bytes)) / line_bytes_.load());
  return most - std::min(most, waiting);
}

std::size_t SpillWriter::take(std::span<const EventRef> events) {
  std::size_t count = 0;
  {
    const MutexLock lock(mutex_);
    if (!stopping_) count = std::min(events.size(), room_now());
    queue_.insert(queue_.end(), events.begin(), events.begin() + static_cast<std::ptrdiff_t>(count));
  }
  if (count > 0) arrived_.notify_one();
  return count;
}

void SpillWriter::take_all(std::span<const EventRef> events) {
  constexpr Duration patience = std::chrono::seconds{10};
  const SteadyPoint deadline = clock_.steady_now() + patience;
  for (;;) {
    events = events.subspan(take(events));
    if (events.empty()) return;
    const MutexLock lock(mutex_);
    if (stopping_ || failing() || clock_.steady_now() >= deadline) break;
    if (room_now() == 0) clock_.wait_until(changed_, mutex_, deadline);
  }
  const LossReason reason = failing() ? LossReason::spillover_io_error : LossReason::spillover_queue_full;
  for (const EventRef& event : events) lose_at_the_end(event, reason);
}

void SpillWriter::await_space(SteadyPoint deadline) {
  const MutexLock lock(mutex_);
  while (room_now() == 0 && !stopping_ && !hurrying_ && clock_.steady_now() < deadline)
    clock_.wait_until(changed_, mutex_, deadline);
}

void SpillWriter::hurry() {
  {
    const MutexLock lock(mutex_);
    hurrying_ = true;
  }
  changed_.notify_all();
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
  on_room_();
}

bool SpillWriter::await_room(SteadyPoint deadline) {
  on_full_();
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
      while (failing() && !stopping_ && clock_.steady_now() < next_try_)
        clock_.wait_until(arrived_, mutex_, next_try_);
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
    if (!batch.empty()) on_room_();
    // While the disk refuses, a receiver that is well again may have them.
    const std::size_t gone = failing() && way_back_ ? way_back_(batch) : 0;
    write(std::span(batch).subspan(gone));
    if (!unwritten_.empty()) {
      keep_unwritten();
      const MutexLock lock(mutex_);
      asked = sync_done_;
      last = false;
    }
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
    if (!batch.empty()) on_room_();
  }
}

void SpillWriter::write(std::span<const EventRef> events) {
  if (events.empty()) return;
  // A process killed between a write and the moment when the ring knows of it leaves these events in both
  // places. What one write has is therefore small where that can happen, unless each write also waits for the
  // disk.
  const bool survives = options_.ring == RingMode::mapped && options_.fsync != FsyncMode::group;
  // Nor does it go beyond a file: what `drop_oldest` gives up is one.
  const SpillLimits& limits = store_.limits();
  const std::size_t most =
      std::min<std::uint64_t>(survives ? options_.batch_size : most_at_once, limits.segment_events);
  const std::size_t most_bytes = std::min<std::uint64_t>(write_bytes, limits.segment_bytes);
  for (const EventRef& event : events) {
    LossReason why{};
    if (!unwritten_.empty()) {
      unwritten_.push_back(event);  // behind one that has to wait
      continue;
    }
    if (!stage(event, why)) {
      if (unwritten_.empty()) {
        lose(event, why);
      } else {
        unwritten_.push_back(event);
      }
      continue;
    }
    staged_.push_back(event);
    if (store_.staged_bytes() >= most_bytes || staged_.size() >= most) write_staged();
  }
  write_staged();
}

void SpillWriter::keep_unwritten() {
  std::vector<EventRef> kept = std::exchange(unwritten_, {});
  {
    const MutexLock lock(mutex_);
    if (!stopping_) {
      queue_.insert(queue_.begin(), kept.begin(), kept.end());
      return;
    }
  }
  for (const EventRef& event : kept) lose_at_the_end(event, LossReason::spillover_io_error);
}

void SpillWriter::refused() {
  pause_ = failing() ? std::min(pause_ * 2, longest_pause) : shortest_pause;
  next_try_ = clock_.steady_now() + pause_;
  failing_ = true;
  changed_.notify_all();
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
    if (!unwritten_.empty()) return false;
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
  line_bytes_ = store_.staged_bytes() / staged_.size();
  const int error = store_.write_staged();
  tell_removed();
  if (error != 0) {
    const std::size_t waiting = staged_.size();
    unwritten_ = std::exchange(staged_, {});
    refused();
    // Told last: whoever hears of it finds it so.
    store_.news().failed(DiskTask::write, "cannot write events, which stay in memory meanwhile", error,
                         waiting);
    return;
  }
  store_.news().went_well(DiskTask::write);
  mark_age();
  if (options_.fsync != FsyncMode::group) {
    failing_ = false;
    ledger_.spilled(staged_);
    if (options_.fsync == FsyncMode::interval && !unsynced_) {
      unsynced_ = true;
      next_sync_ = clock_.steady_now() + options_.fsync_interval;
    }
    staged_.clear();
    return;
  }
  const std::size_t unkept = std::min<std::size_t>(store_.sync(), staged_.size());
  tell_removed();
  const auto first_unkept = staged_.end() - static_cast<std::ptrdiff_t>(unkept);
  unwritten_.assign(first_unkept, staged_.end());
  staged_.erase(first_unkept, staged_.end());
  if (unkept > 0) {
    refused();  // the store has told that it cannot sync
  } else {
    failing_ = false;
  }
  ledger_.spilled(staged_);
  staged_.clear();
}

void SpillWriter::tell_removed() {
  ledger_.lost_unseen(store_.take_removed(), LossReason::spillover_removed);
}

void SpillWriter::sync_store() {
  // With `group` nothing is unsynced but what a full file of the reader's left behind.
  store_.look_after_files();
  ledger_.lost_unseen(store_.sync(), LossReason::spillover_io_error);
  tell_removed();
  unsynced_ = false;
}

void SpillWriter::lose(const EventRef& event, LossReason reason) noexcept {
  bool stopping = false;
  {
    const MutexLock lock(mutex_);
    stopping = stopping_;
  }
  if (stopping) {
    lose_at_the_end(event, reason);
  } else {
    ledger_.lost(event, reason);
  }
}

void SpillWriter::lose_at_the_end(const EventRef& event, LossReason reason) noexcept {
  // A ring that was to be a mapped file may have become plain memory.
  if (event.lane->survives()) {
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
