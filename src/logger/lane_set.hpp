// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>

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
};

/// A lane for each thread that logs. A lane whose thread has ended goes to the next new thread. Thread-safe.
class LaneSet : public std::enable_shared_from_this<LaneSet> {
 public:
  static constexpr std::size_t max_lanes = 1024;
  static constexpr std::uint32_t chunks = 16;

  /// Takes over the mapped files that another process left.
  [[nodiscard]] static std::shared_ptr<LaneSet> make(LaneOptions options);
  ~LaneSet();
  LaneSet(const LaneSet&) = delete;
  LaneSet& operator=(const LaneSet&) = delete;

  /// The calling thread's. Null when there can be no more lanes.
  [[nodiscard]] Lane* mine() noexcept { return cached_set == id_ ? cached_lane : find_mine(); }

  template <class Visit>
  void for_each(const Visit& visit) const {
    const std::size_t count = count_.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) visit(*lanes_[i]);
  }

  [[nodiscard]] std::uint64_t recovered() const noexcept { return recovered_; }
  [[nodiscard]] std::uint64_t damaged() const noexcept { return damaged_; }
  /// Lanes that should have been mapped files, and are plain memory because a file could not be made.
  [[nodiscard]] std::uint64_t fallbacks() const noexcept { return fallbacks_.load(); }

 private:
  friend struct ThreadLanes;

  explicit LaneSet(LaneOptions options);
  void take_over_files() POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] Lane* find_mine() noexcept;
  [[nodiscard]] Lane* acquire() POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] LaneMemory new_memory(std::size_t bytes) POSTRIDER_REQUIRES(mutex_);

  // Trivial, so that reading them costs no call.
  static thread_local constinit std::uint64_t cached_set;
  static thread_local constinit Lane* cached_lane;

  const std::uint64_t id_;  // never used again, unlike an address
  const LaneOptions options_;
  std::atomic<std::size_t> count_{0};
  std::array<std::unique_ptr<Lane>, max_lanes> lanes_;  // those below count_ stay as they are
  std::uint64_t recovered_ = 0;
  std::uint64_t damaged_ = 0;
  std::atomic<std::uint64_t> fallbacks_{0};

  Mutex mutex_;
  unsigned next_file_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::random_device random_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider::logger
