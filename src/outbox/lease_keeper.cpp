// SPDX-License-Identifier: Apache-2.0
#include "outbox/lease_keeper.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/what_of.hpp"

namespace postrider {

namespace {

constexpr std::size_t renewals_per_statement = 1000;

}  // namespace

LeaseKeeper::LeaseKeeper(OutboxStore& store, InFlightTracker& in_flight, Duration lease, Clock& clock,
                         LogCallback log)
    : store_(store),
      in_flight_(in_flight),
      lease_(lease),
      clock_(clock),
      log_(std::move(log)),
      // A third of the lease leaves two more rounds before it ends, should one of them meet a database that
      // is away.
      rounds_(std::max<Duration>(lease / 3, std::chrono::milliseconds{1}), clock, [this] { round(); }) {}

void LeaseKeeper::round() noexcept {
  try {
    renew_due();
  } catch (const std::exception& error) {
    log_(LogLevel::warning, "postrider: cannot renew leases, trying again: " + what_of(error));
  }
}

std::size_t LeaseKeeper::renew_due() {
  const SteadyPoint now = clock_.steady_now();
  const std::vector<InFlightTracker::Entry> due = in_flight_.expiring_before(now + lease_ * 2 / 3);
  std::size_t renewed = 0;
  for (std::size_t first = 0; first < due.size(); first += renewals_per_statement) {
    const std::size_t count = std::min(renewals_per_statement, due.size() - first);
    std::vector<LeaseRef> held;
    held.reserve(count);
    for (std::size_t i = first; i < first + count; ++i) held.push_back({due[i].id, Token{due[i].hold.token}});
    // Measured before the database is asked: the local end must never be later than the one in the row.
    const SteadyPoint asked = clock_.steady_now();
    const std::vector<EventId> kept = store_.renew(held, lease_);
    const std::unordered_map<EventId, std::int64_t> tokens = [&] {
      std::unordered_map<EventId, std::int64_t> map;
      for (std::size_t i = first; i < first + count; ++i) map.emplace(due[i].id, due[i].hold.token);
      return map;
    }();
    for (const EventId& id : kept) in_flight_.extend(id, tokens.at(id), asked + lease_);
    renewed += kept.size();
  }
  return renewed;
}

}  // namespace postrider
