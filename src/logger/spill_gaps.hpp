// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "logger/spill_folder.hpp"
#include "logger/spill_line.hpp"

namespace postrider::logger {

/// Numbers that belong to no event any more, because their files were given up: counted and told by the
/// process that did it. Kept in a small file, so that the next process does not take them for damage and
/// tells of them again. When that file is lost, it does. Not synchronised.
class SpillGaps {
 public:
  struct Gap {
    SpillSeq first = 0;
    SpillSeq end = 0;  ///< one after the last
    friend bool operator==(const Gap&, const Gap&) = default;
  };

  explicit SpillGaps(SpillFolder& folder) : folder_(folder) {}

  /// A file that is not there, or damaged, has none.
  void load();
  /// In order, apart from each other.
  [[nodiscard]] const std::vector<Gap>& list() const noexcept { return gaps_; }
  void add(Gap gap);
  /// The replay is at `cursor`: those before it matter no more.
  void forget_before(SpillSeq cursor);
  /// Writes what has changed since the last time. False when the disk refused; the next call tries again.
  bool save();
  /// Somebody may have removed the file: then it is to be saved again.
  void refresh();

 private:
  SpillFolder& folder_;
  std::vector<Gap> gaps_;
  FileMark mark_;  // of the file that was saved or loaded
  bool changed_ = false;
};

}  // namespace postrider::logger
