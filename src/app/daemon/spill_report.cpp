// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/spill_report.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "app/api/json_values.hpp"
#include "app/api/record_json.hpp"
#include "core/rfc3339.hpp"
#include "logger/lane.hpp"
#include "logger/ring_format.hpp"
#include "logger/spill_checkpoint.hpp"
#include "logger/spill_folder.hpp"
#include "logger/spill_gaps.hpp"
#include "logger/spill_line.hpp"
#include "logger/spill_names.hpp"
#include "postrider/error.hpp"

namespace postrider::daemon {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using namespace postrider::logger;

constexpr std::size_t buffer_bytes = 1U << 20U;
constexpr std::string_view dead_name = "eventlog-spillover.dead.jsonl";
constexpr std::string_view quarantine_name = "eventlog-spillover.quarantine.jsonl";

/// Lets the logger's own code read its files, and nobody write them.
class ReadOnlyFolder final : public SpillFolder {
 public:
  explicit ReadOnlyFolder(std::string path) : path_(std::move(path)) {}

  int open(const std::string& name, Mode /*mode*/) override {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-vararg)
    const int handle = ::open((path_ + "/" + name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return handle < 0 ? -errno : handle;
  }
  void close(int handle) noexcept override { ::close(handle); }
  std::int64_t size(int handle) override {
    struct stat found {};
    return ::fstat(handle, &found) != 0 ? -errno : found.st_size;
  }
  std::int64_t read_at(int handle, char* bytes, std::size_t size, std::uint64_t offset) override {
    const ssize_t got = ::pread(handle, bytes, size, static_cast<off_t>(offset));
    return got < 0 ? -errno : got;
  }
  std::int64_t append(int, std::string_view) override { return -EROFS; }
  std::int64_t write_at(int, std::string_view, std::uint64_t) override { return -EROFS; }
  int truncate(int, std::uint64_t) override { return -EROFS; }
  int mark(int handle, FileMark& mark) override {
    struct stat found {};
    if (::fstat(handle, &found) != 0) return -errno;
    mark = {found.st_dev, found.st_ino};
    return 0;
  }
  int mark(const std::string& name, FileMark& mark) override {
    const SpillFile file(*this, open(name, Mode::read));
    return file.is_open() ? this->mark(file.get(), mark) : -ENOENT;
  }
  int restore() override { return 0; }
  std::uint64_t boot() override { return 0; }
  int sync(int) override { return -EROFS; }
  int sync_folder() override { return -EROFS; }
  int rename(const std::string&, const std::string&) override { return -EROFS; }
  int remove(const std::string&) override { return -EROFS; }
  int list(std::vector<std::string>& names) override {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(path_, error))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return error ? -error.value() : 0;
  }

 private:
  const std::string path_;
};

/// When the event happened; empty when it does not say.
std::string timestamp_of(std::string_view members) {
  json::error_code error;
  const json::value event = json::parse("{" + std::string(members) + "}", error);
  const json::object* const object = error ? nullptr : event.if_object();
  const json::value* const time = object == nullptr ? nullptr : object->if_contains("timestamp");
  return time != nullptr && time->is_string() ? std::string(time->get_string()) : std::string();
}

using Span = SpillGaps::Gap;

/// Adds a number; one that follows the last one makes its span longer.
void add_number(std::vector<Span>& spans, SpillSeq seq) {
  constexpr std::size_t most = 100'000;  // of a file whose numbers mean nothing
  if (!spans.empty() && spans.back().end == seq) {
    ++spans.back().end;
  } else if (spans.size() < most) {
    spans.push_back({seq, seq + 1});
  }
}

/// What none of them covers, between the first and the last.
std::vector<Span> holes_between(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.first < b.first; });
  std::vector<Span> holes;
  SpillSeq end = spans.empty() ? 0 : spans.front().first;
  for (const Span& span : spans) {
    if (span.first > end) holes.push_back({end, span.first});
    end = std::max(end, span.end);
  }
  return holes;
}

json::array json_of(const std::vector<Span>& spans) {
  json::array list;
  for (const Span& span : spans) list.push_back({{"first", span.first}, {"end", span.end}});
  return list;
}

struct Lines {
  std::vector<Span> numbers{};
  std::uint64_t events = 0;
  std::uint64_t waiting = 0;
  std::uint64_t foreign = 0;
  std::uint64_t damaged = 0;
  SpillSeq first = 0;
  SpillSeq last = 0;
  std::string oldest{};  ///< of the first that waits

  void count(std::string_view line, SpillSeq cursor) {
    const SpillLine parsed = parse_spill_line(line);
    switch (parsed.kind) {
      case SpillLine::Kind::ours:
        if (events++ == 0) first = parsed.seq;
        last = parsed.seq;
        add_number(numbers, parsed.seq);
        if (parsed.seq >= cursor && waiting++ == 0) oldest = timestamp_of(parsed.members);
        break;
      case SpillLine::Kind::foreign:
        ++foreign;
        break;
      case SpillLine::Kind::corrupt:
        ++damaged;
        break;
    }
  }
};

/// With a buffer of fixed size; a line that does not fit is damaged.
Lines count_lines(SpillFolder& folder, int handle, SpillSeq cursor) {
  Lines lines;
  std::string buffer(buffer_bytes + max_line_bytes, '\0');
  std::size_t held = 0;
  std::uint64_t offset = 0;
  for (;;) {
    const std::int64_t got = folder.read_at(handle, buffer.data() + held, buffer.size() - held, offset);
    if (got <= 0) break;
    offset += static_cast<std::uint64_t>(got);
    held += static_cast<std::size_t>(got);
    std::size_t begin = 0;
    for (;;) {
      const std::size_t end = std::string_view(buffer.data(), held).find('\n', begin);
      if (end == std::string_view::npos) break;
      lines.count(std::string_view(buffer).substr(begin, end - begin), cursor);
      begin = end + 1;
    }
    if (begin == 0 && held == buffer.size()) {
      ++lines.damaged;
      begin = held;
    }
    std::memmove(buffer.data(), buffer.data() + begin, held - begin);
    held -= begin;
  }
  // What has no newline yet is being written now, or was torn off: the logger finds out which.
  return lines;
}

json::value seq_or_null(const Lines& lines, SpillSeq seq) {
  return lines.numbers.empty() ? json::value(nullptr) : json::value(seq);
}

/// What a file is for, in a word.
std::string_view kind_of(std::string_view name) {
  if (name == active_name) return "active";
  if (name == replay_name) return "replaying";
  if (name == dead_name) return "dead letters";
  if (name == quarantine_name) return "quarantine";
  return number_in(name) ? "full" : "set aside";
}

/// Of the first event that waits; null when there is none, or when it does not say.
json::value age_or_null(const std::string& timestamp, TimePoint now) {
  const std::optional<TimePoint> at = parse_time(timestamp);
  if (!at) return nullptr;
  return api::seconds(std::max(Duration::zero(), now - *at));
}

struct Ring {
  std::uint64_t events = 0;
  std::int64_t oldest = std::numeric_limits<std::int64_t>::max();
};

/// The head of a ring, or its copy; nothing for what is none of ours.
std::optional<LaneHead> lane_head(SpillFolder& folder, int handle) {
  for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{LaneHead::copy_at}}) {
    LaneHead head{};
    const std::int64_t got = folder.read_at(handle, reinterpret_cast<char*>(&head), sizeof head, at);
    if (got == std::int64_t{sizeof head} && head.valid()) return head;
  }
  return std::nullopt;
}

/// Records that nobody has delivered or spilled yet. The owner may be writing: what looks wrong ends a chunk.
void count_chunk(const std::string& chunk, Ring& ring) {
  const auto& head = *reinterpret_cast<const ChunkHead*>(chunk.data());
  const std::optional<std::uint32_t> tail = decoded_tail(head.tail.load(std::memory_order_relaxed));
  if (!tail || *tail > chunk.size()) return;
  const ChunkMark& mark = head.mark.valid() ? head.mark : head.copy;
  for (std::size_t offset = sizeof(ChunkHead); offset + sizeof(RecordHead) <= *tail;) {
    const auto& record = *reinterpret_cast<const RecordHead*>(chunk.data() + offset);
    const std::size_t begin = offset + sizeof(RecordHead);
    if (record.size() > *tail - begin) return;
    if (!record.filler()) {
      if (record.check != record.sum(mark.run, std::string_view(chunk).substr(begin, record.size()))) return;
      if (!record.is_done()) {
        ++ring.events;
        ring.oldest = std::min(ring.oldest, record.stamp);
      }
    }
    offset += record.room();
  }
}

Ring count_ring(SpillFolder& folder, int handle) {
  Ring ring;
  const std::optional<LaneHead> head = lane_head(folder, handle);
  constexpr std::uint32_t largest_chunk = std::uint32_t{1} << 30U;
  if (!head || head->chunk_bytes < sizeof(ChunkHead) || head->chunk_bytes > largest_chunk) return ring;
  std::string chunk(head->chunk_bytes, '\0');
  for (std::uint32_t i = 0; i < head->chunk_count; ++i) {
    const std::uint64_t at = LaneMemory::head_bytes + std::uint64_t{head->chunk_bytes} * i;
    if (folder.read_at(handle, chunk.data(), chunk.size(), at) != static_cast<std::int64_t>(chunk.size()))
      break;
    count_chunk(chunk, ring);
  }
  return ring;
}

std::vector<std::string> names_in(SpillFolder& folder, const std::string& path) {
  std::vector<std::string> names;
  if (const int error = folder.list(names); error != 0) {
    throw Error(ErrorCode::unavailable, "cannot look into " + path, std::strerror(-error));  // NOLINT
  }
  return names;
}

/// What was read of files of these names.
json::object look_into(SpillFolder& folder, const std::string& path, const std::vector<std::string>& names,
                       TimePoint now) {
  SpillCheckpoint checkpoint(folder);
  const SpillSeq cursor = checkpoint.load().value_or(SpillCursor{}).seq;
  std::vector<Span> spans;
  json::array files;
  json::array rings;
  std::uint64_t waiting = 0;
  std::uint64_t in_rings = 0;
  std::uint64_t bytes = 0;
  std::uint64_t dead = 0;
  std::uint64_t quarantined = 0;
  std::string oldest;
  for (const std::string& name : names) {
    const SpillFile file(folder, folder.open(name, SpillFolder::Mode::read));
    if (!file.is_open()) continue;
    const std::int64_t size = std::max<std::int64_t>(folder.size(file.get()), 0);
    if (name.starts_with("eventlog-ring.")) {
      const Ring ring = count_ring(folder, file.get());
      in_rings += ring.events;
      rings.push_back(
          {{"name", api::shown(name)},
           {"bytes", size},
           {"events", ring.events},
           {"oldest", ring.events == 0 ? json::value(nullptr)
                                       : json::value(api::time_text(TimePoint{Duration{ring.oldest}}))}});
    } else if (name.starts_with(segment_prefix) && name.ends_with(segment_suffix)) {
      const bool replayed = name == active_name || name == replay_name || number_in(name).has_value();
      Lines lines = count_lines(folder, file.get(), cursor);
      // Dead letters and damaged lines wait for a person.
      lines.waiting = replayed ? lines.waiting + lines.foreign : 0;
      waiting += lines.waiting;
      if (replayed) spans.insert(spans.end(), lines.numbers.begin(), lines.numbers.end());
      // An event within a line of another form.
      if (name == dead_name) lines.events += std::exchange(lines.foreign, 0);
      bytes += static_cast<std::uint64_t>(size);
      const std::uint64_t all = lines.events + lines.foreign + lines.damaged;
      if (name == dead_name) dead += all;
      if (name == quarantine_name) quarantined += all;
      if (!lines.oldest.empty() && replayed && (oldest.empty() || lines.oldest < oldest))
        oldest = lines.oldest;
      files.push_back({{"name", api::shown(name)},
                       {"kind", kind_of(name)},
                       {"bytes", size},
                       {"events", lines.events},
                       {"waiting", lines.waiting},
                       {"foreign", lines.foreign},
                       {"damaged", lines.damaged},
                       {"firstSeq", seq_or_null(lines, lines.first)},
                       {"lastSeq", seq_or_null(lines, lines.last)}});
    }
  }
  // The logger may have gone on meanwhile: what is done with now was not missing then.
  const SpillSeq done = std::max(cursor, SpillCheckpoint(folder).load().value_or(SpillCursor{}).seq);
  if (done > 0) spans.push_back({0, done});
  if (checkpoint.known_end() > 0) spans.push_back({checkpoint.known_end(), checkpoint.known_end()});
  SpillGaps gaps(folder);
  gaps.load();
  spans.insert(spans.end(), gaps.list().begin(), gaps.list().end());
  return {{"folder", api::shown(path)},
          {"waiting", waiting},
          {"inRings", in_rings},
          {"bytes", bytes},
          {"deadLetters", dead},
          {"quarantined", quarantined},
          {"replayedUpTo", cursor == 0 ? 0 : cursor - 1},
          {"oldest", api::text_or_null(oldest)},
          {"oldestSeconds", age_or_null(oldest, now)},
          {"files", std::move(files)},
          {"rings", std::move(rings)},
          {"gaps", json_of(gaps.list())},
          {"missing", json_of(holes_between(std::move(spans)))}};
}

}  // namespace

json::object spill_report(const std::string& path, TimePoint now) {
  if (!fs::is_directory(path)) {
    throw Error(ErrorCode::invalid_argument, "cannot look into " + path,
                fs::exists(path) ? "it is a file, not a folder" : "there is no such folder",
                "name the logger's spillover_path");
  }
  ReadOnlyFolder folder(path);
  constexpr int attempts = 5;
  for (int attempt = 1;; ++attempt) {
    const std::vector<std::string> names = names_in(folder, path);
    json::object report = look_into(folder, path, names, now);
    // A file that came or went between looks like events that are missing.
    if (attempt == attempts || names_in(folder, path) == names) return report;
  }
}

}  // namespace postrider::daemon
