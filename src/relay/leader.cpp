// SPDX-License-Identifier: Apache-2.0
#include "relay/leader.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "core/failpoint.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"

namespace postrider {
namespace {

constexpr Duration tidy_interval = std::chrono::hours{1};
constexpr Duration forgotten_after = std::chrono::hours{24};
/// Where shares are led, there are always pairs that this node does not lead.
constexpr Duration missing_interval = std::chrono::minutes{1};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

SharePlan plan_share(std::size_t total, std::size_t mine, const std::vector<std::size_t>& others) {
  const std::size_t nodes = others.size() + 1;
  const std::size_t most = (total + nodes - 1) / nodes;
  const std::size_t least = total / nodes;
  if (mine < most) return {.take = most - mine};
  if (mine > most) return {.give = mine - most};
  // Everybody may have the larger share, unless somebody is left with less than the smaller one.
  const bool needed = most > least && std::any_of(others.begin(), others.end(),
                                                  [&](std::size_t other) { return other < least; });
  return {.give = needed ? std::size_t{1} : 0};
}

Leader::Leader(LeaseStore& leases, ProgressStore& progress, NodeLocks* locks, Scheduler& scheduler,
               Options options)
    : leases_(leases),
      progress_(progress),
      locks_(locks),
      scheduler_(scheduler),
      options_(std::move(options)),
      lease_name_(options_.mode == Leadership::global ? std::string(global_lease)
                                                      : std::string(node_lease_prefix) + options_.node),
      standby_name_(std::string(standby_prefix) + options_.node) {}

bool Leader::may_publish() const noexcept {
  return options_.clock->steady_now().time_since_epoch().count() < valid_until_;
}

void Leader::hold_lock() {
  if (locks_ == nullptr || (lock_ != nullptr && lock_->still_held())) return;
  lock_.reset();
  try {
    lock_ = locks_->hold(options_.node);
    lock_complained_ = false;
  } catch (const std::exception& error) {
    if (!std::exchange(lock_complained_, true)) {
      options_.log(
          LogLevel::warning,
          "postrider: cannot hold this node's lock, so that its death would be noticed by the end of its "
          "lease only: " +
              what_of(error));
    }
  }
}

std::vector<std::string> Leader::find_dead(const std::vector<LeaseRow>& rows) const {
  std::vector<std::string> suspects;
  if (locks_ == nullptr) return suspects;
  for (const LeaseRow& row : rows) {
    if (row.held && row.locked && row.owner != options_.node) suspects.push_back(row.owner);
  }
  if (suspects.empty()) return suspects;
  return locks_->free(suspects);
}

bool Leader::keep_lease(const std::vector<LeaseRow>& rows, const std::vector<std::string>& dead) {
  // Measured before the database is asked: its lease ends later than ours.
  const SteadyPoint begin = options_.clock->steady_now();
  const auto valid = [&] { valid_until_ = (begin + options_.lease).time_since_epoch().count(); };
  if (fence_.has_value()) {
    if (leases_.renew(*fence_, options_.lease, lock_ != nullptr)) {
      valid();
      return false;
    }
    lose();
  }
  const auto row =
      std::find_if(rows.begin(), rows.end(), [&](const LeaseRow& one) { return one.name == lease_name_; });
  if (row != rows.end() && row->held && !contains(dead, row->owner)) return false;
  const std::optional<Epoch> epoch =
      leases_.acquire(lease_name_, options_.node, options_.lease, lock_ != nullptr, dead);
  if (!epoch.has_value()) return false;
  fence_ = LeaseFence{lease_name_, options_.node, *epoch};
  valid();
  options_.metrics->increment_relay_leader_changes();
  options_.log(LogLevel::info, "postrider: node " + options_.node + " holds lease '" + lease_name_ +
                                   "', epoch " + std::to_string(static_cast<std::int64_t>(*epoch)));
  return true;
}

void Leader::lose() {
  valid_until_ = 0;
  fence_.reset();
  scheduler_.leave_all();
  options_.metrics->increment_relay_leader_changes();
  options_.log(LogLevel::warning,
               "postrider: node " + options_.node + " has lost lease '" + lease_name_ +
                   "': it stood still, or could not reach the database, for longer than that");
}

void Leader::stand_by() {
  stands_by_ = true;  // before: what failed may have been written
  leases_.announce(standby_name_, options_.lease);
}

void Leader::end_standing_by() {
  if (!stands_by_) return;
  leases_.withdraw(standby_name_);
  stands_by_ = false;
}

void Leader::take(Taking which, const std::vector<PairName>& names, const std::vector<std::string>& dead) {
  if (names.empty()) return;
  const std::vector<LedPair> taken = progress_.take(*fence_, which, names, dead);
  failpoint("relay.leader.after_take");
  if (taken.empty()) return;
  scheduler_.lead(taken);
  options_.log(LogLevel::info,
               "postrider: node " + options_.node + " leads " + counted(taken.size(), "more pair"));
}

bool Leader::make_missing_rows() {
  const SteadyPoint now = options_.clock->steady_now();
  if (!options_.make_rows || now < look_for_missing_at_ || scheduler_.not_led().empty()) return false;
  look_for_missing_at_ = now + missing_interval;
  const std::size_t made = options_.make_rows();
  if (made == 0) return false;
  options_.log(LogLevel::warning,
               "postrider: the database had forgotten how far " + counted(made, "pair") + " of this relay " +
                   (made == 1 ? "is" : "are") +
                   " (a removed row, or tables made anew): begun again where the start of each says");
  return true;
}

void Leader::adjust(const std::vector<LeaseRow>& rows, const std::vector<std::string>& dead) {
  const std::uint64_t ticket = scheduler_.ticket();
  const PairCensus census = progress_.census(options_.node, dead);
  const auto share_of = [&](const std::string& node) {
    for (const PairCensus::Share& share : census.shares) {
      if (share.leader == node) return share;
    }
    return PairCensus::Share{};
  };
  const PairCensus::Share stored = share_of(options_.node);
  const Scheduler::Digest known = scheduler_.digest();
  if (stored.pairs != known.pairs || stored.epochs != known.epochs || known.doubtful) {
    std::vector<LedPair> pairs = progress_.led(options_.node);
    scheduler_.reconcile(pairs);
    std::erase_if(pairs, [](const LedPair& pair) { return pair.state == PairState::active; });
    scheduler_.set_at_rest(pairs, ticket);
  } else {
    scheduler_.set_at_rest(census.at_rest, ticket);
  }
  if (options_.mode == Leadership::global) {
    take(Taking::any, scheduler_.not_led(), dead);
    if (make_missing_rows()) take(Taking::any, scheduler_.not_led(), dead);
    return;
  }
  (void)make_missing_rows();
  const std::vector<PairName> missing = scheduler_.not_led();
  std::vector<std::size_t> others;
  for (const LeaseRow& row : rows) {
    if (!row.held || row.owner == options_.node || contains(dead, row.owner)) continue;
    if (row.name.starts_with(node_lease_prefix)) {
      others.push_back(static_cast<std::size_t>(share_of(row.owner).pairs));
    }
  }
  const auto mine = static_cast<std::size_t>(scheduler_.digest().pairs);
  const SharePlan plan = plan_share(mine + missing.size(), mine, others);
  if (plan.take > 0) {
    std::vector<PairName> wanted;
    for (const PairName& name : census.orphans) {
      if (scheduler_.has(name)) wanted.push_back(name);
    }
    // Not all nodes reach for the same ones first.
    if (!wanted.empty()) {
      const auto first = static_cast<std::ptrdiff_t>(std::hash<std::string>{}(options_.node) % wanted.size());
      std::rotate(wanted.begin(), wanted.begin() + first, wanted.end());
    }
    wanted.resize(std::min(wanted.size(), plan.take));
    take(Taking::orphans, wanted, dead);
  } else if (plan.give > 0) {
    const std::vector<PairName> given = scheduler_.spare(plan.give);
    progress_.give_back(options_.node, given);
  }
}

void Leader::round() {
  hold_lock();
  const std::vector<LeaseRow> rows = leases_.list();
  const std::vector<std::string> dead = find_dead(rows);
  (void)keep_lease(rows, dead);
  if (!fence_.has_value()) {
    stand_by();
    return;
  }
  failpoint("relay.leader.after_lease");
  adjust(rows, dead);
  end_standing_by();
  options_.metrics->record_relay_led(static_cast<std::size_t>(scheduler_.digest().pairs));
  const SteadyPoint now = options_.clock->steady_now();
  if (now >= tidy_at_) {
    tidy_at_ = now + tidy_interval;
    for (const std::string_view prefix : {node_lease_prefix, standby_prefix}) {
      leases_.forget(prefix, forgotten_after);
    }
  }
}

void Leader::hand_over() {
  valid_until_ = 0;
  const std::vector<PairName> led = scheduler_.led();
  scheduler_.leave_all();
  try {
    if (!led.empty()) progress_.give_back(options_.node, led);
    if (fence_.has_value()) leases_.release(*fence_);
    end_standing_by();
  } catch (const std::exception& error) {
    options_.log(LogLevel::warning,
                 "postrider: cannot hand over, others take over by themselves: " + what_of(error));
  }
  fence_.reset();
  lock_.reset();
}

}  // namespace postrider
