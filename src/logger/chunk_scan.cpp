// SPDX-License-Identifier: Apache-2.0
#include "logger/chunk_scan.hpp"

#include <algorithm>
#include <new>

namespace postrider::logger {
namespace {

constexpr std::uint32_t smallest = sizeof(RecordHead);
constexpr std::uint32_t first_offset = sizeof(ChunkHead);

std::uint64_t first_number(const RecordHead& record) noexcept {
  return record.filler() ? record.seq - static_cast<std::uint64_t>(record.stamp) + 1 : record.seq;
}

}  // namespace

RecordHead& ChunkScan::head(std::uint32_t offset) const noexcept {
  return *std::launder(reinterpret_cast<RecordHead*>(chunk_ + offset));
}

const RecordHead* ChunkScan::right_one(std::uint32_t offset, std::uint64_t run, std::uint64_t least) const {
  if (offset > bytes_ - smallest) return nullptr;
  const RecordHead& record = head(offset);
  // The cheap questions first: most places of a damaged stretch are no record at all.
  if (record.size() > bytes_ - smallest - offset) return nullptr;
  const std::uint64_t first = first_number(record);
  if (first < least || first - least > bytes_ / smallest || record.seq < first) return nullptr;
  return record.check == record.sum(run, {chunk_ + offset + smallest, record.size()}) ? &record : nullptr;
}

std::uint32_t ChunkScan::resync(std::uint32_t from, std::uint32_t to, std::uint64_t run,
                                std::uint64_t least) const {
  for (std::uint32_t offset = from; offset + smallest <= to; offset += 8) {
    if (right_one(offset, run, least) != nullptr) return offset;
  }
  return to;
}

std::optional<std::uint64_t> ChunkScan::first_seq_of(std::uint64_t run) const {
  for (std::uint32_t offset = first_offset; offset + smallest <= bytes_; offset += 8) {
    const RecordHead& record = head(offset);
    if (record.size() <= bytes_ - smallest - offset &&
        record.check == record.sum(run, {chunk_ + offset + smallest, record.size()})) {
      return first_number(record);
    }
  }
  return std::nullopt;
}

ScanResult ChunkScan::run(const ChunkMark& mark, std::optional<std::uint64_t> end_seq) {
  auto& chunk = *std::launder(reinterpret_cast<ChunkHead*>(chunk_));
  std::optional<std::uint32_t> tail = decoded_tail(chunk.tail.load(std::memory_order_relaxed));
  if (tail && (*tail > bytes_ || *tail < first_offset || *tail % 8 != 0)) tail.reset();
  expected_ = mark.first_seq;
  std::uint32_t offset = first_offset;
  for (;;) {
    const RecordHead* record = right_one(offset, mark.run, expected_);
    // The tail of a machine that lost its power may be older than the records before it.
    if (record != nullptr && first_number(*record) == expected_) {
      ++result_.records;
      const bool done = record->is_done();
      result_.live += done ? 0 : 1;
      head(offset).state.store(done ? RecordHead::done : RecordHead::live, std::memory_order_relaxed);
      expected_ = record->seq + 1;
      offset += static_cast<std::uint32_t>(record->room());
      continue;
    }
    if (tail && offset >= *tail) break;
    const std::uint32_t limit = tail.value_or(bytes_);
    const std::uint32_t next = resync(offset + smallest, limit, mark.run, expected_ + 1);
    if (next == limit) break;
    fill(offset, next, first_number(head(next)) - expected_, mark);
    offset = next;
  }
  if (tail && *tail >= offset + smallest) {
    const bool known = end_seq && *end_seq > expected_;
    fill(offset, *tail, known ? std::optional(*end_seq - expected_) : std::nullopt, mark);
    offset = *tail;
  } else if (!tail && !end_seq) {
    result_.uncertain = true;
  }
  if (end_seq && *end_seq > expected_) result_.lost += *end_seq - expected_;  // nothing is left of these
  chunk.tail.store(coded_tail(offset), std::memory_order_relaxed);
  return result_;
}

std::uint32_t ChunkScan::walk(std::uint32_t from, std::uint32_t to, std::uint32_t& not_done) const {
  std::uint32_t count = 0;
  not_done = 0;
  while (from + smallest <= to) {
    const RecordHead& record = head(from);
    if (record.room() > to - from) return 0;
    ++count;
    not_done += record.is_done() ? 0 : 1;
    from += static_cast<std::uint32_t>(record.room());
  }
  return from == to ? count : 0;
}

void ChunkScan::fill(std::uint32_t from, std::uint32_t to, std::optional<std::uint64_t> missing,
                     const ChunkMark& mark) {
  std::uint32_t not_done = 0;
  const std::uint32_t walked = walk(from, to, not_done);
  if (!missing && walked == 0) result_.uncertain = true;
  const std::uint64_t count = missing.value_or(std::max(walked, 1U));
  if (walked == count) {
    result_.lost += not_done;
  } else if (count == 1) {
    result_.lost += head(from).is_done() ? 0 : 1;
  } else {
    result_.lost += count;
  }
  if (sink_) sink_(file_offset_ + from, {chunk_ + from, to - from});
  RecordHead& filler = *new (chunk_ + from) RecordHead;
  filler.size_and_marks = (to - from - smallest) | RecordHead::filler_mark;
  filler.state.store(RecordHead::done, std::memory_order_relaxed);
  filler.seq = expected_ + count - 1;
  filler.stamp = static_cast<std::int64_t>(count);
  filler.check = filler.sum(mark.run, {chunk_ + from + smallest, filler.size()});
  expected_ += count;
  ++result_.records;
}

}  // namespace postrider::logger
