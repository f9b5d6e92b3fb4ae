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
#include "outbox/completer.hpp"
#include "outbox/decide.hpp"
#include "outbox/in_flight_copies.hpp"
#include "outbox/key_lanes.hpp"
#include "outbox/outbox_item.hpp"
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
  /// A claim on places in the hot queue, taken before the rows are inserted: a row is born leased to this
  /// node exactly if a place waits for it. Gives back what was not used.
  class HotPlaces {
   public:
    HotPlaces() = default;
    HotPlaces(HotPlaces&& other) noexcept;
    HotPlaces& operator=(HotPlaces&& other) noexcept;
    ~HotPlaces() { give_back(); }
    [[nodiscard]] std::size_t count() const noexcept { return count_; }

   private:
    friend class OutboxDispatcher;
    HotPlaces(std::shared_ptr<OutboxDispatcher> owner, std::size_t count) noexcept
        : owner_(std::move(owner)), count_(count) {}
    void give_back() noexcept;
    std::shared_ptr<OutboxDispatcher> owner_;
    std::size_t count_ = 0;
  };

  OutboxDispatcher(OutboxStore& store, ListenerRegistry& listeners, Completer& completer,
                   InFlightTracker& in_flight, DispatcherOptions options);
  ~OutboxDispatcher();

  void start();
  /// Accepts nothing new, runs what is queued until the drain timeout, gives the rest back to the database.
  void stop();

  /// True between `start` and `stop`.
  [[nodiscard]] bool accepting() const;
  /// Up to `wanted` places; fewer, or none, when the queue is full or the dispatcher is not running.
  [[nodiscard]] static HotPlaces reserve_hot(const std::shared_ptr<OutboxDispatcher>& self,
                                             std::size_t wanted);

  /// Queues committed events on reserved places; there must be one for each. Never blocks. Returns false,
  /// taking nothing, when the dispatcher is stopping; else moves from `events`. Inline, it runs them.
  [[nodiscard]] bool enqueue_hot(std::vector<OutboxItem>& events, HotPlaces places);
  /// Queues claimed events. The caller has made sure of the room, see ClaimWindow. Returns false, taking
  /// nothing, when the dispatcher is stopping; else moves from `events`.
  [[nodiscard]] bool enqueue_cold(std::vector<OutboxItem>& events);
  /// Inline, runs on this thread what is queued; to be called after `enqueue_cold`, without any lock that a
  /// listener may come to want. Else does nothing.
  void run_inline();
  [[nodiscard]] std::size_t cold_room() const;

  /// Lasts from before the poller asks for rows until it has queued them. A result that becomes stale
  /// meanwhile, because its row's lease had ended and this claim took the row, is written again under the new
  /// claim: what has been delivered here is not delivered here again. `stop` waits for it to close, so that
  /// what was claimed is queued or given back, not left leased to nobody.
  class ClaimWindow {
   public:
    explicit ClaimWindow(OutboxDispatcher& dispatcher);
    ~ClaimWindow();
    ClaimWindow(const ClaimWindow&) = delete;
    ClaimWindow& operator=(const ClaimWindow&) = delete;
    /// How many events may be claimed; with 0, when the queue is full or the dispatcher is not running, the
    /// window is closed already.
    [[nodiscard]] std::size_t room() const noexcept { return room_; }

   private:
    OutboxDispatcher& dispatcher_;
    std::size_t room_ = 0;
  };

  /// Called by the completer after results are in the database. Returns the keys that may have more events
  /// waiting.
  std::vector<std::string> flushed(std::span<const FinishedEvent> results);

  /// Who is told that the poller should look into the database: when the cold queue has become half empty,
  /// and by `request_poll`. Set before `start`; not called after `stop` has returned.
  using PollWanted = std::function<void(std::optional<SteadyPoint> when)>;
  void on_poll_wanted(PollWanted callback) { on_poll_wanted_ = std::move(callback); }
  /// Now, or at the given time.
  void request_poll(std::optional<SteadyPoint> when = {});

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
  PollWanted on_poll_wanted_;

  mutable Mutex mutex_;
  CondVar ready_;    // something to run, or stopping
  CondVar drained_;  // nothing queued any more
  Queues queues_ POSTRIDER_GUARDED_BY(mutex_);
  InFlightCopies copies_ POSTRIDER_GUARDED_BY(mutex_);
  KeyLanes lanes_ POSTRIDER_GUARDED_BY(mutex_);
  std::size_t hot_used_ POSTRIDER_GUARDED_BY(mutex_) = 0;   // reserved or queued, also in lanes
  std::size_t cold_used_ POSTRIDER_GUARDED_BY(mutex_) = 0;  // queued, also in lanes
  std::size_t queued_ POSTRIDER_GUARDED_BY(mutex_) = 0;     // in the rings and in lanes
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
