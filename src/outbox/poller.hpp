// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/sign_of_life.hpp"
#include "core/wake_times.hpp"
#include "outbox/dispatcher.hpp"
#include "outbox/run_length.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/log.hpp"
#include "postrider/metrics.hpp"
#include "storage/outbox_search_store.hpp"
#include "storage/outbox_store.hpp"

namespace postrider {

struct PollerOptions {
  std::string owner;
  Duration lease = std::chrono::seconds{30};
  std::size_t batch_size = 200;
  /// The longest pause; after work was found the pause starts small and doubles up to it.
  Duration interval = std::chrono::seconds{5};
  Clock* clock = nullptr;
  MetricsExporter* metrics = nullptr;
  LogCallback log;
  OutboxSearchStore* search = nullptr;  ///< null: commits in doubt are not looked for
};

/// Brings what the hot path did not: rows of crashed nodes, retries that fell due, overflow, rows inserted by
/// other programs. One thread. Sleeps until the interval is over or there is reason to look sooner.
class OutboxPoller {
 public:
  OutboxPoller(OutboxStore& store, OutboxDispatcher& dispatcher, PollerOptions options);
  ~OutboxPoller();

  void start();
  void stop();

  /// One cycle on the calling thread: claims at most one batch, as far as the cold queue has room. Returns
  /// how many rows were claimed. Throws what the store throws.
  std::size_t poll_once() POSTRIDER_EXCLUDES(cycle_mutex_);

  /// Look now.
  void poke();
  /// Look at this time: a retry falls due then.
  void wake_at(SteadyPoint when);
  /// These keys have just been worked off here; take their next events first.
  void continue_keys(std::vector<std::string> keys);
  /// So many events with keys were delivered, and so many failed, each stopping its key.
  void ordered_ended(std::size_t delivered, std::size_t failed);
  /// Their commits are in doubt. Where it has happened, their rows are leased to this node, which does not
  /// have them: they are looked for until these leases are over, and given back when they are there.
  void look_for(std::span<const OutboxItem> events);
  /// Of its thread.
  [[nodiscard]] const SignOfLife& sign_of_life() const noexcept { return sign_of_life_; }

 private:
  void run();
  struct Claimed {
    std::size_t rows = 0;
    bool more = false;     ///< as many as were asked for
    bool starved = false;  ///< more were not asked for because the cold queue has no room for them
  };
  /// As `poll_once`; `sign` is null unless this is the poller's own thread.
  Claimed poll(SignOfLife* sign) POSTRIDER_EXCLUDES(cycle_mutex_);
  Claimed claim_once(SignOfLife* sign) POSTRIDER_EXCLUDES(cycle_mutex_);
  struct Doubtful {
    LeaseRef lease;
    SteadyPoint until;
  };
  /// Reads first: a row that is not committed yet would hold up the one that writes. That the database is
  /// away is told by the claim.
  void free_doubtful() POSTRIDER_EXCLUDES(mutex_);
  /// For the next claim: keys that nobody else may look for soon.
  void ask_again(std::span<const std::string> keys) POSTRIDER_EXCLUDES(mutex_);
  /// False when stopping.
  bool wait_for_reason(Duration pause);

  OutboxStore& store_;
  OutboxDispatcher& dispatcher_;
  PollerOptions options_;

  Mutex cycle_mutex_;  // one cycle at a time: the room in the cold queue is counted before the claim
  Mutex mutex_;
  CondVar wake_;
  bool stopping_ POSTRIDER_GUARDED_BY(mutex_) = false;
  bool poked_ POSTRIDER_GUARDED_BY(mutex_) = false;
  WakeTimes wake_times_ POSTRIDER_GUARDED_BY(mutex_);
  std::vector<std::string> keys_ POSTRIDER_GUARDED_BY(mutex_);
  std::vector<Doubtful> doubtful_ POSTRIDER_GUARDED_BY(mutex_);
  SteadyPoint next_doubtful_look_ POSTRIDER_GUARDED_BY(mutex_){};
  RunLength run_length_ POSTRIDER_GUARDED_BY(mutex_);
  SignOfLife sign_of_life_;
  std::thread thread_;
};

}  // namespace postrider
