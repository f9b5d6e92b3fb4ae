// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace postrider::logger {

/// One event's place in the spill files. Counts on without gaps over all files and lives of a folder, so that
/// what is missing can be counted whatever happened to its bytes.
using SpillSeq = std::uint64_t;

/// No folder gets there by itself. A higher number, found in a file, is not one to count on from: there might
/// be no next one.
inline constexpr SpillSeq max_spill_seq = SpillSeq{1} << 62U;

/// A line of a spill file is one JSON object:
///
///     {"spillSeq":17,"applicationId":"…",…,"idempotencyKey":"…","xxh3":"0123456789abcdef"}
///
/// The checksum is XXH3 (64 bits) of everything before its comma. A reader that ignores unknown members sees
/// an event; a line without the first and the last member was written by another system.
struct SpillLine {
  enum class Kind { ours, foreign, corrupt };
  Kind kind = Kind::corrupt;
  SpillSeq seq = 0;            ///< of ours
  std::string_view members{};  ///< without braces, without spillSeq and checksum
  std::string_view key{};      ///< the idempotency key; empty when a foreign line has none
};

/// A line is written in three steps: its beginning, the members behind that, its end with the newline. Room
/// beside that for the members: `spill_line_room`. Each returns the end of what was written.
inline constexpr std::size_t spill_line_room = 96;
[[nodiscard]] char* open_spill_line(char* line, SpillSeq seq) noexcept;
[[nodiscard]] char* close_spill_line(const char* line, char* end) noexcept;

/// Appends a line, with its newline. `members` ends with the idempotency key, as `append_members` writes it.
void append_spill_line(std::string& out, SpillSeq seq, std::string_view members);

/// Reads a line without its newline. Views point into `line`.
[[nodiscard]] SpillLine parse_spill_line(std::string_view line);

/// Only the number that a line of ours begins with, unverified.
[[nodiscard]] std::optional<SpillSeq> leading_seq(std::string_view line) noexcept;

/// Whether a damaged line still begins, and still ends, like one of ours.
struct LineMarks {
  bool begins = false;
  bool ends = false;
};
[[nodiscard]] LineMarks marks_of(std::string_view line) noexcept;

/// Where a second line of ours begins inside a line whose newline was damaged; npos when there is none.
[[nodiscard]] std::size_t find_glued_line(std::string_view line) noexcept;

/// The shortest possible line is longer than this, the longest one shorter.
inline constexpr std::size_t max_line_bytes = 1 << 20;

}  // namespace postrider::logger
