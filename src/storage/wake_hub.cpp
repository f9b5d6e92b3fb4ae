// SPDX-License-Identifier: Apache-2.0
#include "storage/wake_hub.hpp"

#include <string>
#include <utility>

#include "core/what_of.hpp"
#include "storage/wake_channel.hpp"

namespace postrider {

WakeHub::WakeHub(std::shared_ptr<detail::Signal> here, WakeChannel* channel, std::string_view topic,
                 Duration interval, LogCallback log)
    : here_(std::move(here)),
      channel_(interval > Duration::zero() ? channel : nullptr),
      topic_(topic),
      interval_(interval),
      log_(std::move(log)) {}

WakeHub::~WakeHub() {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    thread = std::move(thread_);
  }
  changed_.notify_all();
  if (thread.joinable()) thread.join();
}

void WakeHub::wake() noexcept {
  here_->notify();
  const MutexLock lock(mutex_);
  if (channel_ == nullptr || stopping_ || pending_) return;
  pending_ = true;
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::exception&) {
      pending_ = false;  // no thread to be had just now: the others poll
      return;
    }
  }
  changed_.notify_all();
}

void WakeHub::run() {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      while (!pending_ && !stopping_) changed_.wait(mutex_);
      if (!pending_) return;
      pending_ = false;
    }
    tell_others();
    const MutexLock lock(mutex_);
    const SteadyPoint until = std::chrono::steady_clock::now() + interval_;
    while (!stopping_ && std::chrono::steady_clock::now() < until) changed_.wait_until(mutex_, until);
  }
}

void WakeHub::tell_others() noexcept {
  try {
    channel_->notify(topic_);
    failing_ = false;
  } catch (const std::exception& error) {
    if (!failing_) {
      log_(LogLevel::warning, "postrider: cannot wake other nodes, they poll: " + what_of(error));
    }
    failing_ = true;
  }
}

}  // namespace postrider
