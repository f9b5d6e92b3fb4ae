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
constexpr std::size_t most_repeatable = 1 << 16;

}  // namespace

SpillReader::SpillReader(SpillStore& store) : store_(store) {}

bool SpillReader::open() {
  auto opened = store_.open_front();
  if (!opened) return false;
  if (buffer_.empty()) buffer_.resize(buffer_size);
  handle_ = opened->handle;
  id_ = opened->id;
  file_bytes_ = opened->bytes;
  repeatable_.erase(repeatable_.begin(), repeatable_.lower_bound(file_end_));  // this file begins there
  file_end_ = opened->end;
  given_out_ = store_.next_seq();  // what is read is closed: its last number was given out before
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
  if (start.offset == 0 || start.offset > file_bytes_) return true;
  base_ = start.offset;
  begin_ = end_ = 0;
  if (start.file == identity_ || next_is(start.seq)) return true;
  base_ = begin_ = end_ = 0;
  return true;
}

/// A file that was cut has another beginning, but its place is still the right one if the event is there.
bool SpillReader::next_is(SpillSeq number) {
  if (!fill()) return false;
  const std::string_view read = std::string_view(buffer_).substr(0, end_);
  const SpillLine line = parse_spill_line(read.substr(0, read.find('\n')));
  return line.kind == SpillLine::Kind::ours && line.seq == number;
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

std::optional<OutgoingEvent> SpillReader::first_behind() {
  constexpr std::size_t usual = 16 * 1024;
  const MutexLock lock(store_.mutex_);
  if (store_.segments_.size() < 2 || store_.segments_.front().id != id_) return std::nullopt;
  const SpillStore::Segment next = store_.segments_[1];
  const SpillFile file(store_.folder_, store_.folder_.open(next.name, SpillFolder::Mode::read));
  if (!file.is_open()) return std::nullopt;
  for (const std::size_t size : {usual, max_line_bytes}) {
    behind_.resize(std::min<std::uint64_t>(size, next.bytes));
    const std::int64_t got = store_.folder_.read_at(file.get(), behind_.data(), behind_.size(), 0);
    if (got <= 0) return std::nullopt;
    behind_.resize(static_cast<std::size_t>(got));
    const std::size_t end = behind_.find('\n');
    if (end == std::string::npos) continue;
    const SpillLine line = parse_spill_line(std::string_view(behind_).substr(0, end));
    if (line.kind != SpillLine::Kind::ours) return std::nullopt;
    return OutgoingEvent{line.members, line.key};
  }
  return std::nullopt;
}

void SpillReader::take_line(SpillBatch& batch, std::string_view line, std::uint64_t offset) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
  const SpillLine parsed = parse_spill_line(line);
  if (parsed.kind == SpillLine::Kind::foreign) return take_foreign(batch, parsed, offset);
  if (parsed.kind == SpillLine::Kind::ours) return take_ours(batch, parsed, offset);
  const std::size_t second = find_glued_line(line);
  if (second == std::string_view::npos) {
    batch.fragments.push_back({line, offset});
    return;
  }
  take_line(batch, line.substr(0, second - 1), offset);
  take_line(batch, line.substr(second), offset + second);
}

/// Files that somebody has edited, joined or brought from another folder have numbers in any order, and the
/// store cannot know: it looks at their ends and beginnings only, or it would start as slowly as there is
/// much to replay. It may then give out a number that is in a file already. So a number alone never makes an
/// event vanish:
///
///  - One that was never given out does not move the place in turn. That place is never behind the numbers
///    which the store will give, so what is written from now on is in turn.
///  - A lower one than that in turn is left out only when it is known to be the line that was committed
///    before. Otherwise it is delivered, as a line of another system would be: at worst a second time, with
///    its key.
void SpillReader::take_ours(SpillBatch& batch, const SpillLine& line, std::uint64_t offset) {
  if (line.seq < reading_expected_ && is_repeat(line)) return;
  if (line.seq < reading_expected_ || line.seq >= given_out_) {
    batch.items.push_back({line.members, line.key, true, offset, reading_expected_, batch.lost});
    return;
  }
  batch.lost += line.seq - reading_expected_;
  batch.items.push_back({line.members, line.key, false, offset, line.seq, batch.lost});
  reading_expected_ = line.seq + 1;
}

/// Lines whose sync failed are written again, into the next file. Where they could not be cut off, a later
/// process finds them in both.
bool SpillReader::is_repeat(const SpillLine& line) const {
  const auto before = repeatable_.find(line.seq);
  return before != repeatable_.end() && before->second == checksum(line.members);
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
  Committed done = preview(batch, count);
  const std::uint64_t damaged = std::exchange(done.quarantined, 0);
  for (std::size_t i = 0; i < damaged; ++i) {
    const bool kept = store_.quarantine().append(batch.fragments[i].bytes, store_.limits().durable);
    ++(kept ? done.quarantined : done.discarded);
  }
  for (std::size_t i = 0; i < std::min(count, batch.items.size()); ++i) {
    const SpillBatch::Item& item = batch.items[i];
    if (item.foreign || item.expected < file_end_ || repeatable_.size() == most_repeatable) continue;
    repeatable_.insert_or_assign(item.expected, checksum(item.members));
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
