// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "logger/spill_line.hpp"

namespace postrider::logger {

inline constexpr const char* active_name = "eventlog-spillover.jsonl";
inline constexpr const char* replay_name = "eventlog-spillover.replay.jsonl";
inline constexpr const char* rewrite_name = "eventlog-spillover.rewrite.tmp";
inline constexpr std::string_view segment_prefix = "eventlog-spillover.";
inline constexpr std::string_view segment_suffix = ".jsonl";
inline constexpr std::size_t segment_digits = 20;
inline constexpr std::string_view ring_prefix = "eventlog-ring.";

/// Sorts by the number of the first event, then by `turn` (0 to 9999).
[[nodiscard]] inline std::string segment_name(SpillSeq first, unsigned turn) {
  std::string number = std::to_string(first);
  std::string name(segment_prefix);
  name.append(segment_digits - number.size(), '0').append(number);
  std::string suffix = std::to_string(turn);
  name.append("-").append(4 - suffix.size(), '0').append(suffix).append(segment_suffix);
  return name;
}

/// The number in the name of a full file; nothing for other names.
[[nodiscard]] inline std::optional<SpillSeq> number_in(std::string_view name) {
  if (!name.starts_with(segment_prefix) || !name.ends_with(segment_suffix)) return std::nullopt;
  name.remove_prefix(segment_prefix.size());
  SpillSeq first = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), first);
  if (error != std::errc{} || stop != name.data() + segment_digits || *stop != '-') return std::nullopt;
  if (first > max_spill_seq) return std::nullopt;
  return first;
}

/// Whether a logger would open a file of this name in its folder.
[[nodiscard]] inline bool is_logger_file(std::string_view name) {
  constexpr std::array<std::string_view, 9> names{"lock",      "jsonl",    "replay.jsonl", "checkpoint",
                                                  "gaps",      "gaps.tmp", "rewrite.tmp",  "quarantine.jsonl",
                                                  "dead.jsonl"};
  if (name.starts_with(ring_prefix)) {
    name.remove_prefix(ring_prefix.size());
    return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
  }
  if (!name.starts_with(segment_prefix)) return false;
  if (number_in(name)) return true;
  return std::find(names.begin(), names.end(), name.substr(segment_prefix.size())) != names.end();
}

}  // namespace postrider::logger
