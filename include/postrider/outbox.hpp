// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/event.hpp"
#include "postrider/listener.hpp"
#include "postrider/log.hpp"
#include "postrider/metrics.hpp"
#include "postrider/outbox_admin.hpp"
#include "postrider/retry_policy.hpp"
#include "postrider/service.hpp"
#include "postrider/storage.hpp"

namespace postrider {

/// Everything that can be set, with its default. `Outbox`'s constructor checks each value and names the one
/// it refuses.
struct OutboxOptions {
  /// How many events run at the same time (1 to 1024). Listeners run on these threads, synchronously: slow
  /// listeners slow down dispatching, never publishing.
  std::size_t workers = 4;
  std::size_t hot_queue_capacity = 1000;   ///< 1 to 1,000,000
  std::size_t cold_queue_capacity = 1000;  ///< 1 to 1,000,000
  /// What the events of each queue may take in memory, from when they are queued until their results are
  /// written: payloads, headers and names (1 MiB to 1 TiB). Into an empty queue an event always goes. See
  /// docs/outbox.md.
  std::size_t hot_queue_bytes = 67'108'864;
  std::size_t cold_queue_bytes = 67'108'864;

  bool poller_enabled = true;
  /// The longest pause between two looks into the database. The poller looks sooner when it has reason to:
  /// after a full batch, after a queue overflow, when a retry falls due.
  Duration poller_interval = std::chrono::milliseconds{5000};
  std::size_t poller_batch_size = 200;  ///< 1 to 10,000
  /// How long a row published through an adopted transaction waits for `Staged::committed()` before pollers
  /// may take it.
  Duration poller_skip_recent = std::chrono::milliseconds{1000};

  Duration retry_base_delay = std::chrono::milliseconds{200};
  Duration retry_max_delay = std::chrono::milliseconds{60'000};
  int retry_max_attempts = 10;  ///< 1 to 1,000,000; the attempt with this number is the last
  /// Instead of the exponential policy made of the two delays above.
  std::shared_ptr<const RetryPolicy> retry_policy{};

  /// How long a node's claim on a row lasts without renewal. A crashed node's events are free for another
  /// one, or for its successor, after this time; its poller finds them within `poller_interval` from then.
  /// Living nodes renew theirs.
  Duration lease = std::chrono::seconds{30};
  /// Events of the same aggregate (type and id) are delivered in order, as if it were their ordering key.
  bool order_by_aggregate = false;
  /// Results are written to the database when this many have come together …
  std::size_t completer_batch_size = 512;  ///< 1 to 10,000
  /// … or when the first of them has waited this long.
  Duration completer_linger = std::chrono::milliseconds{2};
  /// How long `stop` waits for queued events to be delivered before it gives them back.
  Duration drain_timeout = std::chrono::seconds{10};

  /// Names this node in the table's `owner` column (at most 64 characters). Default: host name, process id
  /// and a random suffix.
  std::string node_name{};
  /// For tests: no threads; listeners run inside `commit()` and `poll()`, on the calling thread.
  bool inline_dispatch = false;
  /// Must outlive the outbox; both are shared, not owned.
  Clock* clock = nullptr;              ///< default: Clock::system()
  MetricsExporter* metrics = nullptr;  ///< default: counts nothing
  LogCallback log = log_to_stderr();
};

/// The receipt of `publish`. For a `Transaction` of ours there is nothing to do with it. For an adopted one,
/// call `committed()` after your COMMIT succeeded: the events are then delivered at once. Without it they are
/// delivered by the poller, a little later. Calling it after a rollback does no harm: rows are looked up
/// before they are delivered.
class Staged {
 public:
  Staged(Staged&&) noexcept;
  Staged& operator=(Staged&&) noexcept;
  ~Staged();

  /// Of the published events, in the order given to `publish`.
  [[nodiscard]] const std::vector<EventId>& ids() const noexcept { return ids_; }
  /// The id of the first one.
  [[nodiscard]] const EventId& id() const noexcept { return ids_.front(); }
  /// Never throws: what goes wrong costs latency, the poller brings the events. The outbox must still exist.
  void committed() noexcept;

 private:
  friend class OutboxClient;
  struct Pending;
  Staged(std::vector<EventId> ids, std::unique_ptr<Pending> pending) noexcept;
  std::vector<EventId> ids_;
  std::unique_ptr<Pending> pending_;  // null when hooks of the transaction do the work
};

/// The transactional outbox: `publish` inside your own database transaction; listeners run microseconds after
/// your commit; a poller makes sure that nothing is ever lost. At-least-once: a listener may see an event
/// again after a crash, with the same id. Thread-safe.
class Outbox final : public Service {
 public:
  /// Throws Error(invalid_argument) for an option out of bounds. Touches the database only when started.
  explicit Outbox(Storage& storage, OutboxOptions options = {});
  ~Outbox() override;
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  /// Registers a listener: for one type, or for all. An event runs its type's listeners in order of
  /// registration, then those registered for all. May be called at any time; events already running keep the
  /// list they started with.
  Outbox& on(const EventType& type, Listener listener);
  Outbox& on_all(Listener listener);

  /// Writes the event into the transaction. Throws Error(not_in_transaction) when it isn't active. A full
  /// queue is no error: see MetricsExporter::increment_hot_dropped.
  Staged publish(Tx& tx, const Event& event);
  /// Many at once, in one statement per batch. An empty list is refused.
  Staged publish(Tx& tx, std::span<const Event> events);
  Staged publish(Tx& tx, std::initializer_list<Event> events);
  /// In the thread's current transaction, see TxScope.
  Staged publish(const Event& event);
  Staged publish(std::span<const Event> events);

  /// Checks that the tables are there, then starts workers, completer and poller.
  void start() override;
  /// Takes no new events, delivers what is queued until `drain_timeout`, gives the rest back to the database.
  /// Running listeners are waited for, however long they take. Throws Error(invalid_argument) inside a
  /// listener.
  void stop() override;
  [[nodiscard]] bool running() const noexcept override;

  /// One cycle of the poller, now, on this thread; returns how many events it queued, `poller_batch_size` at
  /// most and fewer where the sizes of events or the room for them bid so: call it again until it returns 0.
  /// For tests and for programs with a schedule of their own (`poller_enabled = false`). Before `start` and
  /// after `stop` it does not look into the database and returns 0; `stop` waits for it.
  std::size_t poll();

  /// For watchdogs: for how long its poller should have been heard of. Zero unless it hangs; a database that
  /// is away, and listeners that take long, are no reason. Never blocks.
  [[nodiscard]] Duration overdue() const noexcept;

  /// Dead letters, purge and counts.
  [[nodiscard]] OutboxAdmin& admin() noexcept;
  [[nodiscard]] const OutboxOptions& options() const noexcept;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace postrider
