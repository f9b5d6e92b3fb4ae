// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/detail/sync.hpp"
#include "postrider/event_queue.hpp"

namespace postrider {

/// Which function handles which type of event. Not synchronised: fill it first, then route.
class EventRouter {
 public:
  using Handler = std::function<void(const Event&)>;

  /// One handler per type; another one for the same type is refused with Error(invalid_argument).
  EventRouter& on(const EventType& type, Handler handler);
  /// Runs the type's handler; what it throws goes through. Throws Error(invalid_argument) when there is none.
  void route(const Event& event) const;

 private:
  std::map<std::string, Handler, std::less<>> handlers_;
};

/// The smallest face of the queue: publish, poll, finalize by id with success or failure; abandoned after
/// five minutes. The same tables as EventQueue, which it stands on. Thread-safe.
class EventBus {
 public:
  struct Polled {
    QueueId id{};
    Event event;
    std::int32_t attempts = 0;
  };

  static constexpr Duration default_timeout = std::chrono::minutes{5};

  explicit EventBus(Storage& storage) : EventBus(storage, bus_options()) {}
  EventBus(Storage& storage, QueueOptions options) : queue_(storage, std::move(options)) {}

  QueueId publish(const Event& event) { return queue_.publish(event).id(); }
  QueueId publish(Tx& tx, const Event& event) { return queue_.publish(tx, event).id(); }
  /// Never waits; nothing when there is none. A row that is no event goes to the log as FAILED.
  [[nodiscard]] std::optional<Polled> poll();
  /// COMPLETED or FAILED. The id must have come from `poll` of this bus. Idempotent. False when the event was
  /// abandoned meanwhile and belongs to somebody else now.
  ///
  /// `error` says why it failed and stands in the log (in `LogEntry::results`, cut at 4000 characters).
  /// Throws Error(invalid_argument) when there is one although it succeeded.
  bool finalize(QueueId id, bool success, std::string_view error = {});
  /// Polls one event, routes it, finalises it; what the handler throws is the error in the log. False when
  /// there was none.
  bool process_one(const EventRouter& router);

  [[nodiscard]] EventQueue& queue() noexcept { return queue_; }

 private:
  [[nodiscard]] static QueueOptions bus_options();

  EventQueue queue_;
  Mutex mutex_;
  std::map<QueueId, Claim> claims_ POSTRIDER_GUARDED_BY(mutex_);  // polled and not yet finalised
};

}  // namespace postrider
