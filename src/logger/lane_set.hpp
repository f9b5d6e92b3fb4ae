// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "logger/lane.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/log.hpp"

namespace postrider::logger {

struct LaneOptions {
  bool mapped = false;
  std::string
      folder{};  ///< of the mapped files; when it is set, files found there are taken over in either mode
  std::size_t ring_bytes = 4 * 1024 * 1024;  ///< of each lane
  LogCallback log{};
  std::function<void(std::string_view line)> quarantine{};  ///< takes what was damaged, as a line of JSON
};

/// A lane for each thread that logs. A lane whose thread has ended goes to the next new thread. Thread-safe.
class LaneSet : public std::enable_shared_from_this<LaneSet> {
 public:
  static constexpr std::size_t max_lanes = 1024;
  static constexpr std::uint32_t chunks = 16;

  /// Takes over the mapped files that another process left. Throws Error(conflict) when a logger uses them.
  [[nodiscard]] static std::shared_ptr<LaneSet> make(LaneOptions options);
  ~LaneSet();
  LaneSet(const LaneSet&) = delete;
  LaneSet& operator=(const LaneSet&) = delete;

  /// The calling thread's. Null when there can be no more lanes.
  [[nodiscard]] Lane* mine() noexcept {
    return cached_set == current_.load(std::memory_order_relaxed) ? cached_lane : find_mine();
  }

  /// Calls `use` with a lane for those who have none of their own, one caller at a time. False when there can
  /// be none, or `use` says so.
  template <class Use>
  bool use_shared(const Use& use) POSTRIDER_EXCLUDES(shared_mutex_, mutex_) {
    const MutexLock one(shared_mutex_);
    Lane* const lane = shared();
    return lane != nullptr && use(*lane);
  }

  template <class Visit>
  void for_each(const Visit& visit) const {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) visit(*lanes_[i]);
  }
  /// All of them, beginning with another one each time that `first` is raised.
  template <class Visit>
  void for_each_from(std::size_t first, const Visit& visit) const {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) visit(*lanes_[(first + i) % count]);
  }

  /// Threads that had to be content with plain memory get mapped files with their next event, as soon as such
  /// files can be made.
  void leave_plain_memory() POSTRIDER_EXCLUDES(mutex_);
  /// Whether somebody removed files that are in use.
  [[nodiscard]] bool files_are_gone() const;
  /// The threads whose files are gone get new ones with their next event.
  void replace_gone_files() POSTRIDER_EXCLUDES(mutex_);

  /// The logger has ended: the next one may have the files, even while a thread that ends just now keeps the
  /// set alive for a moment.
  void unlock_files() noexcept;

  [[nodiscard]] std::uint64_t recovered() const noexcept { return recovered_; }
  /// Events of the last process that cannot be read.
  [[nodiscard]] std::uint64_t damaged() const noexcept { return damaged_; }
  /// Lanes that should be mapped files, and are plain memory because a file could not be made; with those
  /// that threads have left, until they are drained.
  [[nodiscard]] std::uint64_t fallbacks() const noexcept;

 private:
  friend struct ThreadLanes;

  explicit LaneSet(LaneOptions options);
  void take_over_files() POSTRIDER_EXCLUDES(mutex_);
  void take_over(const std::string& path) POSTRIDER_REQUIRES(mutex_);
  /// Moves the events of an old ring into a new file. Returns its path, or nothing when there were none.
  [[nodiscard]] std::string renew(const std::string& path, const LaneMemory& memory, const RingShape& shape)
      POSTRIDER_REQUIRES(mutex_);
  void set_aside(const std::string& path, std::uint64_t offset, std::string_view bytes) const;
  [[nodiscard]] std::uint64_t new_run() POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] Lane* find_mine() noexcept;
  [[nodiscard]] Lane* shared() noexcept POSTRIDER_REQUIRES(shared_mutex_);
  /// The last one is kept for those who share it.
  [[nodiscard]] Lane* acquire(std::size_t most = max_lanes - 1) POSTRIDER_EXCLUDES(mutex_);
  /// One of whose thread has ended, and that `suits`. Null when there is none.
  template <class Suits>
  [[nodiscard]] Lane* take_free(const Suits& suits) POSTRIDER_REQUIRES(mutex_);
  /// A new one, in a file if it can be.
  [[nodiscard]] Lane* take_new() POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] Lane* take_plain() POSTRIDER_REQUIRES(mutex_);
  Lane* add(LaneMemory memory, bool owned) POSTRIDER_REQUIRES(mutex_);
  /// False when it cannot be made.
  [[nodiscard]] bool add_spare_file() POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] LaneMemory new_file() POSTRIDER_REQUIRES(mutex_);
  /// Calls `make(path)` with one path after the other, until one is not there yet.
  template <class Make>
  auto make_file(const Make& make) POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] std::uint32_t chunk_bytes() const noexcept {
    return static_cast<std::uint32_t>(options_.ring_bytes / chunks & ~std::size_t{4095});
  }
  [[nodiscard]] std::size_t lane_bytes() const noexcept {
    return LaneMemory::head_bytes + std::size_t{chunk_bytes()} * chunks;
  }
  /// The files that were found may be of a process that had another `ring_bytes`.
  [[nodiscard]] bool has_our_size(const Lane& lane) const noexcept {
    return lane.chunk_bytes() == chunk_bytes() && lane.chunk_count() == chunks;
  }

  // Trivial, so that reading them costs no call.
  static thread_local constinit std::uint64_t cached_set;
  static thread_local constinit Lane* cached_lane;

  const std::uint64_t id_;              // never used again, unlike an address
  std::atomic<std::uint64_t> current_;  // another one when threads have to look for their lanes anew
  const LaneOptions options_;
  std::atomic<std::size_t> count_{0};
  std::array<std::unique_ptr<Lane>, max_lanes> lanes_;  // those below count_ stay as they are
  std::uint64_t recovered_ = 0;
  std::uint64_t damaged_ = 0;

  Mutex shared_mutex_;
  Lane* shared_ POSTRIDER_GUARDED_BY(shared_mutex_) = nullptr;
  Mutex mutex_;
  std::uint64_t next_file_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::random_device random_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider::logger
