// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "logger/disk_news.hpp"
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
  /// No file has more, unless they were staged together. What `drop_oldest` gives up is a file.
  std::uint64_t segment_events = ~std::uint64_t{0};
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
  FileMark mark_ POSTRIDER_GUARDED_BY(mutex_);
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
  SpillStore(SpillFolder& folder, SpillLimits limits, LogCallback log, Clock& clock = Clock::system());

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
  /// When the oldest file was written to last, if somebody knows.
  [[nodiscard]] std::optional<TimePoint> oldest_written();
  /// Notices which files somebody has removed or replaced. What is still open is written anew, the rest is
  /// counted (see `take_removed`). Each write and sync looks after the folder and the file that it writes
  /// to, this after all.
  void look_after_files() POSTRIDER_EXCLUDES(append_mutex_, mutex_);
  /// Events that were found to be gone since the last call, because somebody removed or cut files: they are
  /// not in the store any more. Some may be gone already when it is opened; `recovered` has them too.
  [[nodiscard]] std::uint64_t take_removed() noexcept { return removed_.exchange(0); }
  /// Bytes that a dying process had left behind its last whole line.
  [[nodiscard]] std::uint64_t torn_tails() const noexcept { return torn_tails_; }
  [[nodiscard]] bool has_files() const POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] AsideFile& quarantine() noexcept { return quarantine_; }
  [[nodiscard]] AsideFile& dead_letters() noexcept { return dead_letters_; }
  [[nodiscard]] DiskNews& news() noexcept { return news_; }
  [[nodiscard]] const SpillLimits& limits() const noexcept { return limits_; }

 private:
  friend class SpillReader;

  struct Segment {
    std::uint64_t id = 0;  // of this process
    std::string name;
    SpillSeq first = 0;
    SpillSeq end = 0;         // one after its last event
    std::uint64_t bytes = 0;  // what lies behind them is not the file's
    FileMark mark{};
    std::uint64_t dropped = 0;  // events that were given up between this file and the next
  };
  struct Opened {
    int handle = -1;  // until `finished`
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
  /// This one and the next throw Error when the file cannot be read.
  [[nodiscard]] Tail read_tail(const Segment& segment) POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] std::optional<SpillSeq> first_number(const Segment& segment) POSTRIDER_REQUIRES(mutex_);
  /// Whether to count on from a number: it is not absurd, or known to have been given out.
  [[nodiscard]] bool may_be_ours(SpillSeq number) const POSTRIDER_REQUIRES(mutex_);

  // Writing.
  /// What is staged belongs into another file.
  [[nodiscard]] bool active_is_full() POSTRIDER_REQUIRES(append_mutex_) POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] int open_active(SpillSeq first) POSTRIDER_REQUIRES(append_mutex_);
  /// Closes the active file and gives it another name: that of the file being replayed, or a number. It stays
  /// where it is when that fails.
  void seal(bool for_replay) POSTRIDER_REQUIRES(append_mutex_);
  [[nodiscard]] bool is_known(std::string_view name) const POSTRIDER_REQUIRES(mutex_);
  /// There is no file of this name, also none that is not known: nothing is ever renamed onto another file.
  [[nodiscard]] bool is_free(const std::string& name) POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] std::string free_name(SpillSeq first) POSTRIDER_REQUIRES(mutex_);
  /// What cannot be kept is added to `unkept_`.
  void sync_active() POSTRIDER_REQUIRES(append_mutex_);
  /// Full files that were not yet synced. False when the disk refused, and would not have a copy either.
  bool sync_sealed() POSTRIDER_REQUIRES(append_mutex_);
  /// A copy that is synced takes the file's place.
  [[nodiscard]] bool replace_sealed(std::uint64_t id, int handle, std::uint64_t size)
      POSTRIDER_REQUIRES(append_mutex_);
  /// Those that were told meanwhile: a process that dies between the two tells of them again rather than
  /// never.
  void save_gaps() POSTRIDER_EXCLUDES(mutex_);
  /// These numbers belong to no event any more; readers must not take them for damage.
  void give_up(SpillSeq first, SpillSeq end) POSTRIDER_REQUIRES(append_mutex_);
  /// All of them, without a gap, and nothing else.
  [[nodiscard]] static bool are_ours(std::string_view lines, SpillSeq first, SpillSeq end);
  /// A file of an earlier process with lines of somebody else among ours is copied as a whole.
  void replace_active() POSTRIDER_REQUIRES(append_mutex_);
  [[nodiscard]] bool rewrite(std::string_view lines, SpillSeq first, SpillSeq end)
      POSTRIDER_REQUIRES(append_mutex_);

  // Mending.
  /// Looks after the folder and the active file, or after all files. 0, or a negative errno when there is no
  /// folder to write into.
  [[nodiscard]] int mend(bool all) POSTRIDER_REQUIRES(append_mutex_) POSTRIDER_EXCLUDES(mutex_);
  void mend_segment(std::size_t index, bool replaced) POSTRIDER_REQUIRES(append_mutex_, mutex_);
  /// One that is open for any reason; -1 when there is none.
  [[nodiscard]] int handle_of(const Segment& segment) POSTRIDER_REQUIRES(append_mutex_, mutex_);
  /// What can still be read through the handle gets the file's name. 0, or a negative errno.
  [[nodiscard]] int rescue(std::size_t index, int handle) POSTRIDER_REQUIRES(append_mutex_, mutex_);
  /// Closes the active file when it has not the size that it should have.
  void look_for_cut() POSTRIDER_REQUIRES(append_mutex_) POSTRIDER_EXCLUDES(mutex_);
  /// The file is not there any more. Returns how many events it had that were not yet read.
  [[nodiscard]] std::uint64_t forget_segment(std::size_t index) POSTRIDER_REQUIRES(append_mutex_, mutex_);
  /// What is not ours is not ours to remove.
  void set_aside(const std::string& name) POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] int append_staged() POSTRIDER_REQUIRES(append_mutex_);

  // The reader's.
  [[nodiscard]] std::optional<Opened> open_front() POSTRIDER_EXCLUDES(append_mutex_, mutex_);
  /// A file that is not the one we wrote is read whole.
  void take_as_it_is(Segment& segment, int handle) POSTRIDER_REQUIRES(mutex_);
  /// Removes the file; one that could not be read to its end is kept under another name.
  void finished(std::uint64_t id, bool unreadable) POSTRIDER_EXCLUDES(mutex_);
  void move_cursor(const SpillCursor& cursor) POSTRIDER_REQUIRES(mutex_);
  /// So that the next process notices when somebody has taken events away.
  void mark_written(bool synced) POSTRIDER_REQUIRES(append_mutex_, mutex_);
  void tell_checkpoint(int error);
  void complain(std::string_view what, int error) const;

  SpillFolder& folder_;
  const SpillLimits limits_;
  const LogCallback log_;
  DiskNews news_;
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
  std::atomic<bool> folder_dirty_{false};  // files were made, renamed or removed since the last sync
  std::uint64_t unkept_ POSTRIDER_GUARDED_BY(append_mutex_) = 0;

  mutable Mutex mutex_;
  std::deque<Segment> segments_ POSTRIDER_GUARDED_BY(mutex_);
  SpillCheckpoint checkpoint_ POSTRIDER_GUARDED_BY(mutex_);
  SpillGaps gaps_ POSTRIDER_GUARDED_BY(mutex_);
  bool last_is_active_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::uint64_t reading_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  SpillFile reading_file_ POSTRIDER_GUARDED_BY(mutex_);
  std::uint64_t next_id_ POSTRIDER_GUARDED_BY(mutex_) = 1;

  std::atomic<SpillSeq> next_seq_{1};
  std::atomic<SpillSeq> cursor_seq_{1};
  std::atomic<std::uint64_t> dropped_ahead_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> removed_{0};
  std::uint64_t recovered_ = 0;
  std::uint64_t torn_tails_ = 0;
};

}  // namespace postrider::logger
