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

void Drain::stop() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
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
  bool idle = false;
  for (;;) {
    std::uint64_t asked = 0;
    bool last = false;
    {
      const MutexLock lock(mutex_);
      asked = passes_asked_;
      last = stopping_;
      awake_ = false;
    }
    const std::size_t found = collect();
    {
      const MutexLock lock(mutex_);
      passes_done_ = asked;
      if (last) {
        passed_.notify_all();
        return;
      }
    }
    passed_.notify_all();

    // While events come, a full batch wakes it, or the time that an event may wait at most is half over.
    idle = found == 0;
    const std::uint64_t threshold = idle ? 1 : outlet_.options.batch_size;
    const SteadyPoint until =
        idle ? SteadyPoint::max()
             : clock_.steady_now() + std::max(outlet_.options.max_batch_wait / 2, Duration{1000});
    wake_at_.store(threshold, std::memory_order_relaxed);
    AsymmetricFence::heavy();
    if (!anything_for(threshold)) {
      const MutexLock lock(mutex_);
      while (!awake_ && !stopping_ && passes_asked_ == passes_done_ &&
             (idle || clock_.steady_now() < until)) {
        if (idle) {
          woken_.wait(mutex_);
        } else {
          clock_.wait_until(woken_, mutex_, until);
        }
      }
    }
    wake_at_.store(never, std::memory_order_relaxed);
  }
}

std::size_t Drain::collect() {
  std::size_t all = 0;
  for (std::size_t found = 1; found > 0;) {
    found = 0;
    // A little of each in turn, so that a busy thread does not keep the others waiting.
    lanes_.for_each([&](Lane& lane) {
      collected_.clear();
      found += lane.drain(from_one_lane, [&](const EventRef& event) { collected_.push_back(event); });
      if (!collected_.empty()) hand_over(lane, collected_);
    });
    all += found;
  }
  return all;
}

void Drain::hand_over(Lane& lane, std::vector<EventRef>& events) {
  outlet_.ledger.enter(events);
  lane.seen(events.size());
  const std::size_t taken = outlet_.queue.push(events);
  if (taken < events.size()) outlet_.divert(std::span(events).subspan(taken), LossReason::queue_full);
  failpoint("logger.queued");
}

}  // namespace postrider::logger
