// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "logger/chunk_scan.hpp"
#include "logger/counted_time.hpp"
#include "logger/ring_format.hpp"
#include "postrider/clock.hpp"

namespace postrider::logger {

/// Memory for one lane. Unmapped in the end. A file is locked for as long as it is mapped: two loggers that
/// use one ring destroy each other's events, and the lock of the folder is a file, which somebody may remove.
class LaneMemory {
 public:
  static constexpr std::size_t head_bytes = 4096;

  LaneMemory() = default;
  LaneMemory(LaneMemory&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)),
        size_(other.size_),
        lock_(std::exchange(other.lock_, -1)),
        file_(std::move(other.file_)) {}
  LaneMemory& operator=(LaneMemory&&) = delete;
  ~LaneMemory();

  [[nodiscard]] char* begin() const noexcept { return begin_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// What lies in it outlives the process.
  [[nodiscard]] bool is_file() const noexcept { return file_.has_value(); }
  /// Somebody removed or replaced the file: what lies in it ends with the process after all.
  [[nodiscard]] bool file_is_gone() const noexcept;

  /// Nobody writes into it any more, or reads it: another logger may have the file now. Not for a child that
  /// fork() has made, whose lock is the parent's.
  void unlock() noexcept;

  /// Both throw std::system_error; a file that another logger uses is Error(conflict).
  [[nodiscard]] static LaneMemory anonymous(std::size_t bytes);
  /// A file that exists keeps its content, and its size unless that is smaller. Its space is reserved, so
  /// that a full disk cannot kill the process later. (One that somebody cuts off while it is mapped does:
  /// SIGBUS.)
  [[nodiscard]] static LaneMemory file(const std::string& path, std::size_t bytes);
  /// The same for a file that must not be there yet (EEXIST).
  [[nodiscard]] static LaneMemory new_file(const std::string& path, std::size_t bytes);

 private:
  struct File {
    std::string path;
    dev_t device;
    ino_t number;
  };
  [[nodiscard]] static LaneMemory open(const std::string& path, std::size_t bytes, int flags);
  LaneMemory(char* begin, std::size_t size, int lock, std::optional<File> file) noexcept
      : begin_(begin), size_(size), lock_(lock), file_(std::move(file)) {}

  char* begin_ = nullptr;
  std::size_t size_ = 0;
  int lock_ = -1;  // the file's handle. A child that fork() makes has it as well: the lock ends with the last
  std::optional<File> file_;
};

class Lane;

/// An event that lies in a lane. It stays there until `Lane::release`: nobody copies it.
struct EventRef {
  Lane* lane = nullptr;
  std::uint32_t chunk = 0;
  std::uint32_t offset = 0;
  std::uint8_t attempts = 0;
  std::uint8_t epoch = 0;  // for flush

  [[nodiscard]] const RecordHead& head() const noexcept;
  [[nodiscard]] std::string_view packed() const noexcept;
  [[nodiscard]] TimePoint stamp() const noexcept { return TimePoint{Duration{head().stamp}}; }
  /// Appends the key that `log()` has given: 16 hexadecimal digits, a hyphen, a number.
  void append_key(std::string& out) const;
  /// The same behind a pointer; returns its end.
  static constexpr std::size_t key_room = 16 + 1 + 20;
  [[nodiscard]] char* put_key(char* out) const noexcept;
};

/// A ring of chunks between one thread that logs and the one that drains. A record keeps its place until it
/// is released, in any order; a chunk is free again when all of its records are. So an event that waits for a
/// retry holds back a chunk, not the ring.
class Lane {
 public:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  /// Takes over what is in the memory, see `recovered`. Its shape has been looked at, see `shape_of`.
  Lane(LaneMemory memory, std::uint32_t chunk_bytes, std::uint32_t chunk_count, std::uint64_t run,
       const DamageSink& sink = {});
  /// Of a file that was found.
  [[nodiscard]] static RingShape shape_of(const LaneMemory& memory);

  // The logging thread's.

  /// False when there is no room. Never blocks, never allocates. For `quiet` see RecordHead.
  [[nodiscard]] bool push(std::string_view packed, std::int64_t stamp, bool quiet = false) noexcept {
    const auto need = static_cast<std::uint32_t>(RecordHead::room_for(packed.size()));
    if (offset_ + need > chunk_bytes_ && !next_chunk(need)) [[unlikely]]
      return false;
    auto* const head = new (base_ + offset_) RecordHead;
    head->size_and_marks = static_cast<std::uint32_t>(packed.size()) | (quiet ? RecordHead::quiet_mark : 0);
    head->state.store(RecordHead::live, std::memory_order_relaxed);
    head->seq = seq_++;
    head->stamp = stamp;
    packed.copy(base_ + offset_ + sizeof(RecordHead), packed.size());
    // Nobody damages memory that ends with the process.
    if (checked_) head->check = head->sum(run_, packed);
    offset_ += need;
    ++records_;
    tail_->store(coded_tail(offset_), std::memory_order_release);
    pushed_.store(pushed_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return true;
  }
  /// For the stamps.
  [[nodiscard]] CountedTime<ProcessorTime>& time() noexcept { return time_; }
  /// Whether its events outlive the process.
  [[nodiscard]] bool survives() const noexcept { return memory_.is_file() && !retired.load(); }
  [[nodiscard]] bool file_is_gone() const noexcept { return memory_.file_is_gone(); }
  void unlock_file() noexcept { memory_.unlock(); }
  [[nodiscard]] bool in_file() const noexcept { return memory_.is_file(); }
  [[nodiscard]] std::uint32_t chunk_bytes() const noexcept { return chunk_bytes_; }
  [[nodiscard]] std::uint32_t chunk_count() const noexcept { return chunk_count_; }
  [[nodiscard]] std::size_t max_packed() const noexcept {
    return chunk_bytes_ - sizeof(ChunkHead) - sizeof(RecordHead) - 8;
  }
  /// Pushed, and not yet seen by the draining thread.
  [[nodiscard]] std::uint64_t unseen() const noexcept {
    const std::uint64_t drained = drained_.load(std::memory_order_acquire);
    return pushed_.load(std::memory_order_relaxed) - drained;
  }
  /// How many were ever pushed, and how many of these were seen; with those that were recovered.
  [[nodiscard]] std::uint64_t pushed_up_to() const noexcept {
    return pushed_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t seen_up_to() const noexcept { return drained_.load(std::memory_order_relaxed); }
  /// Around a push, so that closing can wait for it.
  void enter() noexcept { busy_.store(true, std::memory_order_relaxed); }
  void leave() noexcept { busy_.store(false, std::memory_order_release); }
  [[nodiscard]] bool busy() const noexcept { return busy_.load(std::memory_order_acquire); }

  // The draining thread's.

  /// Three quarters of the ring are in use.
  [[nodiscard]] bool crowded() const noexcept;
  /// Calls `take(EventRef)` for up to `max` records. Returns how many; they are unseen until `seen`. Whatever
  /// somebody writes into the file meanwhile: never more than were pushed, and nothing outside of a chunk.
  template <class Take>
  std::size_t drain(std::size_t max, const Take& take) {
    max = std::min<std::size_t>(max, unseen());
    std::size_t taken = 0;
    while (taken < max) {
      if (read_offset_ + sizeof(RecordHead) > end_of(read_chunk_)) {
        if (!pass_chunk()) break;
        continue;
      }
      const EventRef ref{this, read_chunk_, read_offset_};
      const RecordHead& head = ref.head();
      read_offset_ += static_cast<std::uint32_t>(head.room());
      if (head.state.load(std::memory_order_relaxed) == RecordHead::done) continue;  // by the process before
      take(ref);
      ++taken;
    }
    return taken;
  }
  /// After they are counted elsewhere, so that no event is ever in no book.
  void seen(std::size_t count) noexcept {
    drained_.store(drained_.load(std::memory_order_relaxed) + count, std::memory_order_release);
  }

  // Anybody's.

  /// The event is done with. True when this made a chunk free.
  bool release(const EventRef& ref) noexcept;
  /// Records that this process has pushed.
  [[nodiscard]] std::uint64_t pushed() const noexcept {
    return pushed_.load(std::memory_order_relaxed) - recovered_;
  }
  /// Live records that were there when the lane was made.
  [[nodiscard]] std::uint64_t recovered() const noexcept { return recovered_; }
  /// Live records that were there but cannot be read.
  [[nodiscard]] std::uint64_t damaged() const noexcept { return damaged_; }
  /// There may have been more of those.
  [[nodiscard]] bool uncertain() const noexcept { return uncertain_; }
  [[nodiscard]] ChunkHead& chunk(std::uint32_t index) const noexcept {
    return *std::launder(reinterpret_cast<ChunkHead*>(begin_ + std::size_t{index} * chunk_bytes_));
  }

  std::atomic<bool> owned{false};  ///< by a thread
  /// Its file is gone, or it is plain memory and files can be had again: drained as ever, but nobody gets it.
  std::atomic<bool> retired{false};
  std::atomic<std::uint64_t> refused{0};  ///< written by the owner alone

 private:
  struct Control {
    std::atomic<std::uint32_t> done{0};      // records released, and one for the drain having passed
    std::atomic<std::uint32_t> total{none};  // when that is all; known when the chunk is full
    std::atomic<std::uint32_t> next{none};
    std::atomic<bool> used{false};
  };

  /// Where the records of a chunk end.
  [[nodiscard]] std::uint32_t end_of(std::uint32_t index) const noexcept {
    return std::min(chunk(index).end(), chunk_bytes_);
  }
  bool next_chunk(std::uint32_t need) noexcept;
  bool pass_chunk() noexcept;
  bool finish_one(std::uint32_t index) noexcept;
  void recover(const DamageSink& sink);
  /// The chunks that are not free, in their order, with their marks mended.
  [[nodiscard]] std::vector<std::uint32_t> used_chunks(const DamageSink& sink);
  [[nodiscard]] bool mend_mark(std::uint32_t index, const DamageSink& sink);
  [[nodiscard]] ChunkScan scan(std::uint32_t index, const DamageSink& sink) const;
  void begin_chunk(std::uint32_t index) noexcept;

  LaneMemory memory_;
  char* const begin_;
  const std::uint32_t chunk_bytes_;
  const std::uint32_t chunk_count_;
  const std::uint64_t run_;
  std::unique_ptr<Control[]> controls_;
  std::uint64_t recovered_ = 0;
  std::uint64_t damaged_ = 0;
  bool uncertain_ = false;

  // The logging thread's, on a line of its own.
  alignas(64) char* base_ = nullptr;
  std::atomic<std::uint64_t>* tail_ = nullptr;
  const bool checked_;
  std::uint32_t offset_ = 0;
  std::uint32_t records_ = 0;  // in the current chunk
  std::uint32_t write_chunk_ = 0;
  std::uint64_t seq_ = 0;
  std::uint64_t order_ = 0;
  std::atomic<std::uint64_t> pushed_{0};
  std::atomic<bool> busy_{false};
  CountedTime<ProcessorTime> time_;

  // The draining thread's.
  alignas(64) std::uint32_t read_chunk_ = 0;
  std::uint32_t read_offset_ = sizeof(ChunkHead);
  std::atomic<std::uint64_t> drained_{0};
};

inline const RecordHead& EventRef::head() const noexcept {
  const char* const begin = reinterpret_cast<const char*>(&lane->chunk(chunk));
  return *std::launder(reinterpret_cast<const RecordHead*>(begin + offset));
}
inline std::string_view EventRef::packed() const noexcept {
  const RecordHead& record = head();
  // A size that somebody has overwritten leads no further than to the end of the chunk.
  const std::size_t most = lane->chunk_bytes() - offset - sizeof record;
  return {reinterpret_cast<const char*>(&record) + sizeof record, std::min<std::size_t>(record.size(), most)};
}

}  // namespace postrider::logger
