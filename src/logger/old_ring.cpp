// SPDX-License-Identifier: Apache-2.0
#include "logger/old_ring.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include "logger/json_writer.hpp"
#include "logger/packed_entry.hpp"

namespace postrider::logger {
namespace {

struct OldRecord {
  static constexpr std::uint32_t live = 1;
  static constexpr std::uint32_t done = 2;
  std::uint32_t size;
  std::uint32_t state;
  std::uint64_t seq;
  std::int64_t stamp;
};
struct OldChunk {
  std::uint32_t tail;
  std::uint32_t unused;
  std::uint64_t order;
  std::uint64_t run;
  char padding[40];
};
static_assert(sizeof(OldRecord) == 24 && sizeof(OldChunk) == 64);

template <class T>
T read_at(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

/// False when these are no fields of an entry.
bool add_key(std::string& packed, std::uint64_t run, std::uint64_t seq) {
  PackedFields fields(packed);
  bool has_key = false;
  while (fields.next()) has_key = has_key || fields.field() == EventLogEntry::Field::idempotency_key;
  if (fields.damaged()) return false;
  if (has_key) return true;
  std::array<char, EventRef::key_room> key{};
  char* end = put(put_hex(key.data(), run), "-");
  end = std::to_chars(end, key.data() + key.size(), seq).ptr;
  const auto size = static_cast<std::uint32_t>(end - key.data());
  std::array<char, PackedFields::head> head{static_cast<char>(EventLogEntry::Field::idempotency_key)};
  std::memcpy(head.data() + 1, &size, sizeof size);
  packed.append(head.data(), head.size()).append(key.data(), size);
  return true;
}

}  // namespace

OldRing OldRing::read(const LaneMemory& memory, const RingShape& shape, const DamageSink& sink) {
  OldRing ring;
  std::vector<std::pair<std::uint64_t, std::size_t>> chunks;  // by order
  for (std::size_t i = 0; i < shape.chunk_count; ++i) {
    const std::size_t at = LaneMemory::head_bytes + i * shape.chunk_bytes;
    if (shape.chunk_bytes < sizeof(OldChunk) || at + shape.chunk_bytes > memory.size()) break;
    const auto head = read_at<OldChunk>(memory.begin() + at);
    if (head.tail != 0) chunks.emplace_back(head.order, at);
  }
  std::sort(chunks.begin(), chunks.end());
  for (const auto& [order, at] : chunks) {
    const char* const chunk = memory.begin() + at;
    const auto head = read_at<OldChunk>(chunk);
    const std::size_t tail = std::min<std::size_t>(head.tail, shape.chunk_bytes);
    std::size_t offset = sizeof(OldChunk);
    while (offset + sizeof(OldRecord) <= tail) {
      const auto record = read_at<OldRecord>(chunk + offset);
      const std::size_t need = (sizeof record + record.size + 7U) & ~std::size_t{7};
      if ((record.state != OldRecord::live && record.state != OldRecord::done) || need > tail - offset) break;
      Event event{std::string(chunk + offset + sizeof record, record.size), record.stamp};
      if (!add_key(event.packed, head.run, record.seq)) break;
      if (record.state == OldRecord::live) ring.events.push_back(std::move(event));
      offset += need;
    }
    if (offset >= tail) continue;
    ++ring.damaged;
    if (sink) sink(at + offset, {chunk + offset, tail - offset});
  }
  return ring;
}

void OldRing::write(const std::string& path, std::uint32_t old_chunk_bytes, std::uint64_t run) const {
  constexpr std::uint32_t page = 4096;
  const std::uint32_t chunk_bytes = old_chunk_bytes / page * page + 2 * page;  // each event has grown
  std::size_t bytes = 0;
  for (const Event& event : events) bytes += RecordHead::room_for(event.packed.size());
  // An event that does not fit begins a new chunk, so that half of one may stay empty.
  const auto chunks = static_cast<std::uint32_t>(std::max<std::size_t>(4, bytes / chunk_bytes * 2 + 4));
  LaneMemory memory = LaneMemory::new_file(path, LaneMemory::head_bytes + std::size_t{chunk_bytes} * chunks);
  try {
    Lane lane(std::move(memory), chunk_bytes, chunks, run);
    for (const Event& event : events) {
      if (!lane.push(event.packed, event.stamp))
        throw std::system_error(ENOSPC, std::generic_category(), "an event is too large for " + path);
    }
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
}

}  // namespace postrider::logger
