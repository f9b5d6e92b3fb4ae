// SPDX-License-Identifier: Apache-2.0
#include "logger/drain.hpp"

#include <algorithm>

#include "core/failpoint.hpp"
#include "logger/asymmetric_fence.hpp"

namespace postrider::logger {
namespace {

constexpr std::size_t from_one_lane = 256;

}  // namespace

Drain::Drain(LaneSet& lanes, Outlet& outlet)
    : lanes_(lanes), outlet_(outlet), clock_(*outlet.options.clock) {}

void Drain::start() {
  thread_ = std::thread([this] { run(); });
}

void Drain::stop(SteadyPoint deadline) {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    stop_by_ = deadline;
  }
  wake();
  if (thread_.joinable()) thread_.join();
}

bool Drain::pass(SteadyPoint deadline) {
  {
    const MutexLock lock(mutex_);
    ++passes_asked_;
  }
  wake();
  const MutexLock lock(mutex_);
  const std::uint64_t mine = passes_asked_;
  while (passes_done_ < mine && !stopping_) {
    if (clock_.steady_now() >= deadline) return false;
    clock_.wait_until(passed_, mutex_, deadline);
  }
  return true;
}

void Drain::wake() noexcept {
  wake_at_.store(never, std::memory_order_relaxed);
  {
    const MutexLock lock(mutex_);
    awake_ = true;
  }
  woken_.notify_one();
}

bool Drain::anything_for(std::uint64_t threshold) const {
  bool found = false;
  lanes_.for_each([&](const Lane& lane) { found = found || lane.unseen() >= threshold; });
  return found;
}

void Drain::run() {
  // Noticed when the rings were opened; the callback may want to use the logger, which was not there then.
  outlet_.ledger.tell_unseen(lanes_.damaged(), LossReason::corrupted);
  for (;;) {
    std::uint64_t asked = 0;
    std::uint64_t done = 0;
    bool last = false;
    {
      const MutexLock lock(mutex_);
      asked = passes_asked_;
      done = passes_done_;
      last = stopping_ && clock_.steady_now() >= stop_by_;
      awake_ = false;
    }
    if (asked != done && aimed_for_ == done) {
      aimed_for_ = asked;
      aim();
    }
    bool blocked = false;
    const std::size_t found = collect(blocked);
    if (last) give_up_rest();
    const bool reached = aim_reached();
    bool ends = false;
    {
      const MutexLock lock(mutex_);
      if (reached) passes_done_ = aimed_for_;
      ends = last || (stopping_ && !blocked && found == 0);
    }
    passed_.notify_all();
    if (ends) return;
    if (blocked) {
      await_room();
    } else {
      await_events(found);
    }
  }
}

void Drain::aim() {
  aim_.clear();
  lanes_.for_each([&](const Lane& lane) { aim_.push_back(lane.pushed_up_to()); });
}

bool Drain::aim_reached() const {
  std::size_t index = 0;
  bool reached = true;
  lanes_.for_each([&](const Lane& lane) {
    reached = reached && (index >= aim_.size() || lane.seen_up_to() >= aim_[index]);
    ++index;
  });
  return reached;
}

std::size_t Drain::room() const {
  return outlet_.queue.room() + disk_room();
}

std::size_t Drain::disk_room() const {
  if (outlet_.writer == nullptr) return 0;
  const std::size_t room = outlet_.writer->room();
  return outlet_.gate.is_closed() ? std::min(room, outlet_.writer->spare()) : room;
}

std::size_t Drain::spill(std::span<const EventRef> events) {
  return outlet_.writer->take(events.first(std::min(events.size(), disk_room())));
}

void Drain::await_room() {
  blocked_ = true;
  // Whoever makes room after this look sees that somebody waits for it.
  if (room() == 0) {
    const MutexLock lock(mutex_);
    const bool stopping = stopping_;
    while (!awake_ && stopping_ == stopping && !(stopping && clock_.steady_now() >= stop_by_)) {
      if (stopping) {
        clock_.wait_until(woken_, mutex_, stop_by_);
      } else {
        woken_.wait(mutex_);
      }
    }
  }
  blocked_ = false;
}

void Drain::await_events(std::size_t found) {
  // While events come, a full batch wakes it, or the time that an event may wait at most is half over.
  const bool idle = found == 0;
  const std::uint64_t threshold = idle ? 1 : outlet_.options.batch_size;
  const SteadyPoint until =
      idle ? SteadyPoint::max()
           : clock_.steady_now() + std::max(outlet_.options.max_batch_wait / 2, Duration{1000});
  wake_at_.store(threshold, std::memory_order_relaxed);
  AsymmetricFence::heavy();
  if (!anything_for(threshold)) {
    const MutexLock lock(mutex_);
    while (!awake_ && !stopping_ && passes_asked_ == passes_done_ && (idle || clock_.steady_now() < until)) {
      if (idle) {
        woken_.wait(mutex_);
      } else {
        clock_.wait_until(woken_, mutex_, until);
      }
    }
  }
  wake_at_.store(never, std::memory_order_relaxed);
}

std::size_t Drain::collect(bool& blocked) {
  std::size_t all = 0;
  blocked = !hand_over();
  for (std::size_t found = 1; found > 0 && !blocked;) {
    found = 0;
    // A little of each in turn, so that a busy thread does not keep the others waiting.
    lanes_.for_each_from(first_lane_++, [&](Lane& lane) {
      if (blocked || lane.unseen() == 0) return;
      const std::size_t most = std::min(from_one_lane, room());
      if (most == 0) {
        blocked = true;
        return;
      }
      found += lane.drain(most, [&](const EventRef& event) { collected_.push_back(event); });
      if (collected_.empty()) return;
      outlet_.ledger.enter(collected_);
      lane.seen(collected_.size());
      blocked = !hand_over();
    });
    all += found;
  }
  return all;
}

bool Drain::hand_over() {
  const auto rest = [&] { return std::span<const EventRef>(collected_).subspan(handed_); };
  if (rest().empty()) return true;
  // All of them are of one ring. What waits for a sender holds its place there: when little is left of the
  // ring, the queue may have room for more events, but the ring has not.
  const bool crowded = outlet_.writer != nullptr && rest().front().lane->crowded();
  if (crowded) handed_ += spill(rest());
  if (!rest().empty()) handed_ += outlet_.queue.push(rest());
  if (!crowded && !rest().empty() && outlet_.writer != nullptr) handed_ += spill(rest());
  failpoint("logger.queued");
  if (!rest().empty()) return false;
  collected_.clear();
  handed_ = 0;
  return true;
}

void Drain::give_up_rest() {
  outlet_.divert(std::span<const EventRef>(collected_).subspan(handed_), LossReason::shutdown_in_progress);
  lanes_.for_each([&](Lane& lane) {
    do {
      collected_.clear();
      lane.drain(from_one_lane, [&](const EventRef& event) { collected_.push_back(event); });
      outlet_.ledger.enter(collected_);
      lane.seen(collected_.size());
      outlet_.divert(collected_, LossReason::shutdown_in_progress);
    } while (!collected_.empty());
  });
  collected_.clear();
  handed_ = 0;
}

}  // namespace postrider::logger
