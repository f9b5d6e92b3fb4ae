// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "logger/lane_set.hpp"
#include "logger/sender.hpp"

namespace postrider::logger {

/// Collects what threads have logged, and hands it to the senders; to the disk when they have no room. One
/// thread.
///
/// Threads that log do not wake it for each event. It says how many unseen events of one thread it wants to
/// be woken for: the first after a pause, then full batches; in between it looks by itself.
class Drain {
 public:
  Drain(LaneSet& lanes, Outlet& outlet);
  ~Drain() { stop(); }
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  void start();
  /// Collects what is there, then ends.
  void stop() POSTRIDER_EXCLUDES(mutex_);
  /// Everything logged before is collected. False when `deadline` passed before.
  [[nodiscard]] bool pass(SteadyPoint deadline) POSTRIDER_EXCLUDES(mutex_);

  /// After a push. The fence of the caller stands before it.
  void pushed(const Lane& lane) noexcept {
    if (lane.unseen() >= wake_at_.load(std::memory_order_relaxed)) [[unlikely]]
      wake();
  }
  /// There is no room in the caller's ring.
  void hurry() noexcept { wake(); }

 private:
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  void run();
  std::size_t collect();
  void hand_over(Lane& lane, std::vector<EventRef>& events);
  void wake() noexcept POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] bool anything_for(std::uint64_t threshold) const;

  LaneSet& lanes_;
  Outlet& outlet_;
  Clock& clock_;
  std::vector<EventRef> collected_;
  std::thread thread_;

  alignas(64) std::atomic<std::uint64_t> wake_at_{never};
  alignas(64) Mutex mutex_;
  CondVar woken_;
  CondVar passed_;
  bool awake_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;
  std::uint64_t passes_asked_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::uint64_t passes_done_ POSTRIDER_GUARDED_BY(mutex_) = 0;
};

}  // namespace postrider::logger
