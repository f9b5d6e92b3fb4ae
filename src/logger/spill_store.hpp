// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "logger/spill_checkpoint.hpp"
#include "logger/spill_folder.hpp"
#include "logger/spill_gaps.hpp"
#include "logger/spill_line.hpp"
#include "logger/text_buffer.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/log.hpp"

namespace postrider::logger {

struct SpillLimits {
  std::uint64_t max_events = 10'000;           ///< waiting in all files together
  std::uint64_t max_bytes = 50 * 1024 * 1024;  ///< of all files together
  std::uint64_t segment_bytes = 8 * 1024 * 1024;
  std::uint64_t max_aside_bytes = 16 * 1024 * 1024;  ///< of the quarantine; and of the dead letters
  bool durable = true;  ///< new and renamed files are made to survive a power cut too
};

enum class SpillFull { no, events, bytes };

/// A file beside the others that only grows, up to a limit. Thread-safe.
class AsideFile {
 public:
  AsideFile(SpillFolder& folder, std::string name, std::uint64_t max_bytes)
      : folder_(folder), name_(std::move(name)), max_bytes_(max_bytes) {}
  /// One line, with a newline added. False when it is full or cannot be written.
  bool append(std::string_view line, bool durable) POSTRIDER_EXCLUDES(mutex_);

 private:
  SpillFolder& folder_;
  const std::string name_;
  const std::uint64_t max_bytes_;
  Mutex mutex_;
  SpillFile file_ POSTRIDER_GUARDED_BY(mutex_);
  std::uint64_t size_ POSTRIDER_GUARDED_BY(mutex_) = 0;
};

/// The events of one folder that wait on disk, oldest first:
///
///     eventlog-spillover.replay.jsonl             the file that is being replayed
///     eventlog-spillover.<number>-<n>.jsonl       full files; the number is that of their first event
///     eventlog-spillover.jsonl                    the file that is appended to
///     eventlog-spillover.checkpoint               how far the replay has come
///     eventlog-spillover.gaps                     what was given up ahead of it
///     eventlog-spillover.quarantine.jsonl         damaged lines, as they were found
///     eventlog-spillover.dead.jsonl               events that the receiver refused for good
///
/// One thread writes (`stage`, `write_staged`, `sync`, `drop_oldest`), one reads (through SpillReader), all
/// may ask. The reader never holds the writer up, but for the moment of a rename.
class SpillStore {
 public:
  /// Repairs the end of the file that was being written when the last process died; reads no more than ends
  /// and beginnings, however much there is. Throws Error when the folder cannot be read.
  SpillStore(SpillFolder& folder, SpillLimits limits, LogCallback log);

  // The writer's.

  /// Takes an event for the next `write_staged`, unless a limit would be passed.
  [[nodiscard]] SpillFull stage(std::string_view members);
  /// The same without a copy: members of up to `room` bytes are written behind the pointer. `close_line` ends
  /// what was begun last; without it nothing was staged. `room` may be used as scratch.
  [[nodiscard]] char* open_line(std::size_t room);
  [[nodiscard]] SpillFull close_line(char* end);
  [[nodiscard]] std::size_t staged() const noexcept { return staged_count_; }
  [[nodiscard]] std::size_t staged_bytes() const noexcept { return staged_.size(); }
  /// Writes what is staged, all or nothing; a failed write is undone, and tried once more in a new file. 0,
  /// or a negative errno: the events are not in the store then. Nothing is staged afterwards.
  [[nodiscard]] int write_staged() POSTRIDER_EXCLUDES(append_mutex_, mutex_);
  /// Everything written survives a power cut. When the disk refuses, the events in doubt are written to a new
  /// file instead. Returns how many, from the last one back, could not be kept: they are not in the store any
  /// more.
  [[nodiscard]] std::uint64_t sync() POSTRIDER_EXCLUDES(append_mutex_, mutex_);
  /// Gives up the oldest file that is not being read. Returns how many events it had.
  [[nodiscard]] std::uint64_t drop_oldest() POSTRIDER_EXCLUDES(append_mutex_, mutex_);

  // Anybody's.

  [[nodiscard]] std::uint64_t events() const noexcept {
    const SpillSeq cursor = cursor_seq_.load() + dropped_ahead_.load();
    const SpillSeq next = next_seq_.load();
    return next > cursor ? next - cursor : 0;
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(); }
  [[nodiscard]] SpillSeq next_seq() const noexcept { return next_seq_.load(); }
  [[nodiscard]] SpillSeq cursor() const noexcept { return cursor_seq_.load(); }
  /// Events of this folder that were waiting when it was opened. Foreign lines are counted when they are
  /// read.
  [[nodiscard]] std::uint64_t recovered() const noexcept { return recovered_; }
  /// Bytes that a dying process had left behind its last whole line.
  [[nodiscard]] std::uint64_t torn_tails() const noexcept { return torn_tails_; }
  [[nodiscard]] bool has_files() const POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] AsideFile& quarantine() noexcept { return quarantine_; }
  [[nodiscard]] AsideFile& dead_letters() noexcept { return dead_letters_; }
  [[nodiscard]] const SpillLimits& limits() const noexcept { return limits_; }

 private:
  friend class SpillReader;

  struct Segment {
    std::uint64_t id = 0;  // of this process
    std::string name;
    SpillSeq first = 0;
    SpillSeq end = 0;           // one after its last event
    std::uint64_t bytes = 0;    // what lies behind them is not the file's
    std::uint64_t dropped = 0;  // events that were given up between this file and the next
  };
  struct Opened {
    SpillFile file;
    std::uint64_t id = 0;
    SpillSeq end = 0;
    std::uint64_t bytes = 0;
  };

  // Opening.
  void load(std::vector<std::string> names);
  void adopt(const std::string& name, std::optional<SpillSeq> first) POSTRIDER_REQUIRES(append_mutex_);
  void repair_active() POSTRIDER_REQUIRES(append_mutex_);
  void number_segments() POSTRIDER_REQUIRES(append_mutex_);
  /// Numbers that the last process gave up are not missing.
  void apply_gaps() POSTRIDER_REQUIRES(mutex_);
  struct Tail {
    std::optional<SpillSeq> last;  // the number of the last line that is whole and ours
    std::uint64_t end = 0;         // of the last line that has its newline
    bool foreign = false;          // another system wrote behind our last line
    SpillSeq damaged = 0;          // events behind it that are there, but not whole
  };
  [[nodiscard]] Tail read_tail(const Segment& segment);
  [[nodiscard]] std::optional<SpillSeq> first_number(const Segment& segment);

  // Writing.
  [[nodiscard]] int open_active(SpillSeq first) POSTRIDER_REQUIRES(append_mutex_);
  /// Closes the active file and gives it another name. It stays where it is when that fails.
  void seal(const char* new_name) POSTRIDER_REQUIRES(append_mutex_);
  [[nodiscard]] std::string free_name(SpillSeq first) POSTRIDER_REQUIRES(mutex_);
  /// What cannot be kept is added to `unkept_`.
  void sync_active() POSTRIDER_REQUIRES(append_mutex_);
  /// Full files that were not yet synced.
  void sync_sealed() POSTRIDER_REQUIRES(append_mutex_);
  /// A copy that is synced takes the file's place.
  [[nodiscard]] bool replace_sealed(std::uint64_t id, int handle, std::uint64_t size)
      POSTRIDER_REQUIRES(append_mutex_);
  /// Those that were told meanwhile: a process that dies between the two tells of them again rather than
  /// never.
  void save_gaps() POSTRIDER_EXCLUDES(mutex_);
  /// These numbers belong to no event any more; readers must not take them for damage.
  void give_up(SpillSeq first, SpillSeq end) POSTRIDER_REQUIRES(append_mutex_);
  [[nodiscard]] bool rewrite(std::string_view lines, SpillSeq first, SpillSeq end)
      POSTRIDER_REQUIRES(append_mutex_);

  // The reader's.
  [[nodiscard]] std::optional<Opened> open_front() POSTRIDER_EXCLUDES(append_mutex_, mutex_);
  /// Removes the file; one that could not be read to its end is kept under another name.
  void finished(std::uint64_t id, bool unreadable) POSTRIDER_EXCLUDES(mutex_);
  void move_cursor(const SpillCursor& cursor) POSTRIDER_REQUIRES(mutex_);
  void complain(std::string_view what, int error) const;

  SpillFolder& folder_;
  const SpillLimits limits_;
  const LogCallback log_;
  SpillCheckpoint checkpoint_;
  AsideFile quarantine_;
  AsideFile dead_letters_;
  SpillCursor start_;  // where the reader begins

  // The writer's own.
  TextBuffer staged_;
  std::size_t staged_count_ = 0;

  Mutex append_mutex_;  // taken before mutex_
  SpillFile active_ POSTRIDER_GUARDED_BY(append_mutex_);
  std::uint64_t active_size_ POSTRIDER_GUARDED_BY(append_mutex_) = 0;
  std::uint64_t synced_size_ POSTRIDER_GUARDED_BY(append_mutex_) = 0;
  SpillSeq synced_seq_ POSTRIDER_GUARDED_BY(append_mutex_) = 0;
  struct Sealed {
    std::uint64_t id;
    SpillFile file;
    std::uint64_t size;
  };
  std::deque<Sealed> unsynced_ POSTRIDER_GUARDED_BY(append_mutex_);
  bool folder_dirty_ POSTRIDER_GUARDED_BY(append_mutex_) = false;
  std::uint64_t unkept_ POSTRIDER_GUARDED_BY(append_mutex_) = 0;

  mutable Mutex mutex_;
  std::deque<Segment> segments_ POSTRIDER_GUARDED_BY(mutex_);
  SpillGaps gaps_ POSTRIDER_GUARDED_BY(mutex_);
  bool last_is_active_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::uint64_t reading_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::uint64_t next_id_ POSTRIDER_GUARDED_BY(mutex_) = 1;

  std::atomic<SpillSeq> next_seq_{1};
  std::atomic<SpillSeq> cursor_seq_{1};
  std::atomic<std::uint64_t> dropped_ahead_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::uint64_t recovered_ = 0;
  std::uint64_t torn_tails_ = 0;
};

}  // namespace postrider::logger
