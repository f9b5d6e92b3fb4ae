// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "postrider/event_codec.hpp"
#include "postrider/log.hpp"
#include "postrider/metrics.hpp"
#include "postrider/queued_event.hpp"
#include "postrider/storage.hpp"

namespace postrider {

/// Everything that can be set, with its default. The constructor checks each value and names the one it
/// refuses.
struct QueueOptions {
  /// How long a claim lasts without a heartbeat. Then the event counts as abandoned and anybody may claim it
  /// again.
  Duration abandoned_timeout = std::chrono::seconds{60};
  /// An event that was in progress when its worker died (or fell silent) this many times is put into
  /// quarantine, so that one segfault cannot take the fleet down in a loop. 0: never.
  int max_crashes = 3;
  /// Tells other nodes about new events where that is possible (not on MariaDB), at most once per this
  /// interval. Zero: not at all; they find them by polling.
  Duration notify_interval = std::chrono::milliseconds{1};
  /// Names this node in the `owner` column (at most 64 characters). Default: host name, process id and a
  /// random suffix.
  std::string node_name{};
  /// Must outlive the queue; both are shared, not owned.
  Clock* clock = nullptr;              ///< default: Clock::system()
  MetricsExporter* metrics = nullptr;  ///< default: counts nothing
  LogCallback log = log_to_stderr();
};

/// For one `publish`. When an event is to be handled later, build it with `deliver_at`; for order with
/// `ordering_key`.
struct PublishOptions {
  int priority = 0;  ///< 0 to 9, higher ones are claimed first
  /// While an event with this key is in the queue, another one is not published (at most 200 characters). For
  /// a single event only.
  std::string dedupe_key{};
};

struct Published {
  std::vector<QueueId> ids{};  ///< in the order given to `publish`
  /// The dedupe key was taken: nothing was published, `id()` is the event that is there (0 when another
  /// transaction has just published it and has not committed yet).
  bool duplicate = false;
  [[nodiscard]] QueueId id() const { return ids.front(); }
};

namespace detail {
struct QueueParts;
}

/// A durable queue in your database: publish from any node, claim from any node. At-least-once: a worker that
/// dies leaves its events to the others after `abandoned_timeout`. Finished events move to the event log.
/// Thread-safe. `EventManager` runs handlers for it; without one, use `poll` and `finalize` yourself:
///
///     while (auto claimed = queue.poll()) {
///       work(*claimed->event);
///       queue.finalize(claimed->claim);
///     }
class EventQueue {
 public:
  /// Touches the database with the first call only.
  explicit EventQueue(Storage& storage, QueueOptions options = {});
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  /// Commits the event by itself, then wakes the workers.
  Published publish(const Event& event, const PublishOptions& options = {});
  /// Many at once, all or none. An empty list is refused.
  Published publish(std::span<const Event> events, const PublishOptions& options = {});
  /// In your own transaction: it is published if and when that commits. With a transaction of
  /// `Storage::begin` the workers are woken after the commit; with an adopted one call `wake()` after it, or
  /// let them find it.
  Published publish(Tx& tx, const Event& event, const PublishOptions& options = {});
  Published publish(Tx& tx, std::span<const Event> events, const PublishOptions& options = {});
  /// A struct of yours, see EventCodec.
  template <TypedEvent T>
  Published publish(const T& value, const PublishOptions& options = {}) {
    return publish(to_event(value), options);
  }
  template <TypedEvent T>
  Published publish(Tx& tx, const T& value, const PublishOptions& options = {}) {
    return publish(tx, to_event(value), options);
  }

  /// Claims the next eligible event: higher priority first, then the one that is available for longest;
  /// abandoned ones in their place. Never waits; nothing when there is none.
  [[nodiscard]] std::optional<QueuedEvent> poll();
  /// Up to `count` (1 to 10,000). Those of one ordering key come together, in order.
  [[nodiscard]] std::vector<QueuedEvent> poll(std::size_t count);

  /// Moves the event to the log: COMPLETED, or COMPLETED_WITH_ERRORS when there are errors among the results.
  /// Repeating it does nothing (`repeated`). A claim that has gone to somebody else is refused (`stale`).
  /// Throws Error(invalid_argument) for an id that neither the queue nor the log has.
  Settled finalize(const Claim& claim, std::span<const HandlerResult> results = {});
  /// The same with FAILED: it will not be tried again.
  Settled fail(const Claim& claim, const std::string& reason);
  /// Finalises in your own transaction: your effect and the end of the event happen together, or not at all.
  /// Nothing is written when the claim is stale: roll back then.
  Settled complete(Tx& tx, const Claim& claim, std::span<const HandlerResult> results = {});
  /// Back into the queue, available after `delay`.
  Settled retry(const Claim& claim, Duration delay, const std::string& error = {});
  /// Back into the queue as if it had not been claimed.
  Settled release(const Claim& claim);
  /// For work with several side effects: runs `task` unless it was done for this event before, then notes
  /// that it is done. False when it was done already. Throws Error(conflict) when the claim has gone to
  /// somebody else. In a manager's handler use those of its context.
  bool once(const Claim& claim, std::string_view name, const std::function<void()>& task);
  /// The same with the note inside your transaction: done and noted together, exactly once.
  bool once(Tx& tx, const Claim& claim, std::string_view name, const std::function<void(Tx&)>& task);
  /// Extends the claim by `abandoned_timeout` from now. False when it is no longer ours: stop working on it.
  [[nodiscard]] bool heartbeat(const Claim& claim);
  /// Returns those that are still held.
  [[nodiscard]] std::vector<QueueId> heartbeat(std::span<const Claim> claims);

  /// Tells workers on this node and (where the database can) on others that there may be new events. Cheap;
  /// many calls at once become one message.
  void wake() noexcept;

  [[nodiscard]] Storage& storage() noexcept;
  [[nodiscard]] const QueueOptions& options() const noexcept;

 private:
  friend class EventManager;
  std::unique_ptr<detail::QueueParts> parts_;
};

}  // namespace postrider
