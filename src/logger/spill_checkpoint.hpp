// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "logger/spill_folder.hpp"
#include "logger/spill_line.hpp"

namespace postrider::logger {

/// How far the replay has come.
struct SpillCursor {
  SpillSeq seq = 0;          ///< the next event to be replayed; all before it are done with
  std::uint64_t offset = 0;  ///< where it begins …
  std::uint64_t file = 0;    ///< … in the file whose beginning has this checksum
  friend bool operator==(const SpillCursor&, const SpillCursor&) = default;
};

/// Which numbers the files have, at least: what of them is missing later, somebody has taken.
struct SpillMarks {
  SpillSeq written = 0;  ///< all before it are written; a power cut may take some …
  SpillSeq synced = 0;   ///< … but none before this
  friend bool operator==(const SpillMarks&, const SpillMarks&) = default;
};

/// Cursor and marks in a small file with two slots, written in turn: a write that is cut off spoils at most
/// the older one. A cursor that is lost or too old makes events come twice, with their keys; never go
/// missing. Not synchronised.
class SpillCheckpoint {
 public:
  explicit SpillCheckpoint(SpillFolder& folder) : folder_(folder), boot_(folder.boot()) {}

  /// What was stored last; nothing when there is no valid slot.
  [[nodiscard]] std::optional<SpillCursor> load();
  /// The number up to which the last process's files had everything, as far as the machine has kept it. 0
  /// before `load`, and when nobody knows.
  [[nodiscard]] SpillSeq known_end() const noexcept { return known_end_; }
  /// The replay begins here, and events up to `written` were found; nothing is written.
  void begin(const SpillCursor& cursor, SpillSeq written) noexcept {
    cursor_ = cursor;
    marks_.written = written;
  }
  /// 0, or a negative errno when it could not be written; the next call tries again.
  [[nodiscard]] int store(const SpillCursor& cursor);
  [[nodiscard]] int store(const SpillMarks& marks);
  /// Writes it again when somebody has removed it. 0, or a negative errno.
  [[nodiscard]] int refresh();
  [[nodiscard]] const SpillMarks& marks() const noexcept { return marks_; }

 private:
  [[nodiscard]] int write();

  SpillFolder& folder_;
  const std::uint64_t boot_;
  SpillCursor cursor_;
  SpillMarks marks_;
  SpillSeq known_end_ = 0;
  SpillFile file_;
  FileMark file_mark_;
  std::uint64_t generation_ = 0;
};

}  // namespace postrider::logger
