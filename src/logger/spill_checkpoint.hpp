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

/// The cursor in a small file with two slots, written in turn: a write that is cut off spoils at most the
/// older one. A cursor that is lost or too old makes events come twice, with their keys; never go missing.
class SpillCheckpoint {
 public:
  explicit SpillCheckpoint(SpillFolder& folder) : folder_(folder) {}

  /// What was stored last; nothing when there is no valid slot.
  [[nodiscard]] std::optional<SpillCursor> load();
  /// False when it could not be written; the next call tries again.
  bool store(const SpillCursor& cursor);

 private:
  SpillFolder& folder_;
  SpillFile file_;
  std::uint64_t generation_ = 0;
};

}  // namespace postrider::logger
