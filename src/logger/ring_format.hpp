// SPDX-License-Identifier: Apache-2.0
// How a ring lies in memory, which may be a mapped file: what a process wrote before `kill -9` is there for
// the next one, and that one believes nothing that has no right checksum.
//
//     LaneHead …, its copy                    one page
//     ChunkHead, records                      the first chunk
//     ChunkHead, records                      …
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "logger/checksum.hpp"

namespace postrider::logger {

/// Odd, so that a change of one word alone always shows in the sum.
inline constexpr std::uint64_t ring_prime_1 = 0x9e3779b185ebca87ULL;
inline constexpr std::uint64_t ring_prime_2 = 0xc2b2ae3d27d4eb4fULL;
inline constexpr std::uint64_t ring_prime_3 = 0x165667b19e3779f9ULL;

struct RecordHead {
  /// Each is the other's complement: a damaged one is still known by what it is nearer to.
  enum State : std::uint32_t { live = 0x33cc55aa, done = ~std::uint32_t{live} };
  /// Logged by an `on_loss` callback: its own loss is counted, and not told to that callback.
  static constexpr std::uint32_t quiet_mark = std::uint32_t{1} << 31U;
  /// Stands where damaged records were: `stamp` of them, the last one was `seq`.
  static constexpr std::uint32_t filler_mark = std::uint32_t{1} << 30U;

  std::uint32_t size_and_marks;  // of the packed entry behind it
  std::atomic<std::uint32_t> state;
  std::uint64_t check;  // of all but the state; only in files
  std::uint64_t seq;    // with the chunk's `run`: the idempotency key
  std::int64_t stamp;   // when it was logged

  [[nodiscard]] std::uint32_t size() const noexcept { return size_and_marks & (filler_mark - 1); }
  [[nodiscard]] bool quiet() const noexcept { return (size_and_marks & quiet_mark) != 0; }
  [[nodiscard]] bool filler() const noexcept { return (size_and_marks & filler_mark) != 0; }
  [[nodiscard]] bool is_done() const noexcept {
    return std::popcount(state.load(std::memory_order_relaxed) ^ done) < 16;
  }
  /// With the record's head, up to where the next may begin.
  [[nodiscard]] static std::size_t room_for(std::size_t packed) noexcept {
    return (sizeof(RecordHead) + packed + 7U) & ~std::size_t{7};
  }
  [[nodiscard]] std::size_t room() const noexcept { return room_for(size()); }
  /// What `check` has to be.
  [[nodiscard]] std::uint64_t sum(std::uint64_t run, std::string_view packed) const noexcept {
    return (checksum(packed) ^ run) + seq * ring_prime_1 + static_cast<std::uint64_t>(stamp) * ring_prime_2 +
           size_and_marks * ring_prime_3;
  }
};
static_assert(sizeof(RecordHead) == 32 && std::atomic<std::uint32_t>::is_always_lock_free);

/// Which life of a chunk its records belong to.
struct ChunkMark {
  std::uint64_t order;      // of the chunks of a lane, from 1
  std::uint64_t run;        // random, per life of the lane
  std::uint64_t first_seq;  // of its first record
  std::uint64_t check;

  [[nodiscard]] std::uint64_t sum() const noexcept {
    return (order * ring_prime_1 ^ run) + first_seq * ring_prime_2 + ring_prime_3;
  }
  [[nodiscard]] bool valid() const noexcept { return check == sum(); }
};

struct ChunkHead {
  std::atomic<std::uint64_t> tail;  // see `coded_tail`
  ChunkMark mark;
  char padding[24];
  ChunkMark copy;  // on another line: what damages one seldom damages both
  char more_padding[32];

  [[nodiscard]] std::uint32_t end() const noexcept {
    return static_cast<std::uint32_t>(tail.load(std::memory_order_acquire));
  }
};
static_assert(sizeof(ChunkHead) == 128 && std::atomic<std::uint64_t>::is_always_lock_free);

/// Where the last record ends, 0 for a chunk that is free; its complement lies above, in the same store.
[[nodiscard]] inline std::uint64_t coded_tail(std::uint32_t tail) noexcept {
  return std::uint64_t{~tail} << 32U | tail;
}
[[nodiscard]] inline std::optional<std::uint32_t> decoded_tail(std::uint64_t coded) noexcept {
  const auto tail = static_cast<std::uint32_t>(coded);
  return coded == coded_tail(tail) ? std::optional(tail) : std::nullopt;
}

struct LaneHead {
  static constexpr std::uint64_t magic_1 = 0x31454e414c525450ULL;  // "PTRLANE1": records without checksums
  static constexpr std::uint64_t magic_2 = 0x32454e414c525450ULL;
  static constexpr std::size_t copy_at = 2048;

  std::uint64_t magic;
  std::uint32_t chunk_bytes;
  std::uint32_t chunk_count;
  std::uint64_t check;

  [[nodiscard]] std::uint64_t sum() const noexcept {
    return magic * ring_prime_1 + chunk_bytes * ring_prime_2 + chunk_count * ring_prime_3;
  }
  [[nodiscard]] bool valid() const noexcept { return magic == magic_2 && check == sum(); }
};

/// What a file turned out to be.
struct RingShape {
  enum class Kind { ours, old, unfinished, unknown };
  Kind kind = Kind::unknown;
  std::uint32_t chunk_bytes = 0;
  std::uint32_t chunk_count = 0;
};

}  // namespace postrider::logger
