// SPDX-License-Identifier: Apache-2.0
#include "queue/held_claims.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/what_of.hpp"

namespace postrider {
namespace {

constexpr std::size_t renewals_per_statement = 1000;

std::int64_t number(QueueId id) {
  return static_cast<std::int64_t>(id);
}

}  // namespace

HeldClaims::HeldClaims(QueueStore& store, Duration lease, Clock& clock, LogCallback log)
    : store_(store),
      lease_(lease),
      clock_(clock),
      log_(std::move(log)),
      // A third of the lease leaves two more rounds before it ends, should one meet a database that is away.
      heartbeat_(std::max<Duration>(lease / 3, std::chrono::milliseconds{1}), clock, [this] { beat(); }) {}

void HeldClaims::add(std::span<const QueuedEvent> events, SteadyPoint asked) {
  const MutexLock lock(mutex_);
  for (const QueuedEvent& event : events) {
    held_.insert_or_assign(number(event.claim.id),
                           Held{event.claim.token, asked + lease_, !event.ordering_key.empty()});
  }
}

bool HeldClaims::remove(std::span<const Settlement> settled) {
  const MutexLock lock(mutex_);
  bool ordered = false;
  for (const Settlement& one : settled) {
    const auto found = held_.find(number(one.claim.id));
    if (found == held_.end() || found->second.token != one.claim.token) continue;
    ordered = ordered || found->second.ordered;
    held_.erase(found);
  }
  return ordered;
}

bool HeldClaims::safe(const Claim& claim) const {
  const MutexLock lock(mutex_);
  const auto found = held_.find(number(claim.id));
  return found != held_.end() && found->second.token == claim.token &&
         clock_.steady_now() < found->second.until;
}

std::size_t HeldClaims::size() const {
  const MutexLock lock(mutex_);
  return held_.size();
}

void HeldClaims::beat() noexcept {
  try {
    (void)renew_due();
  } catch (const std::exception& error) {
    log_(LogLevel::warning, "postrider: cannot send heartbeats, trying again: " + what_of(error));
  }
}

std::size_t HeldClaims::renew_due() {
  std::vector<Claim> due;
  {
    const MutexLock lock(mutex_);
    const SteadyPoint before = clock_.steady_now() + lease_ * 2 / 3;
    for (const auto& [id, held] : held_) {
      if (held.until <= before) due.push_back({QueueId{id}, held.token});
    }
  }
  std::size_t renewed = 0;
  for (std::size_t first = 0; first < due.size(); first += renewals_per_statement) {
    const std::span<const Claim> some =
        std::span(due).subspan(first, std::min(renewals_per_statement, due.size() - first));
    const SteadyPoint asked = clock_.steady_now();
    std::vector<QueueId> kept = store_.renew(some, lease_);
    std::sort(kept.begin(), kept.end());
    const MutexLock lock(mutex_);
    for (const Claim& claim : some) {
      const auto found = held_.find(number(claim.id));
      if (found == held_.end() || found->second.token != claim.token) continue;
      if (std::binary_search(kept.begin(), kept.end(), claim.id)) {
        found->second.until = asked + lease_;
        ++renewed;
      } else {
        found->second.until = asked;  // it went to somebody else: not safe any more
      }
    }
  }
  return renewed;
}

}  // namespace postrider
