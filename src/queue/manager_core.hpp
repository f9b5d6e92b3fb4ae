// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "postrider/event_manager.hpp"
#include "queue/event_queue_parts.hpp"
#include "queue/handler_registry.hpp"
#include "queue/held_claims.hpp"
#include "queue/work_queue.hpp"

namespace postrider {

/// What the manager does with events, whoever's thread it happens on: claims them with their states, runs
/// their handlers, says what is to be written. Thread-safe.
class ManagerCore {
 public:
  ManagerCore(detail::QueueParts& queue, const EventManagerOptions& options);

  struct Fetched {
    std::vector<WorkItem> items{};
    std::size_t events = 0;
    bool more = false;  ///< there is more to look at
  };
  /// Claims up to `limit` events. At most one of them is a suspect (in progress when a worker died, and with
  /// one more crash it would be set aside), and none while another suspect is being handled here: a crash can
  /// then be laid at the right door. One that takes longer than the lease is no longer waited for.
  [[nodiscard]] Fetched fetch(std::size_t limit);
  /// Runs one item and passes on what is to be written, event by event.
  void handle(WorkItem item, const std::function<void(Settlement)>& settle);
  /// Writes on the calling thread; throws what the store throws. Returns those that have to be tried again,
  /// because somebody's open transaction has locked their rows.
  [[nodiscard]] std::vector<Settlement> write(std::span<const Settlement> settlements);
  /// After settlements are in the database, or were given up. True when the suspect was among them: now the
  /// next one may be fetched.
  [[nodiscard]] bool settled(std::span<const Settlement> settlements);
  /// A settlement that gives the event back.
  [[nodiscard]] static Settlement release_of(const QueuedEvent& event);

  HandlerRegistry registry;
  HeldClaims held;

 private:
  [[nodiscard]] std::optional<Settlement> handle_one(Work& work);
  [[nodiscard]] Settlement unhandled(const QueuedEvent& event);
  void drop(const QueuedEvent& event);
  [[nodiscard]] std::vector<QueueStore::EventState> load_states(std::span<const QueuedEvent> claimed,
                                                                std::span<const QueueId> ids);
  /// Gives them back, as far as the database can be reached, and holds them no longer in any case.
  void forget(std::span<const QueuedEvent> events) noexcept;

  detail::QueueParts& queue_;
  const EventManagerOptions& options_;
  Mutex mutex_;
  /// An abandoned event that has crashed so many times runs alone.
  [[nodiscard]] std::int32_t suspect_crashes() const noexcept;
  /// Types that this node has no handler for and leaves to others for a while.
  [[nodiscard]] std::vector<std::string> types_left_alone() POSTRIDER_EXCLUDES(mutex_);

  struct Suspect {
    Claim claim{};
    SteadyPoint alone_until{};
  };
  std::optional<Suspect> suspect_ POSTRIDER_GUARDED_BY(mutex_);
  std::map<std::string, SteadyPoint> unhandled_types_ POSTRIDER_GUARDED_BY(mutex_);  // left alone until then
};

}  // namespace postrider
