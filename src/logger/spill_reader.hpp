// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "logger/spill_store.hpp"
#include "postrider/event_log_client.hpp"

namespace postrider::logger {

/// Events read from the spill files, in their order. The views live until the reader is used again.
struct SpillBatch {
  struct Item {
    std::string_view members;
    std::string_view key;
    /// Not counted as waiting before: written by another system, or with a number that is out of turn.
    bool foreign = false;
    std::uint64_t offset = 0;  ///< where its line begins
    SpillSeq expected = 0;     ///< the number that was next in turn when its line began
    std::uint64_t lost = 0;    ///< in this batch before it
  };
  struct Fragment {
    std::string_view bytes;
    std::uint64_t offset = 0;
  };
  std::vector<Item> items;
  std::vector<Fragment> fragments;  ///< damaged lines
  std::uint64_t lost = 0;           ///< events whose numbers are missing
  std::uint64_t end_offset = 0;
  SpillSeq end_seq = 0;
  bool ends_file = false;

 private:
  friend class SpillReader;
  std::deque<std::string> made_;  // members of foreign lines with the key that they lacked
};

/// Streams what is in a SpillStore, oldest first, with a buffer of fixed size. Used by one thread.
class SpillReader {
 public:
  struct Committed {
    std::uint64_t lost = 0;         ///< events that damage has taken
    std::uint64_t quarantined = 0;  ///< damaged lines that were set aside
    std::uint64_t discarded = 0;    ///< those for which the quarantine had no room
  };

  explicit SpillReader(SpillStore& store);

  /// Reads on from what was committed. False when there is nothing to read. A batch without items can still
  /// have something to commit.
  [[nodiscard]] bool read(SpillBatch& batch, std::size_t max_events, std::size_t max_bytes);
  /// The first event of the file behind the one that is read; nothing when there is none, or it is not whole.
  /// The views live until the next call.
  [[nodiscard]] std::optional<OutgoingEvent> first_behind();
  /// What `commit` would return; changes nothing.
  [[nodiscard]] static Committed preview(const SpillBatch& batch, std::size_t count);
  /// The first `count` items of the batch read last are done with, and so is all damage before the next one.
  /// Sets damaged lines aside, moves the checkpoint, removes the file when it is at its end.
  Committed commit(const SpillBatch& batch, std::size_t count);

 private:
  [[nodiscard]] bool open();
  /// Reads at the place that was set.
  [[nodiscard]] bool next_is(SpillSeq number);
  /// False when the disk refused.
  bool fill();
  void take_line(SpillBatch& batch, std::string_view line, std::uint64_t offset);
  void take_ours(SpillBatch& batch, const SpillLine& line, std::uint64_t offset);
  void take_foreign(SpillBatch& batch, const SpillLine& line, std::uint64_t offset);
  /// Whether this very line was committed already, from another file.
  [[nodiscard]] bool is_repeat(const SpillLine& line) const;

  SpillStore& store_;
  int handle_ = -1;  // the store's
  std::uint64_t id_ = 0;
  std::uint64_t identity_ = 0;  // checksum of the file's beginning
  std::uint64_t file_bytes_ = 0;
  SpillSeq file_end_ = 0;
  SpillSeq given_out_ = 0;  // no event has this number or a higher one, as far as the store knows
  SpillSeq expected_ = 0;   // as committed
  SpillSeq reading_expected_ = 0;

  std::string behind_;
  std::string buffer_;
  std::uint64_t base_ = 0;   // the file's offset of the buffer's first byte
  std::size_t begin_ = 0;    // of what is not committed
  std::size_t end_ = 0;      // of what was read
  int read_errors_ = 0;      // in a row
  bool unreadable_ = false;  // the disk refused too often; what is left of the file counts as damaged
  /// Committed lines that the next file may have again, by their numbers: checksums of their members.
  std::map<SpillSeq, std::uint64_t> repeatable_;
};

}  // namespace postrider::logger
