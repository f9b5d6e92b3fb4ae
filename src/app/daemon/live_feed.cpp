// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/live_feed.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace postrider::daemon {

LiveFeed::LiveFeed(std::function<std::string()> text, Clock& clock, std::size_t most_listeners)
    : text_(std::move(text)),
      most_listeners_(most_listeners),
      task_(std::chrono::seconds{1}, clock, [this] { tell(); }) {}

std::string LiveFeed::event() const {
  return "event: overview\ndata: " + text_() + "\n\n";
}

void LiveFeed::stop() {
  task_.stop();
  const MutexLock lock(mutex_);
  for (const auto& listener : listeners_) listener->close();
  listeners_.clear();
}

std::shared_ptr<http::BodyStream> LiveFeed::join() {
  auto listener = std::make_shared<http::BodyStream>();
  // A browser that loses the connection comes back after this many milliseconds.
  if (!listener->write("retry: 2000\n" + event())) return nullptr;
  const MutexLock lock(mutex_);
  std::erase_if(listeners_, [](const auto& one) { return !one->is_open(); });
  if (listeners_.size() >= most_listeners_) return nullptr;
  listeners_.push_back(listener);
  return listener;
}

std::size_t LiveFeed::listeners() const {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(
      std::count_if(listeners_.begin(), listeners_.end(), [](const auto& one) { return one->is_open(); }));
}

void LiveFeed::tell() {
  std::vector<std::shared_ptr<http::BodyStream>> all;
  {
    const MutexLock lock(mutex_);
    std::erase_if(listeners_, [](const auto& one) { return !one->is_open(); });
    all = listeners_;
  }
  if (all.empty()) return;
  const std::string text = event();
  for (const auto& listener : all) (void)listener->write(text);  // who does not take it is gone next time
}

}  // namespace postrider::daemon
