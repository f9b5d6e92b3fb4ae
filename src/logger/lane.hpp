// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "postrider/clock.hpp"

namespace postrider::logger {

/// One record in a lane. Lies in memory that may be a mapped file: what a process wrote before `kill -9` is
/// there for the next one.
struct RecordHead {
  enum State : std::uint32_t { live = 1, done = 2 };
  std::uint32_t size;  // of the packed entry behind it
  std::atomic<std::uint32_t> state;
  std::uint64_t seq;   // with the chunk's `run`: the idempotency key
  std::int64_t stamp;  // when it was logged
};
static_assert(sizeof(RecordHead) == 24 && std::atomic<std::uint32_t>::is_always_lock_free);

struct ChunkHead {
  std::atomic<std::uint32_t> tail;  // where the last record ends; 0 for a chunk that is free
  std::uint32_t unused;
  std::uint64_t order;  // of the chunks of a lane
  std::uint64_t run;    // random, per life of the lane
  char padding[40];
};
static_assert(sizeof(ChunkHead) == 64);

struct LaneHead {
  std::uint64_t magic;
  std::uint32_t chunk_bytes;
  std::uint32_t chunk_count;
};

/// Memory for one lane. Unmapped in the end.
class LaneMemory {
 public:
  static constexpr std::size_t head_bytes = 4096;

  LaneMemory() = default;
  LaneMemory(char* begin, std::size_t size, bool is_file) noexcept
      : begin_(begin), size_(size), is_file_(is_file) {}
  LaneMemory(LaneMemory&& other) noexcept
      : begin_(other.begin_), size_(other.size_), is_file_(other.is_file_) {
    other.begin_ = nullptr;
  }
  LaneMemory& operator=(LaneMemory&&) = delete;
  ~LaneMemory();

  [[nodiscard]] char* begin() const noexcept { return begin_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// What lies in it outlives the process.
  [[nodiscard]] bool is_file() const noexcept { return is_file_; }

  /// Both throw std::system_error.
  [[nodiscard]] static LaneMemory anonymous(std::size_t bytes);
  /// A file that exists keeps its content and its size. Its space is reserved, so that a full disk cannot
  /// kill the process later.
  [[nodiscard]] static LaneMemory file(const std::string& path, std::size_t bytes);

 private:
  char* begin_ = nullptr;
  std::size_t size_ = 0;
  bool is_file_ = false;
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

  /// Takes over what is in the memory, see `recovered`.
  Lane(LaneMemory memory, std::uint32_t chunk_bytes, std::uint32_t chunk_count, std::uint64_t run);

  // The logging thread's.

  /// False when there is no room. Never blocks, never allocates.
  [[nodiscard]] bool push(std::string_view packed, std::int64_t stamp) noexcept {
    const auto need = static_cast<std::uint32_t>((sizeof(RecordHead) + packed.size() + 7U) & ~std::size_t{7});
    if (offset_ + need > chunk_bytes_ && !next_chunk(need)) [[unlikely]]
      return false;
    auto* const head = new (base_ + offset_) RecordHead;
    head->size = static_cast<std::uint32_t>(packed.size());
    head->state.store(RecordHead::live, std::memory_order_relaxed);
    head->seq = seq_++;
    head->stamp = stamp;
    packed.copy(base_ + offset_ + sizeof(RecordHead), packed.size());
    offset_ += need;
    ++records_;
    tail_->store(offset_, std::memory_order_release);
    pushed_.store(pushed_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return true;
  }
  /// Whether its events outlive the process.
  [[nodiscard]] bool survives() const noexcept { return memory_.is_file(); }
  [[nodiscard]] std::size_t max_packed() const noexcept {
    return chunk_bytes_ - sizeof(ChunkHead) - sizeof(RecordHead) - 8;
  }
  /// Pushed, and not yet seen by the draining thread.
  [[nodiscard]] std::uint64_t unseen() const noexcept {
    const std::uint64_t drained = drained_.load(std::memory_order_acquire);
    return pushed_.load(std::memory_order_relaxed) - drained;
  }
  /// Around a push, so that closing can wait for it.
  void enter() noexcept { busy_.store(true, std::memory_order_relaxed); }
  void leave() noexcept { busy_.store(false, std::memory_order_release); }
  [[nodiscard]] bool busy() const noexcept { return busy_.load(std::memory_order_acquire); }

  // The draining thread's.

  /// Calls `take(EventRef)` for up to `max` records. Returns how many; they are unseen until `seen`.
  template <class Take>
  std::size_t drain(std::size_t max, const Take& take) {
    std::size_t taken = 0;
    while (taken < max) {
      const std::uint32_t tail = chunk(read_chunk_).tail.load(std::memory_order_acquire);
      if (read_offset_ >= tail) {
        if (!pass_chunk()) break;
        continue;
      }
      const EventRef ref{this, read_chunk_, read_offset_};
      const RecordHead& head = ref.head();
      read_offset_ += static_cast<std::uint32_t>((sizeof(RecordHead) + head.size + 7U) & ~std::size_t{7});
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
  /// Records that were there but cannot be read.
  [[nodiscard]] std::uint64_t damaged() const noexcept { return damaged_; }
  [[nodiscard]] ChunkHead& chunk(std::uint32_t index) const noexcept {
    return *std::launder(reinterpret_cast<ChunkHead*>(begin_ + std::size_t{index} * chunk_bytes_));
  }

  std::atomic<bool> owned{false};         ///< by a thread
  std::atomic<std::uint64_t> refused{0};  ///< written by the owner alone

 private:
  struct Control {
    std::atomic<std::uint32_t> done{0};      // records released, and one for the drain having passed
    std::atomic<std::uint32_t> total{none};  // when that is all; known when the chunk is full
    std::atomic<std::uint32_t> next{none};
    std::atomic<bool> used{false};
  };

  bool next_chunk(std::uint32_t need) noexcept;
  bool pass_chunk() noexcept;
  bool finish_one(std::uint32_t index) noexcept;
  void recover();
  /// Walks over a chunk's records; what does not look like one ends it.
  std::uint32_t check_chunk(std::uint32_t index, std::uint32_t& live);
  void begin_chunk(std::uint32_t index) noexcept;

  LaneMemory memory_;
  char* const begin_;
  const std::uint32_t chunk_bytes_;
  const std::uint32_t chunk_count_;
  const std::uint64_t run_;
  std::unique_ptr<Control[]> controls_;
  std::uint64_t recovered_ = 0;
  std::uint64_t damaged_ = 0;

  // The logging thread's, on a line of its own.
  alignas(64) char* base_ = nullptr;
  std::atomic<std::uint32_t>* tail_ = nullptr;
  std::uint32_t offset_ = 0;
  std::uint32_t records_ = 0;  // in the current chunk
  std::uint32_t write_chunk_ = 0;
  std::uint64_t seq_ = 0;
  std::uint64_t order_ = 0;
  std::atomic<std::uint64_t> pushed_{0};
  std::atomic<bool> busy_{false};

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
  return {reinterpret_cast<const char*>(&record) + sizeof record, record.size};
}

}  // namespace postrider::logger
