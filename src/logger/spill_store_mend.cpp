// SPDX-License-Identifier: Apache-2.0
// What is done when somebody removes, replaces or cuts files while they are in use.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/wording.hpp"
#include "logger/spill_names.hpp"
#include "logger/spill_store.hpp"
#include "postrider/error.hpp"

namespace postrider::logger {

void SpillStore::look_after_files() {
  const MutexLock append(append_mutex_);
  (void)mend(true);  // told of already; tried again with the next write
}

int SpillStore::mend(bool all) {
  const int restored = folder_.restore();
  if (restored < 0) {
    news_.failed(DiskTask::folder, "somebody removed the folder or its lock, and it cannot be had again",
                 restored);
    return restored;
  }
  news_.went_well(DiskTask::folder);
  if (restored > 0) {
    log_(LogLevel::warning,
         "postrider: somebody removed the spill folder or moved it away while it is in use; it was made "
         "again");
    folder_dirty_ = true;
  }
  bool whole = true;
  if (active_.is_open()) {
    const MutexLock lock(mutex_);
    whole = is_still(folder_, active_name, segments_.back().mark);
  }
  if (whole) look_for_cut();
  if (!all && restored == 0 && whole) return 0;
  const MutexLock lock(mutex_);
  for (std::size_t i = segments_.size(); i-- > 0;) {
    FileMark found;
    const int error = folder_.mark(segments_[i].name, found);
    if (error == -ENOENT || (error == 0 && found != segments_[i].mark)) mend_segment(i, error == 0);
  }
  tell_checkpoint(checkpoint_.refresh());
  gaps_.refresh();
  return 0;
}

void SpillStore::mend_segment(std::size_t index, bool replaced) {
  Segment& segment = segments_[index];
  const int handle = handle_of(segment);
  if (handle < 0) {
    // The replay reads what is there now, and counts what is missing of it.
    if (replaced) return;
    log_(LogLevel::warning, "postrider: somebody removed " + segment.name + " from the spill folder");
    removed_ += forget_segment(index);
    return;
  }
  if (replaced) set_aside(segment.name);
  const int error = rescue(index, handle);
  if (error == 0) return;
  news_.failed(DiskTask::write, "cannot write " + segment.name + " anew, which somebody removed", error);
  // The replay can go on with the file that it has open.
  if (reading_ != segment.id) removed_ += forget_segment(index);
}

int SpillStore::handle_of(const Segment& segment) {
  if (last_is_active_ && active_.is_open() && segment.id == segments_.back().id) return active_.get();
  if (reading_ == segment.id && reading_file_.is_open()) return reading_file_.get();
  for (const Sealed& sealed : unsynced_) {
    if (sealed.id == segment.id) return sealed.file.get();
  }
  return -1;
}

int SpillStore::rescue(std::size_t index, int handle) {
  constexpr std::size_t part = 1 << 20;
  Segment& segment = segments_[index];
  SpillFile copy(folder_, folder_.open(rewrite_name, SpillFolder::Mode::append));
  if (!copy.is_open()) return copy.get();
  int error = folder_.truncate(copy.get(), 0);
  std::string bytes(std::min<std::uint64_t>(part, segment.bytes), '\0');
  std::uint64_t copied = 0;
  while (error == 0 && copied < segment.bytes) {
    const std::size_t wanted = std::min<std::uint64_t>(bytes.size(), segment.bytes - copied);
    const std::int64_t got = folder_.read_at(handle, bytes.data(), wanted, copied);
    if (got == 0) break;  // cut as well: what is missing is counted when it is read
    error = got < 0 ? static_cast<int>(got)
                    : append_all(folder_, copy.get(), {bytes.data(), static_cast<std::size_t>(got)});
    copied += got > 0 ? static_cast<std::uint64_t>(got) : 0;
  }
  if (error == 0 && limits_.durable) error = folder_.sync(copy.get());
  if (error == 0) error = folder_.rename(rewrite_name, segment.name);
  if (error == 0) error = folder_.mark(copy.get(), segment.mark);
  if (error != 0) {
    (void)folder_.remove(rewrite_name);
    return error;
  }
  folder_dirty_ = true;
  bytes_ -= segment.bytes - copied;
  segment.bytes = copied;
  std::erase_if(unsynced_, [&](const Sealed& sealed) { return sealed.id == segment.id; });
  if (last_is_active_ && segment.id == segments_.back().id) {
    active_ = std::move(copy);
    active_size_ = copied;
    synced_size_ = limits_.durable ? copied : 0;
    synced_seq_ = limits_.durable ? segment.end : segment.first;
  }
  log_(LogLevel::warning, "postrider: somebody removed " + segment.name +
                              " from the spill folder; it was still open, and was written anew");
  return 0;
}

void SpillStore::look_for_cut() {
  if (!active_.is_open()) return;
  const std::int64_t found = folder_.size(active_.get());
  const auto size = static_cast<std::uint64_t>(found);
  if (found < 0 || size == active_size_) return;
  SpillSeq kept = 0;
  SpillSeq end = 0;
  {
    const MutexLock lock(mutex_);
    Segment& segment = segments_.back();
    bytes_ += size - segment.bytes;  // may wrap, and comes out right
    segment.bytes = size;
    kept = end = segment.end;
    if (size < active_size_) {
      Tail tail;
      try {
        tail = read_tail(segment);
      } catch (const Error& error) {  // then nobody knows what is left of it
        log_(LogLevel::error, error.what());
      }
      kept = std::min(end, (tail.last ? *tail.last + 1 : segment.first) + tail.damaged);
    }
    segment.end = kept;
    active_size_ = size;
  }
  log_(LogLevel::warning, size < synced_size_ || kept < end
                              ? "postrider: somebody cut the spill file that is written; it is closed"
                              : "postrider: somebody wrote into the spill file; it is closed");
  seal(false);
  if (kept == end) return;
  give_up(kept, end);
  removed_ += end - kept;
}

std::uint64_t SpillStore::forget_segment(std::size_t index) {
  const Segment victim = segments_[index];
  std::erase_if(unsynced_, [&](const Sealed& sealed) { return sealed.id == victim.id; });
  if (last_is_active_ && index + 1 == segments_.size()) {
    active_.reset();
    last_is_active_ = false;
  }
  if (reading_ == victim.id) {
    reading_ = 0;
    reading_file_.reset();
  }
  bytes_ -= victim.bytes;
  segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(index));
  const SpillSeq from = index == 0 ? std::max(victim.first, cursor_seq_.load()) : victim.first;
  const std::uint64_t lost = victim.end > from ? victim.end - from : 0;
  const SpillSeq end = victim.end + victim.dropped;
  if (index == 0) {
    dropped_ahead_ -= victim.dropped;
    move_cursor({std::max(end, cursor_seq_.load()), 0, 0});
  } else {
    segments_[index - 1].dropped += lost + victim.dropped;
    dropped_ahead_ += lost;
    gaps_.add({from, end});
  }
  return lost;
}

void SpillStore::set_aside(const std::string& name) {
  std::string aside;
  FileMark found;
  for (unsigned turn = 1;; ++turn) {
    aside = std::string(segment_prefix) + "found-" + std::to_string(turn) + std::string(segment_suffix);
    if (folder_.mark(aside, found) != 0) break;
  }
  if (const int error = folder_.rename(name, aside); error != 0) {
    news_.failed(DiskTask::rename, "cannot put aside what somebody put in the place of " + name, error);
    return;
  }
  folder_dirty_ = true;
  log_(LogLevel::warning, "postrider: somebody put another file in the place of " + name +
                              " while it is in use; that file is " + aside + " now, and is not replayed");
}

}  // namespace postrider::logger
