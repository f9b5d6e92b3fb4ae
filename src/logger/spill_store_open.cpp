// SPDX-License-Identifier: Apache-2.0
// How a folder is taken over from the process before.
#include <algorithm>
#include <system_error>

#include "core/wording.hpp"
#include "logger/spill_names.hpp"
#include "logger/spill_store.hpp"
#include "postrider/error.hpp"

namespace postrider::logger {
namespace {

constexpr std::size_t first_look = 64 * 1024;
constexpr std::size_t far_look = 4 * max_line_bytes;

/// To go on without the events of a file would be to pass them over: what comes behind them is delivered
/// meanwhile.
[[noreturn]] void refuse_to_start(const std::string& name, std::int64_t error) {
  throw Error(ErrorCode::unavailable, "cannot read " + name + " in the spill folder",
              std::generic_category().message(static_cast<int>(-error)),
              "may this process read it? There are events in it that still have to be delivered");
}

/// Up to `size` bytes; fewer at the end of the file. Throws Error when it cannot be read.
std::string read_part(SpillFolder& folder, const std::string& name, int handle, std::uint64_t offset,
                      std::uint64_t size) {
  std::string bytes(size, '\0');
  std::size_t got = 0;
  while (got < bytes.size()) {
    const std::int64_t more = folder.read_at(handle, bytes.data() + got, bytes.size() - got, offset + got);
    if (more < 0) refuse_to_start(name, more);
    if (more == 0) break;
    got += static_cast<std::size_t>(more);
  }
  bytes.resize(got);
  return bytes;
}

/// A link, a folder, a pipe: nothing that a logger has written.
bool is_no_file(int error) {
  return error == -ELOOP || error == -EISDIR || error == -ENXIO || error == -ENOTDIR;
}

}  // namespace

SpillStore::SpillStore(SpillFolder& folder, SpillLimits limits, LogCallback log, Clock& clock)
    : folder_(folder),
      limits_(limits),
      log_(std::move(log)),
      news_(log_, clock),
      quarantine_(folder, "eventlog-spillover.quarantine.jsonl", limits.max_aside_bytes),
      dead_letters_(folder, "eventlog-spillover.dead.jsonl", limits.max_aside_bytes),
      checkpoint_(folder),
      gaps_(folder) {
  std::vector<std::string> names;
  if (const int error = folder_.list(names); error != 0) {
    throw Error(ErrorCode::unavailable, "cannot read the spill folder",
                std::generic_category().message(-error), "may this process read it?");
  }
  load(std::move(names));
}

void SpillStore::load(std::vector<std::string> names) {
  const MutexLock append(append_mutex_);
  std::sort(names.begin(), names.end());
  const auto present = [&](const char* name) { return std::binary_search(names.begin(), names.end(), name); };
  if (present(replay_name)) adopt(replay_name, std::nullopt);
  for (const std::string& name : names) {
    if (const auto first = number_in(name)) adopt(name, first);
  }
  if (present(active_name)) adopt(active_name, std::nullopt);
  repair_active();
  number_segments();
}

void SpillStore::adopt(const std::string& name, std::optional<SpillSeq> first) {
  const SpillFile file(folder_, folder_.open(name, SpillFolder::Mode::read));
  const std::int64_t size = file.is_open() ? folder_.size(file.get()) : file.get();
  if (size < 0 && is_no_file(static_cast<int>(size))) {
    complain(name + " is no file, and left as it is", static_cast<int>(size));
    return;
  }
  if (size < 0) refuse_to_start(name, size);
  FileMark mark;
  (void)folder_.mark(file.get(), mark);  // it is open: this does not fail
  const MutexLock lock(mutex_);
  segments_.push_back({next_id_++, name, first.value_or(0), 0, static_cast<std::uint64_t>(size), mark});
  bytes_ += static_cast<std::uint64_t>(size);
}

bool SpillStore::may_be_ours(SpillSeq number) const {
  return number <= max_spill_seq || number < checkpoint_.known_end() || number < next_seq_.load();
}

SpillStore::Tail SpillStore::read_tail(const Segment& segment) {
  Tail tail;
  const SpillFile file(folder_, folder_.open(segment.name, SpillFolder::Mode::read));
  if (!file.is_open()) refuse_to_start(segment.name, file.get());
  // Backwards in parts, each ending where a line does. As a rule the last line is whole and ours, and that is
  // it.
  bool seen_end = false;
  SpillSeq begun = 0;
  SpillSeq ended = 0;
  std::uint64_t until = segment.bytes;
  for (std::uint64_t look = first_look; until > 0; look = far_look) {
    const std::uint64_t from = until > look ? until - look : 0;
    const std::string bytes = read_part(folder_, segment.name, file.get(), from, until - from);
    std::string_view rest = bytes;
    if (!seen_end) {
      const std::size_t newline = rest.rfind('\n');
      seen_end = newline != std::string_view::npos;
      tail.end = seen_end ? from + newline + 1 : 0;
      rest = rest.substr(0, seen_end ? newline + 1 : 0);
    }
    while (rest.size() > 1) {
      const std::size_t before = rest.rfind('\n', rest.size() - 2);
      if (before == std::string_view::npos && from != 0) break;  // the line begins before this part
      const std::string_view line = before == std::string_view::npos ? rest : rest.substr(before + 1);
      const std::string_view text = line.substr(0, line.size() - 1);
      const LineMarks marks = marks_of(text);
      if (marks.begins && marks.ends) {
        SpillLine parsed = parse_spill_line(text);
        const std::size_t second = find_glued_line(text);
        if (parsed.kind == SpillLine::Kind::corrupt && second != std::string_view::npos) {
          parsed = parse_spill_line(text.substr(second));
        }
        if (parsed.kind == SpillLine::Kind::ours && may_be_ours(parsed.seq)) {
          tail.last = parsed.seq;
          return tail;
        }
        if (parsed.kind == SpillLine::Kind::ours) {
          rest = rest.substr(0, before == std::string_view::npos ? 0 : before + 1);
          continue;
        }
      }
      if (!marks.begins && !marks.ends) tail.foreign = true;
      begun += marks.begins ? 1 : 0;
      ended += marks.ends ? 1 : 0;
      // Damage may have broken a line in two: its parts are one event.
      tail.damaged = std::max(begun, ended);
      rest = rest.substr(0, before == std::string_view::npos ? 0 : before + 1);
    }
    // A "line" longer than a part is none.
    until = from + (rest.size() < bytes.size() ? rest.size() : 0);
    if (from == 0) break;
  }
  return tail;
}

/// The number of the first event: that of the first whole line, less the lines before it.
std::optional<SpillSeq> SpillStore::first_number(const Segment& segment) {
  const SpillFile file(folder_, folder_.open(segment.name, SpillFolder::Mode::read));
  if (!file.is_open()) refuse_to_start(segment.name, file.get());
  const std::string bytes =
      read_part(folder_, segment.name, file.get(), 0, std::min<std::uint64_t>(first_look, segment.bytes));
  SpillSeq begun = 0;
  SpillSeq ended = 0;
  std::string_view rest = bytes;
  for (std::size_t newline = rest.find('\n'); newline != std::string_view::npos; newline = rest.find('\n')) {
    const std::string_view text = rest.substr(0, newline);
    const SpillLine line = parse_spill_line(text);
    // As in the tail: what damage broke in two is one event, and what it glued together is two.
    const SpillSeq before = std::max(begun, ended);
    rest.remove_prefix(newline + 1);
    if (line.kind == SpillLine::Kind::ours && !may_be_ours(line.seq)) continue;
    if (line.kind == SpillLine::Kind::ours) return line.seq > before ? line.seq - before : 0;
    if (line.kind == SpillLine::Kind::foreign) return std::nullopt;
    const LineMarks marks = marks_of(text);
    const SpillSeq glued = find_glued_line(text) != std::string_view::npos ? 1 : 0;
    begun += (marks.begins ? 1 : 0) + glued;
    ended += (marks.ends ? 1 : 0) + glued;
  }
  return std::nullopt;
}

/// What lies behind the last newline of the active file was never promised to anybody: it goes to the
/// quarantine, and the next line begins where it began.
void SpillStore::repair_active() {
  const MutexLock lock(mutex_);
  if (segments_.empty() || segments_.back().name != active_name) return;
  Segment& last = segments_.back();
  const Tail tail = read_tail(last);
  bool keep = !tail.foreign;
  if (tail.end < last.bytes) {
    SpillFile file(folder_, folder_.open(active_name, SpillFolder::Mode::append));
    const std::string torn =
        file.is_open() ? read_part(folder_, active_name, file.get(), tail.end, last.bytes - tail.end) : "";
    if (!torn.empty()) {
      ++torn_tails_;
      log_(LogLevel::warning,
           "postrider: the last process ended while it wrote an event into the spill folder; " +
               counted(torn.size(), "byte") + " went to the quarantine");
      quarantine_.append(torn, limits_.durable);
    }
    const int error = file.is_open() ? folder_.truncate(file.get(), tail.end) : file.get();
    if (error != 0) {
      complain("cannot cut off a torn line, going on in a new file", error);
      keep = false;
    }
    bytes_ -= last.bytes - tail.end;
    last.bytes = tail.end;
  }
  // Files that another system writes are not appended to, only replayed.
  last_is_active_ = keep;
}

/// Numbers for the files that do not have theirs in the name, and the number of the next event.
void SpillStore::number_segments() {
  const MutexLock lock(mutex_);
  const auto stored = checkpoint_.load();
  SpillSeq next = stored ? stored->seq : 0;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    Segment& segment = segments_[i];
    const bool numbered = number_in(segment.name).has_value();
    if (!numbered) {
      // The active file goes on where the one before it ends. The first file is where the checkpoint is.
      std::optional<SpillSeq> first = first_number(segment);
      if (!first && i > 0) {
        const Tail before = read_tail(segments_[i - 1]);
        first = before.last ? *before.last + 1 : segments_[i - 1].first;
      }
      segment.first = first.value_or(next);
    }
    next = std::max(next, segment.first);
  }
  // From the last file back, to the first that says anything about numbers.
  for (std::size_t i = segments_.size(); i-- > 0;) {
    const Tail tail = read_tail(segments_[i]);
    if (!tail.last) continue;
    next = std::max(next, *tail.last + 1 + tail.damaged);
    break;
  }
  gaps_.load();
  if (!gaps_.list().empty()) next = std::max(next, gaps_.list().back().end);  // never given out again
  next = std::max<SpillSeq>(next, 1);
  // What the last process had behind that was taken away by somebody: counted by this one.
  const SpillSeq known = checkpoint_.known_end();
  if (known > next) {
    removed_ = known - next;
    gaps_.add({next, known});
    next = known;
    last_is_active_ = false;  // gaps are between files
  }
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    segments_[i].end = std::max(segments_[i].first, i + 1 < segments_.size() ? segments_[i + 1].first : next);
  }
  next_seq_ = next;
  if (stored) {
    start_ = *stored;
  } else {
    start_.seq = segments_.empty() ? next : std::max<SpillSeq>(segments_.front().first, 1);
  }
  apply_gaps();
  cursor_seq_ = start_.seq;
  checkpoint_.begin(start_, next);
  recovered_ = events() + removed_;
  if (last_is_active_) {
    active_ = SpillFile(folder_, folder_.open(active_name, SpillFolder::Mode::append));
    last_is_active_ = active_.is_open();
    active_size_ = segments_.back().bytes;
    synced_size_ = 0;  // nobody knows what the last process had synced
    synced_seq_ = segments_.back().first;
  }
}

void SpillStore::apply_gaps() {
  gaps_.forget_before(start_.seq);
  for (const SpillGaps::Gap& gap : gaps_.list()) {
    if (gap.first <= start_.seq) {
      start_.seq = gap.end;
      continue;
    }
    // It lies between two files, or behind the last one.
    const auto before = std::find_if(segments_.rbegin(), segments_.rend(),
                                     [&](const Segment& segment) { return segment.first <= gap.first; });
    if (before == segments_.rend() || before->end != gap.end) continue;
    before->end = gap.first;
    before->dropped = gap.end - gap.first;
    dropped_ahead_ += before->dropped;
  }
}

bool AsideFile::append(std::string_view line, bool durable) {
  const MutexLock lock(mutex_);
  if (file_.is_open() && !is_still(folder_, name_, mark_)) file_.reset();  // somebody removed it
  if (!file_.is_open()) {
    file_ = SpillFile(folder_, folder_.open(name_, SpillFolder::Mode::append));
    if (!file_.is_open()) return false;
    const std::int64_t size = folder_.size(file_.get());
    if (size < 0 || folder_.mark(file_.get(), mark_) != 0) {
      file_.reset();
      return false;
    }
    size_ = static_cast<std::uint64_t>(size);
  }
  std::string bytes(line);
  bytes += '\n';
  if (size_ + bytes.size() > max_bytes_) return false;
  if (append_all(folder_, file_.get(), bytes) != 0) {
    // Half a line is worse than none; when it cannot be cut off, the next line at least begins on its own.
    if (folder_.truncate(file_.get(), size_) != 0) file_.reset();
    return false;
  }
  size_ += bytes.size();
  if (!durable) return true;
  return folder_.sync(file_.get()) == 0 && folder_.sync_folder() == 0;
}

}  // namespace postrider::logger
