// SPDX-License-Identifier: Apache-2.0
// What a lane makes of the memory that another process has left.
#include <algorithm>
#include <cstring>

#include "logger/lane.hpp"
#include "logger/lane_set.hpp"

namespace postrider::logger {
namespace {

bool is_zero(const char* begin, std::size_t bytes) noexcept {
  return std::all_of(begin, begin + bytes, [](char c) { return c == 0; });
}

ChunkHead& chunk_head(const LaneMemory& memory, std::size_t chunk_bytes, std::size_t index) noexcept {
  return *std::launder(
      reinterpret_cast<ChunkHead*>(memory.begin() + LaneMemory::head_bytes + chunk_bytes * index));
}

}  // namespace

RingShape Lane::shape_of(const LaneMemory& memory) {
  const std::size_t size = memory.size();
  LaneHead head{};
  for (const std::size_t at : {std::size_t{0}, LaneHead::copy_at}) {
    std::memcpy(&head, memory.begin() + at, sizeof head);
    if (head.valid()) return {RingShape::Kind::ours, head.chunk_bytes, head.chunk_count};
  }
  std::memcpy(&head, memory.begin(), sizeof head);
  if (head.magic == LaneHead::magic_1 && head.chunk_bytes > 0 && head.chunk_count > 0)
    return {RingShape::Kind::old, head.chunk_bytes, head.chunk_count};
  if (size <= LaneMemory::head_bytes) {
    const bool empty = is_zero(memory.begin(), size);
    return {empty ? RingShape::Kind::unfinished : RingShape::Kind::unknown};
  }
  // No head is left: the file's size says what it must have been, if one of its chunks bears that out.
  const std::size_t chunk_bytes = (size - LaneMemory::head_bytes) / LaneSet::chunks;
  if (chunk_bytes % 4096 != 0 || chunk_bytes * LaneSet::chunks + LaneMemory::head_bytes != size)
    return {RingShape::Kind::unknown};
  bool borne_out = false;
  bool touched = !is_zero(memory.begin(), LaneMemory::head_bytes);
  for (std::size_t i = 0; i < LaneSet::chunks; ++i) {
    const ChunkHead& chunk = chunk_head(memory, chunk_bytes, i);
    borne_out = borne_out || chunk.mark.valid() || chunk.copy.valid();
    touched = touched || !is_zero(reinterpret_cast<const char*>(&chunk), sizeof chunk);
  }
  if (borne_out) return {RingShape::Kind::ours, static_cast<std::uint32_t>(chunk_bytes), LaneSet::chunks};
  return {touched ? RingShape::Kind::unknown : RingShape::Kind::unfinished};
}

ChunkScan Lane::scan(std::uint32_t index, const DamageSink& sink) const {
  const std::uint64_t at = LaneMemory::head_bytes + std::uint64_t{index} * chunk_bytes_;
  return {reinterpret_cast<char*>(&chunk(index)), chunk_bytes_, sink, at};
}

bool Lane::mend_mark(std::uint32_t index, const DamageSink& sink) {
  ChunkHead& head = chunk(index);
  if (!head.mark.valid() && head.copy.valid()) head.mark = head.copy;
  if (head.mark.valid()) {
    head.copy = head.mark;
    return true;
  }
  if (is_zero(reinterpret_cast<const char*>(&head), sizeof head)) return false;  // never used
  // Whose records are these? Those of a run that another chunk knows of.
  for (std::uint32_t other = 0; other < chunk_count_; ++other) {
    const ChunkHead& known = chunk(other);
    const ChunkMark& mark = known.mark.valid() ? known.mark : known.copy;
    if (other == index || !mark.valid()) continue;
    const auto first = scan(index, sink).first_seq_of(mark.run);
    if (!first) continue;
    // Its place is behind the last one that has lower numbers.
    std::uint64_t order = 0;
    for (std::uint32_t i = 0; i < chunk_count_; ++i) {
      const ChunkMark& each = chunk(i).mark;
      if (i != index && each.valid() && each.run == mark.run && each.first_seq < *first)
        order = std::max(order, each.order);
    }
    head.mark = {order, mark.run, *first, 0};
    head.mark.check = head.mark.sum();
    head.copy = head.mark;
    uncertain_ = true;
    return true;
  }
  if (decoded_tail(head.tail.load(std::memory_order_relaxed)) != std::optional(0U)) {
    ++damaged_;
    uncertain_ = true;
    if (sink)
      sink(LaneMemory::head_bytes + std::uint64_t{index} * chunk_bytes_,
           {reinterpret_cast<const char*>(&head), chunk_bytes_});
  }
  return false;
}

std::vector<std::uint32_t> Lane::used_chunks(const DamageSink& sink) {
  std::vector<std::uint32_t> used;
  for (std::uint32_t i = 0; i < chunk_count_; ++i) {
    if (!mend_mark(i, sink)) {
      new (&chunk(i)) ChunkHead{};
      chunk(i).tail.store(coded_tail(0), std::memory_order_relaxed);
      continue;
    }
    if (decoded_tail(chunk(i).tail.load(std::memory_order_relaxed)) != std::optional(0U)) used.push_back(i);
  }
  std::sort(used.begin(), used.end(), [&](std::uint32_t a, std::uint32_t b) {
    const ChunkMark& first = chunk(a).mark;
    const ChunkMark& second = chunk(b).mark;
    return first.order != second.order ? first.order < second.order : first.first_seq < second.first_seq;
  });
  return used;
}

void Lane::recover(const DamageSink& sink) {
  std::vector<std::uint32_t> filled;
  std::vector<ScanResult> results;
  const std::vector<std::uint32_t> used = used_chunks(sink);
  for (std::uint32_t i = 0; i < chunk_count_; ++i) order_ = std::max(order_, chunk(i).mark.order);
  for (const std::uint32_t index : used) {
    const ChunkMark mark = chunk(index).mark;
    // Where the next chunk begins, this one ends.
    std::optional<std::uint64_t> end_seq;
    for (std::uint32_t i = 0; i < chunk_count_; ++i) {
      const ChunkMark& next = chunk(i).mark;
      if (next.valid() && next.run == mark.run && next.order == mark.order + 1) end_seq = next.first_seq;
    }
    const ScanResult result = scan(index, sink).run(mark, end_seq);
    recovered_ += result.live;
    damaged_ += result.lost;
    uncertain_ = uncertain_ || result.uncertain;
    if (result.live == 0) {
      chunk(index).tail.store(coded_tail(0), std::memory_order_relaxed);
      continue;
    }
    filled.push_back(index);
    results.push_back(result);
  }
  for (std::size_t i = 0; i < filled.size(); ++i) {
    Control& control = controls_[filled[i]];
    control.used = true;
    control.done = results[i].records - results[i].live;
    if (i + 1 < filled.size()) {
      control.total = results[i].records + 1;
      control.next = filled[i + 1];
    } else {
      // As if the logging thread stood at its end.
      write_chunk_ = filled[i];
      records_ = results[i].records;
      offset_ = chunk_bytes_;
    }
  }
  pushed_ = recovered_;
  if (filled.empty()) {
    controls_[0].used = true;
    begin_chunk(0);
  } else {
    read_chunk_ = filled.front();
  }
}

}  // namespace postrider::logger
