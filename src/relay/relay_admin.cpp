// SPDX-License-Identifier: Apache-2.0
#include "postrider/relay_admin.hpp"

#include <algorithm>

#include "postrider/error.hpp"
#include "relay/leader.hpp"
#include "storage/lease_store.hpp"
#include "storage/progress_store.hpp"
#include "storage/stream_store.hpp"
#include "storage/wake_channel.hpp"

namespace postrider {
namespace {

std::string wording(const PairSelector& which) {
  std::string text = "there is no pair";
  if (which.topic) text += " of topic '" + *which.topic + "'";
  if (which.publisher) text += " of publisher '" + *which.publisher + "'";
  return text;
}

std::size_t require(std::size_t count, const PairSelector& which) {
  if (count == 0) {
    throw Error(ErrorCode::invalid_argument, wording(which), "no relay with it was ever started",
                "see which there are: postrider topics list (RelayAdmin::list())");
  }
  return count;
}

/// The leader looks at once, in this process or, where the database can tell it, in another.
void tell(Storage& storage) {
  storage.relay_changed()->notify();
  if (WakeChannel* const channel = storage.wake_channel()) {
    try {
      channel->notify(wake_topic::relay);
    } catch (const Error&) {
      // The change is made; its leader sees it with its next heartbeat.
    }
  }
}

}  // namespace

std::vector<PairStatus> RelayAdmin::list(const PairSelector& which) const {
  return storage_.relay_admin_store().list(which);
}

std::optional<PairStatus> RelayAdmin::find(const std::string& topic, const std::string& publisher) const {
  std::vector<PairStatus> found = list(PairSelector::pair(topic, publisher));
  if (found.empty()) return std::nullopt;
  return std::move(found.front());
}

std::size_t RelayAdmin::pause(const PairSelector& which) {
  const std::size_t count = require(storage_.relay_admin_store().change(which, PairChange::pause), which);
  tell(storage_);
  return count;
}

std::size_t RelayAdmin::resume(const PairSelector& which) {
  const std::size_t count = require(storage_.relay_admin_store().change(which, PairChange::resume), which);
  tell(storage_);
  return count;
}

std::size_t RelayAdmin::reset(const PairSelector& which) {
  const std::size_t count = require(storage_.relay_admin_store().change(which, PairChange::reset), which);
  tell(storage_);
  return count;
}

std::size_t RelayAdmin::move_to(const PairSelector& which, Position position) {
  if (position < Position{0}) {
    throw Error(ErrorCode::invalid_argument, "cannot move a pair to a position below 0");
  }
  const Position head = storage_.stream_store().head();
  if (position > head) {
    throw Error(ErrorCode::invalid_argument,
                "cannot move a pair to position " + std::to_string(static_cast<std::int64_t>(position)),
                "the store's head is " + std::to_string(static_cast<std::int64_t>(head)) +
                    ": events that are still to come would be passed over",
                "move it to the head at most");
  }
  const std::size_t count = require(storage_.relay_admin_store().move_to(which, position), which);
  tell(storage_);
  return count;
}

std::size_t RelayAdmin::forget(const PairSelector& which) {
  const std::vector<PairStatus> pairs = list(which);
  require(pairs.size(), which);
  const std::vector<LeaderStatus> nodes = leaders();
  const auto refuse = [](const PairStatus& pair, const std::string& why) {
    throw Error(ErrorCode::conflict,
                "cannot forget topic '" + pair.name.topic + "' of publisher '" + pair.name.publisher + "'",
                why, "take the pair out of all nodes' configurations first");
  };
  for (const PairStatus& pair : pairs) {
    const bool led = std::any_of(nodes.begin(), nodes.end(), [&](const LeaderStatus& node) {
      return node.alive && node.node == pair.leader;
    });
    if (led) refuse(pair, "node " + pair.leader + " leads it");
  }
  for (const PairStatus& pair : pairs) {
    if (!storage_.relay_admin_store().forget(pair.name, pair.leader))
      refuse(pair, "somebody has just taken it");
  }
  tell(storage_);
  return pairs.size();
}

std::vector<LeaderStatus> RelayAdmin::leaders() const {
  std::vector<LeaderStatus> leaders;
  const PairCensus census = storage_.progress_store().census({}, {});
  for (const LeaseRow& row : storage_.lease_store().list()) {
    if (row.owner.empty()) continue;
    LeaderStatus one{.lease = row.name,
                     .node = row.owner,
                     .epoch = row.epoch,
                     .since = row.since,
                     .heartbeat = row.heartbeat,
                     .alive = row.held};
    for (const PairCensus::Share& share : census.shares) {
      if (share.leader == row.owner) one.pairs = share.pairs;
    }
    leaders.push_back(std::move(one));
  }
  std::stable_partition(leaders.begin(), leaders.end(), [](const LeaderStatus& one) { return one.alive; });
  return leaders;
}

std::vector<StandbyStatus> RelayAdmin::standbys() const {
  const std::vector<LeaseRow> rows = storage_.lease_store().list();
  std::vector<StandbyStatus> standbys;
  for (const LeaseRow& row : rows) {
    if (!row.waits || !row.name.starts_with(standby_prefix)) continue;
    std::string node = row.name.substr(standby_prefix.size());
    // It takes its lease first, and then what it had announced back.
    const bool leads = std::any_of(rows.begin(), rows.end(),
                                   [&](const LeaseRow& other) { return other.held && other.owner == node; });
    if (leads) continue;
    standbys.push_back({.node = std::move(node), .since = row.since, .heartbeat = row.heartbeat});
  }
  return standbys;
}

std::vector<DeadLetter> RelayAdmin::dead_letters(const PairSelector& which, std::size_t limit,
                                                 Position after) const {
  return storage_.relay_admin_store().dead_letters(which, limit, after);
}

std::size_t RelayAdmin::count_dead_letters(const PairSelector& which, std::optional<Position> until) const {
  return storage_.relay_admin_store().count_dead(which, until);
}

std::size_t RelayAdmin::discard_dead_letters(const PairSelector& which, std::optional<Position> until) {
  return storage_.relay_admin_store().discard(which, until);
}

}  // namespace postrider
