// SPDX-License-Identifier: Apache-2.0
#include "logger/lane.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <vector>

#include "logger/json_writer.hpp"
#include "logger/packed_entry.hpp"

namespace postrider::logger {
namespace {

constexpr std::uint64_t lane_magic = 0x31454e414c525450ULL;  // "PTRLANE1"

[[noreturn]] void fail(const std::string& what, int error) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

LaneMemory::~LaneMemory() {
  if (begin_ != nullptr) ::munmap(begin_, size_);
}

LaneMemory LaneMemory::anonymous(std::size_t bytes) {
  void* const begin =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (begin == MAP_FAILED) fail("mmap", errno);
  return {static_cast<char*>(begin), bytes, false};
}

LaneMemory LaneMemory::file(const std::string& path, std::size_t bytes) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) fail("open " + path, errno);
  struct stat facts {};
  int error = ::fstat(file, &facts) == 0 ? 0 : errno;
  if (error == 0 && facts.st_size > 0) bytes = static_cast<std::size_t>(facts.st_size);
  if (error == 0) error = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  void* begin = MAP_FAILED;
  if (error == 0) {
    begin = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (begin == MAP_FAILED) error = errno;
  }
  ::close(file);
  if (error != 0) {
    if (facts.st_size == 0) ::unlink(path.c_str());
    fail("map " + path, error);
  }
  return {static_cast<char*>(begin), bytes, true};
}

void EventRef::append_key(std::string& out) const {
  std::array<char, key_room> key{};
  out.append(key.data(), put_key(key.data()));
}

char* EventRef::put_key(char* out) const noexcept {
  out = put(put_hex(out, lane->chunk(chunk).run), "-");
  return std::to_chars(out, out + 20, head().seq).ptr;
}

Lane::Lane(LaneMemory memory, std::uint32_t chunk_bytes, std::uint32_t chunk_count, std::uint64_t run)
    : memory_(std::move(memory)),
      begin_(memory_.begin() + LaneMemory::head_bytes),
      chunk_bytes_(chunk_bytes),
      chunk_count_(chunk_count),
      run_(run),
      controls_(new Control[chunk_count]) {
  auto* const head = reinterpret_cast<LaneHead*>(memory_.begin());
  const bool known =
      head->magic == lane_magic && head->chunk_bytes == chunk_bytes && head->chunk_count == chunk_count;
  if (!known) {
    // New, or of another shape: the set looks at that before it gives us the memory.
    for (std::uint32_t i = 0; i < chunk_count; ++i) new (&chunk(i)) ChunkHead{};
    *head = {lane_magic, chunk_bytes, chunk_count};
  }
  recover();
}

void Lane::recover() {
  std::vector<std::uint32_t> filled;
  for (std::uint32_t i = 0; i < chunk_count_; ++i) {
    if (chunk(i).tail.load(std::memory_order_relaxed) != 0) filled.push_back(i);
  }
  std::sort(filled.begin(), filled.end(),
            [&](std::uint32_t a, std::uint32_t b) { return chunk(a).order < chunk(b).order; });
  for (std::size_t i = 0; i < filled.size(); ++i) {
    const std::uint32_t index = filled[i];
    std::uint32_t live = 0;
    const std::uint32_t records = check_chunk(index, live);
    Control& control = controls_[index];
    control.used = true;
    control.done = records - live;
    recovered_ += live;
    order_ = std::max(order_, chunk(index).order);
    if (i + 1 < filled.size()) {
      control.total = records + 1;
      control.next = filled[i + 1];
    } else {
      // As if the logging thread stood at its end.
      write_chunk_ = index;
      records_ = records;
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

std::uint32_t Lane::check_chunk(std::uint32_t index, std::uint32_t& live) {
  ChunkHead& head = chunk(index);
  const std::uint32_t tail = std::min(head.tail.load(std::memory_order_relaxed), chunk_bytes_);
  std::uint32_t records = 0;
  std::uint32_t offset = sizeof(ChunkHead);
  while (offset + sizeof(RecordHead) <= tail) {
    const EventRef ref{this, index, offset};
    const std::uint32_t state = ref.head().state.load(std::memory_order_relaxed);
    const std::size_t need = (sizeof(RecordHead) + ref.head().size + 7U) & ~std::size_t{7};
    if ((state != RecordHead::live && state != RecordHead::done) || need > tail - offset) break;
    PackedFields fields(ref.packed());
    while (fields.next()) {
    }
    if (fields.damaged()) break;
    ++records;
    live += state == RecordHead::live ? 1 : 0;
    offset += static_cast<std::uint32_t>(need);
  }
  if (offset < tail) ++damaged_;
  head.tail.store(offset, std::memory_order_relaxed);
  return records;
}

void Lane::begin_chunk(std::uint32_t index) noexcept {
  ChunkHead& head = chunk(index);
  head.order = ++order_;
  head.run = run_;
  Control& control = controls_[index];
  control.done.store(0, std::memory_order_relaxed);
  control.total.store(none, std::memory_order_relaxed);
  control.next.store(none, std::memory_order_relaxed);
  base_ = reinterpret_cast<char*>(&head);
  tail_ = &head.tail;
  offset_ = sizeof(ChunkHead);
  records_ = 0;
  write_chunk_ = index;
}

bool Lane::next_chunk(std::uint32_t need) noexcept {
  if (need > chunk_bytes_ - sizeof(ChunkHead)) return false;
  // The lowest free one: what was used a moment ago is still in the cache.
  std::uint32_t index = 0;
  while (index < chunk_count_ && controls_[index].used.load(std::memory_order_acquire)) ++index;
  if (index == chunk_count_) return false;
  Control& closed = controls_[write_chunk_];
  const std::uint32_t total = records_ + 1;
  controls_[index].used.store(true, std::memory_order_relaxed);
  begin_chunk(index);
  closed.total.store(total, std::memory_order_release);
  closed.next.store(index, std::memory_order_release);
  return true;
}

bool Lane::pass_chunk() noexcept {
  Control& control = controls_[read_chunk_];
  const std::uint32_t next = control.next.load(std::memory_order_acquire);
  if (next == none) return false;
  // Only now is the tail that of a full chunk.
  if (read_offset_ < chunk(read_chunk_).tail.load(std::memory_order_acquire)) return true;
  const std::uint32_t passed = read_chunk_;
  read_chunk_ = next;
  read_offset_ = sizeof(ChunkHead);
  finish_one(passed);
  return true;
}

bool Lane::release(const EventRef& ref) noexcept {
  auto* const record = reinterpret_cast<RecordHead*>(reinterpret_cast<char*>(&chunk(ref.chunk)) + ref.offset);
  record->state.store(RecordHead::done, std::memory_order_relaxed);
  return finish_one(ref.chunk);
}

bool Lane::finish_one(std::uint32_t index) noexcept {
  Control& control = controls_[index];
  // The drain's own step comes after `total` is known, so whoever makes the last one sees it.
  const std::uint32_t done = control.done.fetch_add(1, std::memory_order_acq_rel) + 1;
  if (done != control.total.load(std::memory_order_acquire)) return false;
  chunk(index).tail.store(0, std::memory_order_relaxed);
  control.used.store(false, std::memory_order_release);
  return true;
}

}  // namespace postrider::logger
