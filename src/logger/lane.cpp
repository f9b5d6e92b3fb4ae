// SPDX-License-Identifier: Apache-2.0
#include "logger/lane.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

#include "logger/json_writer.hpp"
#include "postrider/error.hpp"

namespace postrider::logger {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw std::system_error(error, std::generic_category(), what);
}

}  // namespace

LaneMemory::~LaneMemory() {
  if (begin_ != nullptr) ::munmap(begin_, size_);
  // Not unlocked: in a child that fork() has made, the lock is the parent's. It ends with the last handle.
  if (lock_ >= 0) ::close(lock_);
}

void LaneMemory::unlock() noexcept {
  // To close it is not enough: on Linux the mapping keeps the lock as well.
  if (lock_ >= 0) ::flock(lock_, LOCK_UN);
}

LaneMemory LaneMemory::anonymous(std::size_t bytes) {
  void* const begin =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (begin == MAP_FAILED) fail("mmap", errno);
  return {static_cast<char*>(begin), bytes, -1, std::nullopt};
}

LaneMemory LaneMemory::file(const std::string& path, std::size_t bytes) {
  return open(path, bytes, O_CREAT);
}

LaneMemory LaneMemory::new_file(const std::string& path, std::size_t bytes) {
  return open(path, bytes, O_CREAT | O_EXCL);
}

LaneMemory LaneMemory::open(const std::string& path, std::size_t bytes, int flags) {
  const int file = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | flags, 0600);
  if (file < 0) fail("open " + path, errno);
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    ::close(file);
    if (error != EWOULDBLOCK) fail("lock " + path, error);
    throw Error(ErrorCode::conflict, "cannot use the ring " + path, "another logger uses it",
                "give each logger and each process a spillover_path of its own");
  }
  struct stat facts {};
  int error = ::fstat(file, &facts) == 0 ? 0 : errno;
  if (error == 0) bytes = std::max(bytes, static_cast<std::size_t>(facts.st_size));
  if (error == 0) error = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  void* begin = MAP_FAILED;
  if (error == 0) {
    begin = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    if (begin == MAP_FAILED) error = errno;
  }
  if (error != 0) {
    if (facts.st_size == 0) ::unlink(path.c_str());
    ::close(file);
    fail("map " + path, error);
  }
  return {static_cast<char*>(begin), bytes, file, File{path, facts.st_dev, facts.st_ino}};
}

bool LaneMemory::file_is_gone() const noexcept {
  if (!file_) return false;
  struct stat facts {};
  if (::stat(file_->path.c_str(), &facts) != 0) return errno == ENOENT || errno == ENOTDIR;
  return facts.st_dev != file_->device || facts.st_ino != file_->number;
}

void EventRef::append_key(std::string& out) const {
  std::array<char, key_room> key{};
  out.append(key.data(), put_key(key.data()));
}

char* EventRef::put_key(char* out) const noexcept {
  out = put(put_hex(out, lane->chunk(chunk).mark.run), "-");
  return std::to_chars(out, out + 20, head().seq).ptr;
}

Lane::Lane(LaneMemory memory, std::uint32_t chunk_bytes, std::uint32_t chunk_count, std::uint64_t run,
           const DamageSink& sink)
    : memory_(std::move(memory)),
      begin_(memory_.begin() + LaneMemory::head_bytes),
      chunk_bytes_(chunk_bytes),
      chunk_count_(chunk_count),
      run_(run),
      controls_(new Control[chunk_count]),
      checked_(memory_.is_file()) {
  recover(sink);
  LaneHead head{LaneHead::magic_2, chunk_bytes, chunk_count, 0};
  head.check = head.sum();
  for (const std::size_t at : {std::size_t{0}, LaneHead::copy_at})
    std::memcpy(memory_.begin() + at, &head, sizeof head);
}

void Lane::begin_chunk(std::uint32_t index) noexcept {
  ChunkHead& head = chunk(index);
  ChunkMark mark{++order_, run_, seq_, 0};
  mark.check = mark.sum();
  head.mark = head.copy = mark;
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

bool Lane::crowded() const noexcept {
  std::uint32_t used = 0;
  for (std::uint32_t i = 0; i < chunk_count_; ++i)
    used += controls_[i].used.load(std::memory_order_relaxed) ? 1 : 0;
  return 4 * used >= 3 * chunk_count_;
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
  if (read_offset_ + sizeof(RecordHead) <= end_of(read_chunk_)) return true;
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
  chunk(index).tail.store(coded_tail(0), std::memory_order_relaxed);
  control.used.store(false, std::memory_order_release);
  return true;
}

}  // namespace postrider::logger
