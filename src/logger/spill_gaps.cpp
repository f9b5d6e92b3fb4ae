// SPDX-License-Identifier: Apache-2.0
#include "logger/spill_gaps.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>

#include "logger/checksum.hpp"

namespace postrider::logger {
namespace {

constexpr const char* name = "eventlog-spillover.gaps";
constexpr const char* new_name = "eventlog-spillover.gaps.tmp";
constexpr std::size_t most = 1000;  // apart from each other; as a rule there is one
constexpr std::size_t largest_file = 64 * 1024;

/// Takes a number and the character behind it off the front.
bool take_number(std::string_view& text, std::uint64_t& number, char behind) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop == end || *stop != behind) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()) + 1);
  return true;
}

}  // namespace

// The file has a line "first end" for each gap, and a last one with the checksum of the others.
void SpillGaps::load() {
  gaps_.clear();
  const SpillFile file(folder_, folder_.open(name, SpillFolder::Mode::read));
  if (!file.is_open() || folder_.mark(file.get(), mark_) != 0) return;
  std::string bytes(largest_file, '\0');
  const std::int64_t got = folder_.read_at(file.get(), bytes.data(), bytes.size(), 0);
  bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  if (bytes.size() < 2 || bytes.back() != '\n') return;
  const std::size_t last_line = bytes.rfind('\n', bytes.size() - 2) + 1;  // npos + 1 is 0
  std::string_view lines = std::string_view(bytes).substr(0, last_line);
  std::string_view rest = std::string_view(bytes).substr(last_line);
  std::uint64_t sum = 0;
  if (!take_number(rest, sum, '\n') || sum != checksum(lines)) return;
  while (!lines.empty()) {
    Gap gap;
    if (!take_number(lines, gap.first, ' ') || !take_number(lines, gap.end, '\n')) break;
    add(gap);
  }
  changed_ = false;
}

void SpillGaps::add(Gap gap) {
  if (gap.first >= gap.end) return;
  changed_ = true;
  // Those that it touches become one with it.
  const auto begin =
      std::find_if(gaps_.begin(), gaps_.end(), [&](const Gap& g) { return g.end >= gap.first; });
  auto end = begin;
  for (; end != gaps_.end() && end->first <= gap.end; ++end) {
    gap.first = std::min(gap.first, end->first);
    gap.end = std::max(gap.end, end->end);
  }
  gaps_.insert(gaps_.erase(begin, end), gap);
  if (gaps_.size() > most) gaps_.erase(gaps_.begin());
}

void SpillGaps::forget_before(SpillSeq cursor) {
  changed_ = std::erase_if(gaps_, [&](const Gap& gap) { return gap.end <= cursor; }) > 0 || changed_;
}

void SpillGaps::refresh() {
  changed_ = changed_ || (!gaps_.empty() && !is_still(folder_, name, mark_));
}

bool SpillGaps::save() {
  if (!changed_) return true;
  if (gaps_.empty()) {
    const int error = folder_.remove(name);
    changed_ = error != 0 && error != -ENOENT;
    return !changed_;
  }
  std::string bytes;
  for (const Gap& gap : gaps_) {
    bytes.append(std::to_string(gap.first)).append(" ").append(std::to_string(gap.end)).append("\n");
  }
  bytes.append(std::to_string(checksum(bytes))).append("\n");
  const SpillFile file(folder_, folder_.open(new_name, SpillFolder::Mode::append));
  if (!file.is_open() || folder_.truncate(file.get(), 0) != 0 ||
      append_all(folder_, file.get(), bytes) != 0 || folder_.mark(file.get(), mark_) != 0 ||
      folder_.rename(new_name, name) != 0) {
    return false;
  }
  changed_ = false;
  return true;
}

}  // namespace postrider::logger
