// SPDX-License-Identifier: Apache-2.0
#include "logger/spill_store.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "core/failpoint.hpp"
#include "core/wording.hpp"
#include "logger/json_writer.hpp"
#include "logger/spill_names.hpp"

namespace postrider::logger {

void SpillStore::complain(std::string_view what, int error) const {
  log_(LogLevel::error,
       "postrider: spill folder: " + std::string(what) + ": " + std::generic_category().message(-error));
}

bool SpillStore::has_files() const {
  const MutexLock lock(mutex_);
  return !segments_.empty();
}

SpillFull SpillStore::stage(std::string_view members) {
  return close_line(put(open_line(members.size()), members));
}

char* SpillStore::open_line(std::size_t room) {
  return open_spill_line(staged_.reserve(room + spill_line_room), next_seq_.load() + staged_count_);
}

SpillFull SpillStore::close_line(char* end) {
  if (events() + staged_count_ >= limits_.max_events) return SpillFull::events;
  const char* const line = staged_.view().data() + staged_.size();
  const std::size_t before = staged_.size();
  staged_.take(close_spill_line(line, end));
  if (bytes_.load() + staged_.size() > limits_.max_bytes) {
    staged_.truncate(before);
    return SpillFull::bytes;
  }
  ++staged_count_;
  return SpillFull::no;
}

int SpillStore::append_staged() {
  int error = 0;
  for (int tries = 0; tries < 2; ++tries) {
    error = mend(false);
    if (error != 0) break;
    if (active_is_full()) {
      // Not synced here: who syncs at intervals shall not wait for the disk at each full file.
      constexpr std::size_t most_unsynced = 64;
      if (limits_.durable && synced_size_ != active_size_) {
        if (unsynced_.size() == most_unsynced) (void)sync_sealed();
        const MutexLock lock(mutex_);
        unsynced_.push_back({segments_.back().id, std::move(active_), active_size_});
      }
      seal(false);
    }
    error = open_active(next_seq_.load());
    if (error == 0) error = append_all(folder_, active_.get(), staged_.view());
    if (error == 0) break;
    if (!active_.is_open()) continue;
    // What was written of it must not stay: half a line, or lines of events that count as lost.
    const bool undone = folder_.truncate(active_.get(), active_size_) == 0;
    if (undone && (error == -ENOSPC || error == -EDQUOT)) break;
    seal(false);
  }
  return error;
}

int SpillStore::write_staged() {
  if (staged_count_ == 0) return 0;
  save_gaps();
  const MutexLock append(append_mutex_);
  const int error = append_staged();
  if (error == 0) {
    failpoint("logger.spill.written");
    const MutexLock lock(mutex_);
    Segment& segment = segments_.back();
    active_size_ += staged_.size();
    segment.bytes = active_size_;
    segment.end += staged_count_;
    bytes_ += staged_.size();
    next_seq_ += staged_count_;
    mark_written(false);
  }
  staged_.truncate(0);
  staged_count_ = 0;
  return error;
}

std::optional<TimePoint> SpillStore::oldest_written() {
  const MutexLock lock(mutex_);
  TimePoint when;
  if (segments_.empty() || folder_.written(segments_.front().name, when) != 0) return std::nullopt;
  return when;
}

bool SpillStore::active_is_full() {
  if (!active_.is_open()) return false;
  if (active_size_ >= limits_.segment_bytes) return true;
  const MutexLock lock(mutex_);
  const std::uint64_t has = segments_.back().end - segments_.back().first;
  return has > 0 && has + staged_count_ > limits_.segment_events;
}

int SpillStore::open_active(SpillSeq first) {
  if (active_.is_open()) return 0;
  {
    const MutexLock lock(mutex_);
    // A file that could not be renamed is still in the way.
    if (!segments_.empty() && segments_.back().name == active_name) {
      const std::string name = free_name(segments_.back().first);
      const int error = folder_.rename(active_name, name);
      if (error == -ENOENT) {
        removed_ += forget_segment(segments_.size() - 1);
      } else if (error != 0) {
        return error;
      } else {
        segments_.back().name = name;
        last_is_active_ = false;
        folder_dirty_ = true;
      }
    }
  }
  SpillFile file(folder_, folder_.open(active_name, SpillFolder::Mode::append));
  if (!file.is_open()) return file.get();
  std::int64_t size = folder_.size(file.get());
  if (size > 0) {
    {
      const MutexLock lock(mutex_);
      set_aside(active_name);
    }
    file = SpillFile(folder_, folder_.open(active_name, SpillFolder::Mode::append));
    if (!file.is_open()) return file.get();
    size = folder_.size(file.get());
  }
  if (size != 0) return size < 0 ? static_cast<int>(size) : -EEXIST;
  FileMark mark;
  if (const int error = folder_.mark(file.get(), mark); error != 0) return error;
  active_ = std::move(file);
  active_size_ = synced_size_ = 0;
  synced_seq_ = first;
  folder_dirty_ = true;
  const MutexLock lock(mutex_);
  segments_.push_back({next_id_++, active_name, first, first, 0, mark});
  last_is_active_ = true;
  return 0;
}

bool SpillStore::is_known(std::string_view name) const {
  return std::any_of(segments_.begin(), segments_.end(),
                     [&](const Segment& segment) { return segment.name == name; });
}

bool SpillStore::is_free(const std::string& name) {
  FileMark other;
  return !is_known(name) && folder_.mark(name, other) == -ENOENT;
}

std::string SpillStore::free_name(SpillSeq first) {
  // Only files without an event of ours share their first number; another one's name must never be taken, be
  // it of ours, one that could not be read, or one that somebody put there meanwhile.
  unsigned turn = 0;
  for (bool taken = true; taken && turn < 9999; turn += taken ? 1 : 0) {
    taken = !is_free(segment_name(first, turn));
  }
  return segment_name(first, turn);
}

void SpillStore::seal(bool for_replay) {
  active_.reset();
  const MutexLock lock(mutex_);
  last_is_active_ = false;
  Segment& segment = segments_.back();
  if (segment.bytes == 0) {
    // Nothing of it counts. What cannot be removed is in the way of the next file, which tries again.
    const int error = folder_.remove(active_name);
    if (error == 0 || error == -ENOENT) segments_.pop_back();
    return;
  }
  const std::string name = for_replay && is_free(replay_name) ? replay_name : free_name(segment.first);
  if (const int error = folder_.rename(active_name, name); error != 0) {
    news_.failed(DiskTask::rename, "cannot rename a full file", error);
    return;
  }
  news_.went_well(DiskTask::rename);
  segment.name = name;
  folder_dirty_ = true;
  failpoint("logger.spill.renamed");
}

std::uint64_t SpillStore::sync() {
  save_gaps();
  const MutexLock append(append_mutex_);
  (void)mend(false);  // what is in no folder is safe from nothing
  const bool kept = sync_sealed();
  sync_active();
  if (limits_.durable && kept && (!active_.is_open() || synced_size_ == active_size_)) {
    const MutexLock lock(mutex_);
    mark_written(true);
  }
  return std::exchange(unkept_, 0);
}

bool SpillStore::sync_sealed() {
  bool kept = true;
  for (const Sealed& sealed : unsynced_) {
    const int error = folder_.sync(sealed.file.get());
    if (error == 0) continue;
    news_.failed(DiskTask::sync, "a sync failed, writing the file anew", error);
    if (!replace_sealed(sealed.id, sealed.file.get(), sealed.size)) {
      // It can still be read and replayed; only a power cut could take it.
      news_.failed(DiskTask::sync, "a sync failed; a power cut would take the events of a full file", error);
      kept = false;
    }
  }
  if (!unsynced_.empty()) folder_dirty_ = true;
  unsynced_.clear();
  return kept;
}

bool SpillStore::replace_sealed(std::uint64_t id, int handle, std::uint64_t size) {
  std::string bytes(size, '\0');
  for (std::size_t got = 0; got < bytes.size();) {
    const std::int64_t more = folder_.read_at(handle, bytes.data() + got, bytes.size() - got, got);
    if (more <= 0) return false;
    got += static_cast<std::size_t>(more);
  }
  const SpillFile copy(folder_, folder_.open(rewrite_name, SpillFolder::Mode::append));
  if (!copy.is_open() || folder_.truncate(copy.get(), 0) != 0 ||
      append_all(folder_, copy.get(), bytes) != 0 || folder_.sync(copy.get()) != 0) {
    return false;
  }
  const MutexLock lock(mutex_);
  const auto found = std::find_if(segments_.begin(), segments_.end(),
                                  [&](const Segment& segment) { return segment.id == id; });
  if (found == segments_.end()) return folder_.remove(rewrite_name) == 0;  // replayed meanwhile
  return folder_.mark(copy.get(), found->mark) == 0 && folder_.rename(rewrite_name, found->name) == 0;
}

void SpillStore::sync_active() {
  if (!limits_.durable || !active_.is_open() || (synced_size_ == active_size_ && !folder_dirty_)) return;
  const SpillSeq end = next_seq_.load();
  int error = folder_.sync(active_.get());
  if (error == 0 && folder_dirty_) error = folder_.sync_folder();
  if (error == 0) {
    news_.went_well(DiskTask::sync);
    folder_dirty_ = false;
    synced_size_ = active_size_;
    synced_seq_ = end;
    return;
  }
  news_.failed(DiskTask::sync, "a sync failed, writing what is in doubt to a new file", error);
  // The pages may be marked clean now: asking again would be answered with "done". They can still be read.
  std::string lines(active_size_ - synced_size_, '\0');
  std::size_t got = 0;
  while (got < lines.size()) {
    const std::int64_t more =
        folder_.read_at(active_.get(), lines.data() + got, lines.size() - got, synced_size_ + got);
    if (more <= 0) break;
    got += static_cast<std::size_t>(more);
  }
  const SpillSeq first = synced_seq_;
  if (got == lines.size() && !are_ours(lines, first, end)) return replace_active();
  // The old file keeps what was synced, in fact or at least in the books.
  if (const int cut = folder_.truncate(active_.get(), synced_size_); cut != 0) {
    news_.failed(DiskTask::sync, "cannot cut off what is in doubt", cut);
  }
  {
    const MutexLock lock(mutex_);
    Segment& segment = segments_.back();
    segment.bytes = synced_size_;
    segment.end = first;
    bytes_ -= lines.size();
  }
  seal(false);
  if (got == lines.size() && rewrite(lines, first, end)) return;
  give_up(first, end);
  unkept_ += end - first;
}

void SpillStore::save_gaps() {
  const MutexLock lock(mutex_);
  (void)gaps_.save();  // tried again with the next write; at worst the next process tells of them once more
}

void SpillStore::give_up(SpillSeq first, SpillSeq end) {
  const MutexLock lock(mutex_);
  if (segments_.empty()) {
    move_cursor({end, 0, 0});
  } else {
    segments_.back().dropped += end - first;
    dropped_ahead_ += end - first;
    gaps_.add({first, end});
  }
}

bool SpillStore::are_ours(std::string_view lines, SpillSeq first, SpillSeq end) {
  SpillSeq expected = first;
  for (std::string_view rest = lines; !rest.empty(); ++expected) {
    const std::size_t newline = rest.find('\n');
    const SpillLine line = parse_spill_line(rest.substr(0, newline));
    if (newline == std::string_view::npos || line.kind != SpillLine::Kind::ours || line.seq != expected)
      return false;
    rest.remove_prefix(newline + 1);
  }
  return expected == end;
}

void SpillStore::replace_active() {
  const SpillFile file = std::move(active_);
  const std::uint64_t size = active_size_;
  const std::uint64_t id = [this] {
    const MutexLock lock(mutex_);
    return segments_.back().id;
  }();
  seal(false);
  if (!replace_sealed(id, file.get(), size)) {
    news_.failed(DiskTask::sync, "a sync failed; a power cut would take the events of a file", -EIO);
  }
  folder_dirty_ = folder_.sync_folder() != 0;
}

bool SpillStore::rewrite(std::string_view lines, SpillSeq first, SpillSeq end) {
  if (open_active(first) != 0) return false;
  if (append_all(folder_, active_.get(), lines) == 0 && folder_.sync(active_.get()) == 0 &&
      folder_.sync_folder() == 0) {
    active_size_ = synced_size_ = lines.size();
    synced_seq_ = end;
    folder_dirty_ = false;
    const MutexLock lock(mutex_);
    segments_.back().bytes = active_size_;
    segments_.back().end = end;
    bytes_ += lines.size();
    return true;
  }
  if (folder_.truncate(active_.get(), 0) != 0)
    news_.failed(DiskTask::sync, "cannot undo a failed write", -EIO);
  seal(false);
  return false;
}

std::uint64_t SpillStore::drop_oldest() {
  const MutexLock append(append_mutex_);
  bool only_active = false;
  {
    const MutexLock lock(mutex_);
    const std::size_t first = reading_ != 0 ? 1 : 0;
    if (segments_.size() <= first) return 0;
    only_active = last_is_active_ && segments_.size() == first + 1;
    if (only_active && segments_.back().bytes == 0) return 0;
  }
  if (only_active) seal(false);
  const MutexLock lock(mutex_);
  const std::size_t index = reading_ != 0 ? 1 : 0;
  if (index >= segments_.size()) return 0;
  const std::string& name = segments_[index].name;
  if (const int error = folder_.remove(name); error != 0 && error != -ENOENT) {
    news_.failed(DiskTask::remove, "cannot remove " + name, error);
    return 0;
  }
  return forget_segment(index);
}

std::optional<SpillStore::Opened> SpillStore::open_front() {
  const MutexLock append(append_mutex_);
  if (mend(false) != 0) return std::nullopt;
  for (std::uint64_t missed = 0;;) {
    bool front_is_active = false;
    {
      const MutexLock lock(mutex_);
      if (segments_.empty()) return std::nullopt;
      front_is_active = segments_.size() == 1 && last_is_active_;
      if (front_is_active && segments_.front().bytes == 0) return std::nullopt;
    }
    if (front_is_active) {
      sync_active();  // what it cannot keep, the writer hears of at its next sync
      if (active_.is_open()) seal(true);
    }
    const MutexLock lock(mutex_);
    if (segments_.empty()) return std::nullopt;
    Segment& segment = segments_.front();
    // The name is for people and for the other system's reader; a file that cannot be renamed is read as it
    // is.
    if (segment.name != replay_name && is_free(replay_name) &&
        folder_.rename(segment.name, replay_name) == 0) {
      segment.name = replay_name;
      folder_dirty_ = true;
    }
    SpillFile file(folder_, folder_.open(segment.name, SpillFolder::Mode::read));
    if (file.is_open()) {
      news_.went_well(DiskTask::open);
      take_as_it_is(segment, file.get());
      reading_ = segment.id;
      reading_file_ = std::move(file);
      return Opened{reading_file_.get(), segment.id, segment.end, segment.bytes};
    }
    if (file.get() != -ENOENT) {
      news_.failed(DiskTask::open, "cannot open " + segment.name, file.get());
      return std::nullopt;
    }
    // Saved, or given up; what cannot be saved now is not waited for.
    if (std::exchange(missed, segment.id) != segment.id) {
      mend_segment(0, false);
    } else {
      removed_ += forget_segment(0);
    }
  }
}

void SpillStore::take_as_it_is(Segment& segment, int handle) {
  FileMark found;
  const std::int64_t size = folder_.size(handle);
  if (folder_.mark(handle, found) != 0 || found == segment.mark || size < 0) return;
  log_(LogLevel::warning, "postrider: somebody put another file in the place of a spill file; " +
                              segment.name + " is replayed as it is");
  bytes_ += static_cast<std::uint64_t>(size) - segment.bytes;  // may wrap, and comes out right
  segment.bytes = static_cast<std::uint64_t>(size);
  segment.mark = found;
}

void SpillStore::finished(std::uint64_t id, bool unreadable) {
  const MutexLock lock(mutex_);
  if (segments_.empty() || segments_.front().id != id) return;
  const Segment& segment = segments_.front();
  if (!is_still(folder_, segment.name, segment.mark)) {
    FileMark other;
    if (folder_.mark(segment.name, other) == 0) set_aside(segment.name);
  } else {
    const std::string aside = "eventlog-spillover.unreadable-" + std::to_string(segment.first) + ".jsonl";
    const int error = unreadable ? folder_.rename(segment.name, aside) : folder_.remove(segment.name);
    if (error != 0) news_.failed(DiskTask::remove, "cannot remove " + segment.name, error);
    if (error == 0) news_.went_well(DiskTask::remove);
  }
  reading_file_.reset();
  bytes_ -= segment.bytes;
  // A line that was given up and could not be cut off may have been read after all.
  cursor_seq_ = std::max(cursor_seq_.load(), segment.end + segment.dropped);
  dropped_ahead_ -= segment.dropped;
  if (segment.dropped > 0) {
    // Only when the checkpoint is behind them do the gaps go.
    move_cursor({cursor_seq_.load(), 0, 0});
    gaps_.forget_before(cursor_seq_.load());
    (void)gaps_.save();
  }
  segments_.pop_front();
  reading_ = 0;
}

void SpillStore::move_cursor(const SpillCursor& cursor) {
  cursor_seq_ = cursor.seq;
  tell_checkpoint(checkpoint_.store(cursor));
}

void SpillStore::mark_written(bool synced) {
  const SpillSeq end = next_seq_.load();
  tell_checkpoint(checkpoint_.store(SpillMarks{end, synced ? end : checkpoint_.marks().synced}));
}

void SpillStore::tell_checkpoint(int error) {
  if (error != 0) {
    news_.failed(DiskTask::checkpoint, "cannot write the checkpoint", error);
  } else {
    news_.went_well(DiskTask::checkpoint);
  }
}

}  // namespace postrider::logger
