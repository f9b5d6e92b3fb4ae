// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "logger/ring_format.hpp"

namespace postrider::logger {

/// Gets what was damaged, as it was found: where it lay in the ring's file.
using DamageSink = std::function<void(std::uint64_t offset, std::string_view bytes)>;

struct ScanResult {
  std::uint32_t records = 0;  // to walk over, fillers too
  std::uint32_t live = 0;
  std::uint64_t lost = 0;  // that were live, and cannot be read
  bool uncertain = false;  // there may have been more
};

/// Reads one chunk of a ring that another process has left. A record is believed when its checksum is right;
/// behind one that is not, the next right one is looked for. The numbers of the records tell how many are
/// missing. Repairs the chunk: what was damaged is replaced by a filler, so that whoever walks over it, now
/// or in the next process, finds whole records up to the tail.
class ChunkScan {
 public:
  ChunkScan(char* chunk, std::uint32_t bytes, const DamageSink& sink, std::uint64_t file_offset)
      : chunk_(chunk), bytes_(bytes), sink_(sink), file_offset_(file_offset) {}

  /// `end_seq`: the number after its last record, when that is known.
  [[nodiscard]] ScanResult run(const ChunkMark& mark, std::optional<std::uint64_t> end_seq);
  /// The first record that belongs to `run`, wherever it is.
  [[nodiscard]] std::optional<std::uint64_t> first_seq_of(std::uint64_t run) const;

 private:
  /// The record there, when it is a right one of this run with a number of `least` or above.
  [[nodiscard]] const RecordHead* right_one(std::uint32_t offset, std::uint64_t run,
                                            std::uint64_t least) const;
  /// The next right one in [from, to); `to` when there is none.
  [[nodiscard]] std::uint32_t resync(std::uint32_t from, std::uint32_t to, std::uint64_t run,
                                     std::uint64_t least) const;
  [[nodiscard]] RecordHead& head(std::uint32_t offset) const noexcept;
  /// How many records lie in [from, to) by what they say themselves; 0 when that is nonsense.
  [[nodiscard]] std::uint32_t walk(std::uint32_t from, std::uint32_t to, std::uint32_t& not_done) const;
  void fill(std::uint32_t from, std::uint32_t to, std::optional<std::uint64_t> missing,
            const ChunkMark& mark);

  char* const chunk_;
  const std::uint32_t bytes_;
  const DamageSink& sink_;
  const std::uint64_t file_offset_;
  std::uint64_t expected_ = 0;
  ScanResult result_;
};

}  // namespace postrider::logger
