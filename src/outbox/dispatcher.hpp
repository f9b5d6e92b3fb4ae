// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/bounded_queue.hpp"
#include "core/inflight.hpp"
#include "outbox/claim_size.hpp"
#include "outbox/completer.hpp"
#include "outbox/decide.hpp"
#include "outbox/failure_log.hpp"
#include "outbox/in_flight_copies.hpp"
#include "outbox/key_lanes.hpp"
#include "outbox/outbox_item.hpp"
#include "outbox/queue_room.hpp"
#include "outbox/registry.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/log.hpp"
#include "postrider/metrics.hpp"
#include "storage/outbox_store.hpp"

namespace postrider {

struct DispatcherOptions {
  std::size_t workers = 4;
  std::size_t hot_capacity = 1000;
  std::size_t cold_capacity = 1000;
  std::size_t hot_bytes = std::size_t{64} << 20;
  std::size_t cold_bytes = std::size_t{64} << 20;
  Duration lease = std::chrono::seconds{30};
  RetryRules retry{};
  Duration drain_timeout = std::chrono::seconds{10};
  /// Runs listeners on the thread that enqueues and writes their results before returning; no workers. For
  /// tests.
  bool run_inline = false;
  Clock* clock = nullptr;
  MetricsExporter* metrics = nullptr;
  LogCallback log;
};

/// Runs listeners for committed events. Thread-safe.
///
/// Hot events (just committed here) go before cold ones (found by the poller), two to one. A full hot queue
/// never fails the caller: the row is in the database, the poller will bring it.
class OutboxDispatcher {
 public:
  /// A claim on places and bytes in the hot queue, taken before the rows are inserted: a row is born leased
  /// to this node exactly if a place waits for it. Gives back what was not used.
  class HotPlaces {
   public:
    HotPlaces() = default;
    HotPlaces(HotPlaces&& other) noexcept;
    HotPlaces& operator=(HotPlaces&& other) noexcept;
    ~HotPlaces() { give_back(); }
    [[nodiscard]] std::size_t count() const noexcept { return reserved_.places; }

   private:
    friend class OutboxDispatcher;
    HotPlaces(std::shared_ptr<OutboxDispatcher> owner, QueueRoom::Reserved reserved) noexcept
        : owner_(std::move(owner)), reserved_(reserved) {}
    void give_back() noexcept;
    std::shared_ptr<OutboxDispatcher> owner_;
    QueueRoom::Reserved reserved_{};
  };

  OutboxDispatcher(OutboxStore& store, ListenerRegistry& listeners, Completer& completer,
                   InFlightTracker& in_flight, DispatcherOptions options);
  ~OutboxDispatcher();

  void start();
  /// Accepts nothing new, runs what is queued until the drain timeout, gives the rest back to the database.
  void stop();

  /// True between `start` and `stop`.
  [[nodiscard]] bool accepting() const;
  /// Places for events of these sizes, from the first on; fewer, or none, when the queue is full or the
  /// dispatcher is not running.
  [[nodiscard]] static HotPlaces reserve_hot(const std::shared_ptr<OutboxDispatcher>& self,
                                             std::span<const std::size_t> sizes);

  /// Queues committed events on reserved places; there must be one for each. Never blocks. Returns false,
  /// taking nothing, when the dispatcher is stopping; else moves from `events`. Inline, it runs them.
  [[nodiscard]] bool enqueue_hot(std::vector<OutboxItem>& events, HotPlaces places);
  /// Queues claimed events. The caller has made sure of the room, see ClaimWindow. Returns false, taking
  /// nothing, when the dispatcher is stopping; else moves from `events`.
  [[nodiscard]] bool enqueue_cold(std::vector<OutboxItem>& events);
  /// Inline, runs on this thread what is queued; to be called after `enqueue_cold`, without any lock that a
  /// listener may come to want. Else does nothing.
  void run_inline();

  /// Lasts from before the poller asks for rows until it has queued them. A result that becomes stale
  /// meanwhile, because its row's lease had ended and this claim took the row, is written again under the new
  /// claim: what has been delivered here is not delivered here again. `stop` waits for it to close, so that
  /// what was claimed is queued or given back, not left leased to nobody.
  class ClaimWindow {
   public:
    ClaimWindow(OutboxDispatcher& dispatcher, std::size_t wanted);
    ~ClaimWindow();
    ClaimWindow(const ClaimWindow&) = delete;
    ClaimWindow& operator=(const ClaimWindow&) = delete;
    /// How many events may be claimed; with 0, when the queue is full or the dispatcher is not running, the
    /// window is closed already.
    [[nodiscard]] std::size_t limit() const noexcept { return limit_; }
    /// The queue has no room for as many as were wanted.
    [[nodiscard]] bool starved() const noexcept { return starved_; }
    /// What was claimed: `rows` and, of them, the events. Their sizes tell how much the next claim may ask
    /// for. When there was no room for more, and there may be more, a poll is wanted as soon as there is
    /// room.
    void brought(std::size_t rows, std::span<const OutboxItem> events);

   private:
    OutboxDispatcher& dispatcher_;
    std::size_t limit_ = 0;
    bool starved_ = false;
  };

  /// Called by the completer after results are in the database. Returns the keys that may have more events
  /// waiting.
  std::vector<std::string> flushed(std::span<const FinishedEvent> results);

  /// Who is told that the poller should look into the database: when a cold queue that was too full for a
  /// claim has become half empty, and by `request_poll`. Set before `start`; not called after `stop` has
  /// returned.
  using PollWanted = std::function<void(std::optional<SteadyPoint> when)>;
  void on_poll_wanted(PollWanted callback) { on_poll_wanted_ = std::move(callback); }
  /// Now, or at the given time.
  void request_poll(std::optional<SteadyPoint> when = {});
  /// Who is told of events that were to come here, but nobody knows whether their commit happened. As above.
  using InDoubt = std::function<void(std::span<const OutboxItem> events)>;
  void on_doubt(InDoubt callback) { on_doubt_ = std::move(callback); }
  void doubt(std::span<const OutboxItem> events);
  /// Whether the event is in memory here.
  [[nodiscard]] bool holds(const EventId& id) const { return in_flight_.find(id).has_value(); }

  /// Writes a result, by the completer or, inline, at once.
  void submit(FinishedEvent result);
  /// True inside a listener, at whatever depth: a listener may commit to an inline outbox.
  [[nodiscard]] bool runs_on_this_thread() const noexcept;

 private:
  struct Queues {
    Ring<OutboxItem> hot;
    Ring<OutboxItem> cold;
  };

  void enqueue(std::vector<OutboxItem>& events, bool hot);
  [[nodiscard]] bool cold_has_room_for(const OutboxItem& event) const;
  [[nodiscard]] QueueRoom& room_of(Source source) POSTRIDER_REQUIRES(mutex_) {
    return source == Source::hot ? hot_room_ : cold_room_;
  }
  /// To be called after events have left.
  void poll_if_room() POSTRIDER_REQUIRES(mutex_);
  void leave();
  /// Puts the event where it belongs; turned-away ones go to `given_back`.
  void admit(OutboxItem event, std::vector<OutboxItem>& given_back) POSTRIDER_REQUIRES(mutex_);
  void make_ready(OutboxItem event) POSTRIDER_REQUIRES(mutex_);
  [[nodiscard]] OutboxItem take() POSTRIDER_REQUIRES(mutex_);
  void work();
  void process(OutboxItem event);
  [[nodiscard]] bool still_held(OutboxItem& event);
  [[nodiscard]] bool first_of_its_key(const OutboxItem& event);
  [[nodiscard]] Outcome run_listeners(const OutboxItem& event);
  void finish(const OutboxItem& event, Completion completion);
  void leave_lane(const OutboxItem& event, bool may_be_followed);
  void requeue(OutboxItem copy);
  void drop(const OutboxItem& event);
  void give_back(std::span<const OutboxItem> events);
  [[nodiscard]] double random();

  OutboxStore& store_;
  ListenerRegistry& listeners_;
  Completer& completer_;
  InFlightTracker& in_flight_;
  DispatcherOptions options_;
  FailureLog deaths_;
  PollWanted on_poll_wanted_;
  InDoubt on_doubt_;

  mutable Mutex mutex_;
  CondVar ready_;    // something to run, or stopping
  CondVar drained_;  // nothing queued any more
  Queues queues_ POSTRIDER_GUARDED_BY(mutex_);
  InFlightCopies copies_ POSTRIDER_GUARDED_BY(mutex_);
  KeyLanes lanes_ POSTRIDER_GUARDED_BY(mutex_);
  QueueRoom hot_room_ POSTRIDER_GUARDED_BY(mutex_);   // places: reserved or queued, also in lanes
  QueueRoom cold_room_ POSTRIDER_GUARDED_BY(mutex_);  // places: queued, also in lanes
  ClaimSize claim_size_ POSTRIDER_GUARDED_BY(mutex_);
  std::size_t queued_ POSTRIDER_GUARDED_BY(mutex_) = 0;  // in the rings and in lanes
  std::size_t running_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::size_t entrants_ POSTRIDER_GUARDED_BY(mutex_) = 0;  // threads inside enqueue, run_inline or a claim
  unsigned turn_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  bool accepting_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;  // workers end as soon as they can
  std::vector<std::thread> workers_;

  Mutex random_mutex_;
  std::mt19937_64 random_engine_ POSTRIDER_GUARDED_BY(random_mutex_){std::random_device{}()};
};

}  // namespace postrider
