// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/http/body_stream.hpp"
#include "core/periodic_task.hpp"
#include "postrider/detail/sync.hpp"

namespace postrider::daemon {

/// Tells everybody who listens the same thing once a second, as server-sent events: one thread for all of
/// them, and one text. Who is slow or gone is let go. Thread-safe.
class LiveFeed {
 public:
  /// `text` makes the data of an event, one line.
  LiveFeed(std::function<std::string()> text, Clock& clock, std::size_t most_listeners = 64);
  ~LiveFeed() { stop(); }
  LiveFeed(const LiveFeed&) = delete;
  LiveFeed& operator=(const LiveFeed&) = delete;

  void start() { task_.start(); }
  /// Says goodbye to all.
  void stop() POSTRIDER_EXCLUDES(mutex_);
  /// A body that begins with how things stand; null when there are too many. It ends when `may_listen`, which
  /// is asked before each event, says no.
  [[nodiscard]] std::shared_ptr<http::BodyStream> join(std::function<bool()> may_listen)
      POSTRIDER_EXCLUDES(mutex_);
  [[nodiscard]] std::size_t listeners() const POSTRIDER_EXCLUDES(mutex_);
  /// One event to all, now, on this thread.
  void tell() POSTRIDER_EXCLUDES(mutex_);

 private:
  struct Listener {
    std::shared_ptr<http::BodyStream> body;
    std::function<bool()> may_listen;
  };
  [[nodiscard]] std::string event() const;
  void forget_the_gone() POSTRIDER_REQUIRES(mutex_);

  const std::function<std::string()> text_;
  const std::size_t most_listeners_;
  mutable Mutex mutex_;
  std::vector<Listener> listeners_ POSTRIDER_GUARDED_BY(mutex_);
  PeriodicTask task_;
};

}  // namespace postrider::daemon
