// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "logger/limited_news.hpp"
#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/event_log_client.hpp"
#include "postrider/log.hpp"

namespace postrider::logger {

/// Tells people when the receiver begins to fail and why, once a minute while it goes on, and when it is well
/// again. One that asks for pauses begins to fail when it has taken nothing for a minute. Thread-safe.
class ReceiverNews {
 public:
  /// `meanwhile` says what becomes of the events.
  ReceiverNews(std::string meanwhile, LogCallback log, Clock& clock)
      : meanwhile_(std::move(meanwhile)), log_(std::move(log)), clock_(clock) {}

  void heard(const SendResult& result) POSTRIDER_EXCLUDES(mutex_);

 private:
  const std::string meanwhile_;
  const LogCallback log_;
  Clock& clock_;
  Mutex mutex_;
  std::optional<SteadyPoint> failing_since_ POSTRIDER_GUARDED_BY(mutex_);
  std::optional<SteadyPoint> told_at_ POSTRIDER_GUARDED_BY(mutex_);
  bool told_ POSTRIDER_GUARDED_BY(mutex_) = false;  // about this failure
};

/// Tells people of events that the receiver has refused for good: the first at once, then once a minute how
/// many there were, and why the last one. Each is in the dead letters. Thread-safe.
class RefusalNews {
 public:
  RefusalNews(LogCallback log, Clock& clock) : log_(std::move(log)), clock_(clock) {}

  void heard(const SendItem& refusal) POSTRIDER_EXCLUDES(mutex_);
  /// What was held back: `all`, or when its time has come.
  void tell_held_back(bool all) POSTRIDER_EXCLUDES(mutex_);

 private:
  void tell(std::uint64_t count) POSTRIDER_EXCLUDES(mutex_);

  const LogCallback log_;
  Clock& clock_;
  LimitedNews news_;
  Mutex mutex_;
  SendItem last_ POSTRIDER_GUARDED_BY(mutex_);
};

}  // namespace postrider::logger
