// SPDX-License-Identifier: Apache-2.0
#include "logger/spill_reader.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/failpoint.hpp"
#include "logger/checksum.hpp"

namespace postrider::logger {
namespace {

constexpr std::size_t buffer_size = max_line_bytes + 1024 * 1024;
constexpr std::size_t identity_bytes = 4096;
constexpr int most_read_errors = 5;

}  // namespace

SpillReader::SpillReader(SpillStore& store) : store_(store) {}

bool SpillReader::open() {
  auto opened = store_.open_front();
  if (!opened) return false;
  if (buffer_.empty()) buffer_.resize(buffer_size);
  handle_ = opened->handle;
  id_ = opened->id;
  file_bytes_ = opened->bytes;
  file_end_ = opened->end;
  expected_ = store_.cursor_seq_.load();
  unreadable_ = false;
  base_ = begin_ = end_ = 0;
  read_errors_ = 0;
  if (!fill()) {
    handle_ = -1;
    return false;
  }
  identity_ = checksum(std::string_view(buffer_).substr(0, std::min(end_, identity_bytes)));
  // Only the first file after a start can have been read in part.
  const SpillCursor start = std::exchange(store_.start_, SpillCursor{});
  if (start.offset != 0 && start.file == identity_ && start.offset <= file_bytes_) {
    base_ = start.offset;
    begin_ = end_ = 0;
  }
  return true;
}

/// Moves what is not committed to the front, and reads behind it.
bool SpillReader::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  base_ += begin_;
  end_ -= begin_;
  begin_ = 0;
  while (end_ < buffer_.size() && base_ + end_ < file_bytes_) {
    const std::size_t wanted = std::min<std::uint64_t>(buffer_.size() - end_, file_bytes_ - base_ - end_);
    const std::int64_t got = store_.folder_.read_at(handle_, buffer_.data() + end_, wanted, base_ + end_);
    if (got == 0) {  // somebody has cut it
      file_bytes_ = base_ + end_;
      break;
    }
    if (got < 0) {
      // Perhaps it can be read later. A bad sector cannot: what comes after it is out of reach.
      store_.news_.failed(DiskTask::read, "cannot read a file to its end", static_cast<int>(got));
      unreadable_ = ++read_errors_ >= most_read_errors;
      return unreadable_;
    }
    read_errors_ = 0;
    store_.news_.went_well(DiskTask::read);
    end_ += static_cast<std::size_t>(got);
  }
  return true;
}

bool SpillReader::read(SpillBatch& batch, std::size_t max_events, std::size_t max_bytes) {
  batch.items.clear();
  batch.fragments.clear();
  batch.made_.clear();
  batch.lost = 0;
  batch.ends_file = false;
  if (handle_ < 0 && !open()) return false;
  const auto more = [&] { return base_ + end_ < file_bytes_ && !unreadable_; };
  if (end_ - begin_ < buffer_.size() / 4 && more() && !fill() && begin_ == end_) return false;
  reading_expected_ = expected_;
  std::size_t at = begin_;
  const std::size_t most = at + std::min(max_bytes, buffer_.size());
  while (batch.items.size() < max_events && at < most) {
    const bool all_read = !more();
    const char* const begin = buffer_.data() + at;
    const void* const newline = std::memchr(begin, '\n', end_ - at);
    if (newline == nullptr) {
      if (!all_read && at != begin_) break;
      if (!all_read && end_ - begin_ < buffer_.size()) {
        if (!fill()) return false;
        at = begin_;
        continue;
      }
      // The file's torn end, or something too long to be a line.
      if (at < end_) batch.fragments.push_back({{begin, end_ - at}, base_ + at});
      at = end_;
      if (all_read) break;
      continue;
    }
    const auto size = static_cast<std::size_t>(static_cast<const char*>(newline) - begin);
    take_line(batch, {begin, size}, base_ + at);
    at += size + 1;
  }
  batch.end_offset = base_ + at;
  batch.ends_file = at == end_ && !more();
  if (batch.ends_file && reading_expected_ < file_end_) {
    batch.lost += file_end_ - reading_expected_;
    reading_expected_ = file_end_;
  }
  batch.end_seq = reading_expected_;
  return true;
}

void SpillReader::take_line(SpillBatch& batch, std::string_view line, std::uint64_t offset) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  const SpillLine parsed = parse_spill_line(line);
  if (parsed.kind == SpillLine::Kind::foreign) return take_foreign(batch, parsed, offset);
  if (parsed.kind == SpillLine::Kind::ours) {
    // Written again after a failed sync, and replayed from there or from here already.
    if (parsed.seq < reading_expected_) return;
    batch.lost += parsed.seq - reading_expected_;
    batch.items.push_back({parsed.members, parsed.key, false, offset, parsed.seq, batch.lost});
    reading_expected_ = parsed.seq + 1;
    return;
  }
  const std::size_t second = find_glued_line(line);
  if (second == std::string_view::npos) {
    batch.fragments.push_back({line, offset});
    return;
  }
  take_line(batch, line.substr(0, second - 1), offset);
  take_line(batch, line.substr(second), offset + second);
}

void SpillReader::take_foreign(SpillBatch& batch, const SpillLine& line, std::uint64_t offset) {
  SpillBatch::Item item{line.members, line.key, true, offset, reading_expected_, batch.lost};
  if (line.key.empty()) {
    // The same line at the same place has the same key, in every life of the process.
    constexpr std::string_view alphabet = "0123456789abcdef";
    std::string key = "spill-";
    const std::uint64_t sum = checksum(line.members) ^ identity_;
    for (unsigned shift = 64; shift > 0; shift -= 4) key += alphabet[(sum >> (shift - 4)) & 15U];
    key.append("-").append(std::to_string(offset));
    std::string& made = batch.made_.emplace_back(line.members);
    made.append(R"(,"idempotencyKey":")").append(key).append("\"");
    item.members = made;
    item.key = std::string_view(made).substr(made.size() - 1 - key.size(), key.size());
  }
  batch.items.push_back(item);
}

SpillReader::Committed SpillReader::preview(const SpillBatch& batch, std::size_t count) {
  const bool all = count >= batch.items.size();
  const std::uint64_t offset = all ? batch.end_offset : batch.items[count].offset;
  const auto before = [&](const SpillBatch::Fragment& fragment) { return fragment.offset < offset; };
  const auto fragments = std::count_if(batch.fragments.begin(), batch.fragments.end(), before);
  return {all ? batch.lost : batch.items[count].lost, static_cast<std::uint64_t>(fragments)};
}

SpillReader::Committed SpillReader::commit(const SpillBatch& batch, std::size_t count) {
  const bool all = count >= batch.items.size();
  const std::uint64_t offset = all ? batch.end_offset : batch.items[count].offset;
  const SpillSeq seq = all ? batch.end_seq : batch.items[count].expected;
  const Committed done = preview(batch, count);
  for (std::size_t i = 0; i < done.quarantined; ++i) {
    store_.quarantine().append(batch.fragments[i].bytes, store_.limits().durable);
  }
  failpoint("logger.replay.before_checkpoint");
  {
    const MutexLock lock(store_.mutex_);
    store_.move_cursor({seq, offset, identity_});
  }
  failpoint("logger.replay.after_checkpoint");
  expected_ = seq;
  begin_ = static_cast<std::size_t>(offset - base_);
  if (all && batch.ends_file) {
    handle_ = -1;
    store_.finished(id_, unreadable_);
    failpoint("logger.replay.removed");
  }
  return done;
}

}  // namespace postrider::logger
