// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "postrider/relay.hpp"
#include "relay/scheduler.hpp"
#include "storage/lease_store.hpp"
#include "storage/progress_store.hpp"

namespace postrider {

inline constexpr std::string_view global_lease = "leader";
inline constexpr std::string_view node_lease_prefix = "node/";
inline constexpr std::string_view standby_prefix = "standby/";

/// How many pairs a node should take or give back, so that in the end no two nodes differ by more than one.
/// Pure.
struct SharePlan {
  std::size_t take = 0;
  std::size_t give = 0;
};
/// `others`: what each other living node leads.
[[nodiscard]] SharePlan plan_share(std::size_t total, std::size_t mine,
                                   const std::vector<std::size_t>& others);

/// Says which pairs this node leads, and for how long that is certain. One thread calls it, but for
/// `may_publish`.
///
/// Two things make a leader. The lease with its epoch is what is trusted: taking pairs needs it, and raises
/// theirs. The lock, which the database lets go when this process dies, only tells others that the lease need
/// not be waited for.
class Leader {
 public:
  struct Options {
    Leadership mode = Leadership::global;
    Duration lease{};
    std::string node{};
    Clock* clock = nullptr;
    MetricsExporter* metrics = nullptr;
    LogCallback log{};
    /// Makes the rows of this relay's pairs that are missing, and returns how many.
    std::function<std::size_t()> make_rows{};
  };
  /// `locks` may be null. All must outlive it.
  Leader(LeaseStore& leases, ProgressStore& progress, NodeLocks* locks, Scheduler& scheduler,
         Options options);

  /// One heartbeat: keeps or takes the lease, then the pairs. Throws what the database throws.
  void round();
  /// Gives all back at once, for somebody else to take. The scheduler is stopped, and its progress written.
  void hand_over();
  /// Whether the lease is ours at this moment, whatever happens elsewhere. Any thread.
  [[nodiscard]] bool may_publish() const noexcept;

 private:
  void hold_lock();
  [[nodiscard]] std::vector<std::string> find_dead(const std::vector<LeaseRow>& rows) const;
  /// True when it has just been taken.
  [[nodiscard]] bool keep_lease(const std::vector<LeaseRow>& rows, const std::vector<std::string>& dead);
  void lose();
  /// Lets others see that this node lives, though it leads nothing.
  void stand_by();
  void end_standing_by();
  void adjust(const std::vector<LeaseRow>& rows, const std::vector<std::string>& dead);
  /// Somebody may have removed what `start` has made. True when there was something to make.
  bool make_missing_rows();
  void take(Taking which, const std::vector<PairName>& names, const std::vector<std::string>& dead);

  LeaseStore& leases_;
  ProgressStore& progress_;
  NodeLocks* const locks_;
  Scheduler& scheduler_;
  const Options options_;
  const std::string lease_name_;
  const std::string standby_name_;
  std::unique_ptr<NodeLocks::Held> lock_;
  bool lock_complained_ = false;
  std::optional<LeaseFence> fence_;
  bool stands_by_ = false;
  std::atomic<SteadyPoint::rep> valid_until_{0};
  SteadyPoint tidy_at_{};
  SteadyPoint look_for_missing_at_{};
};

}  // namespace postrider
