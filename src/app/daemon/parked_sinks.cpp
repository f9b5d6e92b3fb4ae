// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/parked_sinks.hpp"

#include <algorithm>
#include <utility>

namespace postrider::daemon {
namespace {

/// Without a reason to wake up sooner.
constexpr Duration longest_sleep = std::chrono::hours{1};

}  // namespace

std::size_t ParkedSinks::add(std::string name) {
  const MutexLock lock(mutex_);
  sinks_.push_back({.name = std::move(name)});
  return sinks_.size() - 1;
}

Duration ParkedSinks::park(std::size_t sink, Duration asked) {
  const MutexLock lock(mutex_);
  return sinks_.at(sink).parking.park(asked, clock_.steady_now());
}

void ParkedSinks::answered(std::size_t sink) {
  {
    const MutexLock lock(mutex_);
    Parking& parking = sinks_.at(sink).parking;
    const bool known = parking.recall_at().has_value();
    parking.answered();
    if (known || !parking.recall_at()) return;
  }
  changed_.notify_all();
}

ParkedSinks::Asking::Asking(ParkedSinks& sinks, std::size_t sink) : sinks_(sinks), sink_(sink) {
  const MutexLock lock(sinks_.mutex_);
  Sink& one = sinks_.sinks_.at(sink_);
  if (!one.parking.away()) return;
  allowed_ = !one.asked;
  alone_ = allowed_;
  one.asked = true;
}

ParkedSinks::Asking::~Asking() {
  if (!alone_) return;
  const MutexLock lock(sinks_.mutex_);
  sinks_.sinks_[sink_].asked = false;
}

void ParkedSinks::revive() {
  {
    const MutexLock lock(mutex_);
    for (Sink& one : sinks_) one.parking.revive();
  }
  changed_.notify_all();
}

std::optional<ParkedSinks::Recall> ParkedSinks::next() {
  const MutexLock lock(mutex_);
  while (!closed_) {
    const SteadyPoint now = clock_.steady_now();
    SteadyPoint wake = now + longest_sleep;
    for (std::size_t i = 0; i < sinks_.size(); ++i) {
      const std::optional<SteadyPoint> at = sinks_[i].parking.recall_at();
      if (!at) continue;
      if (*at <= now) {
        sinks_[i].parking.recall_begins();
        return Recall{.sink = i, .name = sinks_[i].name};
      }
      wake = std::min(wake, *at);
    }
    clock_.wait_until(changed_, mutex_, wake);
  }
  return std::nullopt;
}

bool ParkedSinks::goes_on(std::size_t sink) const {
  const MutexLock lock(mutex_);
  return !closed_ && sinks_.at(sink).parking.goes_on(clock_.steady_now());
}

void ParkedSinks::ended(std::size_t sink, Parking::RecallEnd end) {
  const MutexLock lock(mutex_);
  sinks_.at(sink).parking.recall_ended(end, clock_.steady_now());
}

void ParkedSinks::open() {
  const MutexLock lock(mutex_);
  closed_ = false;
}

void ParkedSinks::close() {
  {
    const MutexLock lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

}  // namespace postrider::daemon
