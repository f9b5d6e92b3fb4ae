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
  for (const Listener& listener : listeners_) listener.body->close();
  listeners_.clear();
}

void LiveFeed::forget_the_gone() {
  std::erase_if(listeners_, [](const Listener& one) { return !one.body->is_open(); });
}

std::shared_ptr<http::BodyStream> LiveFeed::join(std::function<bool()> may_listen) {
  auto body = std::make_shared<http::BodyStream>();
  // A browser that loses the connection comes back after this many milliseconds.
  if (!body->write("retry: 2000\n" + event())) return nullptr;
  const MutexLock lock(mutex_);
  forget_the_gone();
  if (listeners_.size() >= most_listeners_) return nullptr;
  listeners_.push_back({body, std::move(may_listen)});
  return body;
}

std::size_t LiveFeed::listeners() const {
  const MutexLock lock(mutex_);
  return static_cast<std::size_t>(std::count_if(listeners_.begin(), listeners_.end(),
                                                [](const Listener& one) { return one.body->is_open(); }));
}

void LiveFeed::tell() {
  std::vector<Listener> all;
  {
    const MutexLock lock(mutex_);
    forget_the_gone();
    all = listeners_;
  }
  // A stream has no end of its own: without this it would outlive the token that opened it.
  std::erase_if(all, [](const Listener& one) {
    if (one.may_listen()) return false;
    one.body->close();
    return true;
  });
  if (all.empty()) return;
  const std::string text = event();
  for (const Listener& one : all) (void)one.body->write(text);  // who does not take it is gone next time
}

}  // namespace postrider::daemon
