// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "logger/lane_set.hpp"
#include "logger/sender.hpp"

namespace postrider::logger {

/// Collects what threads have logged, and hands it to the senders; to the disk when they have no room, or
/// when most of a thread's ring is full of what waits for them. While neither has any, it leaves events in
/// their rings: when these are full, `log()` refuses, and its caller knows. So a receiver that is well, but
/// slow, loses no event to the limits of the files; they are for those that are away. One thread.
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
  /// Collects what is there, for which it waits for room until the deadline, then ends.
  void stop(SteadyPoint deadline = {}) POSTRIDER_EXCLUDES(mutex_);
  /// Everything logged before is collected. False when `deadline` passed before.
  [[nodiscard]] bool pass(SteadyPoint deadline) POSTRIDER_EXCLUDES(mutex_);

  /// After a push. The fence of the caller stands before it.
  void pushed(const Lane& lane) noexcept {
    if (lane.unseen() >= wake_at_.load(std::memory_order_relaxed)) [[unlikely]]
      wake();
  }
  /// There is no room in the caller's ring.
  void hurry() noexcept {
    if (!blocked_.load(std::memory_order_relaxed)) wake();
  }
  /// The queue or the disk can take more.
  void room_made() noexcept {
    if (blocked_.load()) wake();
  }

 private:
  static constexpr std::uint64_t never = ~std::uint64_t{0};

  void run();
  /// Until there is nothing more, or no more room: then it is `blocked`.
  std::size_t collect(bool& blocked);
  /// Hands over what was collected. False when there is no room for some of it.
  [[nodiscard]] bool hand_over();
  /// At the end of the shutdown's time: to disk, or lost.
  void give_up_rest();
  [[nodiscard]] std::size_t room() const;
  [[nodiscard]] std::size_t disk_room() const;
  /// As many of them as there is room for on disk.
  [[nodiscard]] std::size_t spill(std::span<const EventRef> events);
  void await_room() POSTRIDER_EXCLUDES(mutex_);
  void await_events(std::size_t found) POSTRIDER_EXCLUDES(mutex_);
  /// What `pass` waits for: everything pushed until now is seen.
  void aim();
  [[nodiscard]] bool aim_reached() const;
  void wake() noexcept POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] bool anything_for(std::uint64_t threshold) const;

  LaneSet& lanes_;
  Outlet& outlet_;
  Clock& clock_;
  std::vector<EventRef> collected_;
  std::size_t handed_ = 0;       // of these
  std::size_t first_lane_ = 0;   // goes round
  std::uint64_t aimed_for_ = 0;  // which pass
  std::vector<std::uint64_t> aim_;
  std::thread thread_;

  alignas(64) std::atomic<std::uint64_t> wake_at_{never};
  std::atomic<bool> blocked_{false};
  alignas(64) Mutex mutex_;
  CondVar woken_;
  CondVar passed_;
  bool awake_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;
  SteadyPoint stop_by_ POSTRIDER_GUARDED_BY(mutex_){};
  std::uint64_t passes_asked_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::uint64_t passes_done_ POSTRIDER_GUARDED_BY(mutex_) = 0;
};

}  // namespace postrider::logger
