// SPDX-License-Identifier: Apache-2.0
#include "storage/conformance/queue_model.hpp"

#include <algorithm>
#include <tuple>

namespace postrider::conformance {
namespace {

bool processing(const QueueRow& row) {
  return row.status == QueueStatus::processing;
}
bool abandoned(const QueueRow& row, TimePoint now) {
  return processing(row) && (!row.lease_until.has_value() || *row.lease_until <= now);
}
bool eligible(const QueueClaimRequest& request, const QueueRow& row, TimePoint now) {
  const auto& unwanted = request.without_types;
  return std::find(unwanted.begin(), unwanted.end(), row.type) == unwanted.end() &&
         !row.quarantined.has_value() && row.available <= now && (!processing(row) || abandoned(row, now));
}
/// Of an eligible row; it is abandoned when it is being processed.
bool suspicious(const QueueClaimRequest& request, const QueueRow& row) {
  return row.crashes + (processing(row) ? 1 : 0) >= request.suspect_crashes;
}
bool at_crash_limit(const QueueClaimRequest& request, const QueueRow& row) {
  return processing(row) && request.max_crashes > 0 && row.crashes + 1 >= request.max_crashes;
}
bool by_number(const LogRow& a, const LogRow& b) {
  return a.seq < b.seq;
}
auto place(const QueueRow& row) {
  return std::tuple(-row.priority, row.available, row.id);
}

}  // namespace

QueueRow* QueueModel::find(QueueId id) {
  const auto found = std::find_if(
      rows.begin(), rows.end(), [&](const QueueRow& row) { return row.id == static_cast<std::int64_t>(id); });
  return found == rows.end() ? nullptr : &*found;
}

QueueRow* QueueModel::held(const Claim& claim) {
  QueueRow* row = find(claim.id);
  const bool holds =
      row != nullptr && processing(*row) && row->token == static_cast<std::int64_t>(claim.token);
  return holds ? row : nullptr;
}

std::string QueueModel::insert(QueueRow row, const InsertedRow& answer) {
  const auto same = std::find_if(rows.begin(), rows.end(), [&](const QueueRow& other) {
    return !row.dedupe.empty() && other.dedupe == row.dedupe;
  });
  if (answer.duplicate != (same != rows.end())) return row.event_id + ": duplicate or not?";
  if (answer.duplicate) {
    return static_cast<std::int64_t>(answer.id) == same->id ? "" : row.event_id + ": of another one";
  }
  row.id = static_cast<std::int64_t>(answer.id);
  if (!rows.empty() && row.id <= rows.back().id) return row.event_id + ": the id did not grow";
  rows.push_back(std::move(row));
  return {};
}

std::string QueueModel::check_event(Look& look, const QueuedEvent& event) {
  const QueueRow* row = find(event.claim.id);
  const std::string name = std::to_string(static_cast<std::int64_t>(event.claim.id));
  if (row == nullptr) return name + " is not in the queue";
  if (!eligible(look.request, *row, look.now)) return name + " could not be claimed";
  if (!look.taken.insert(row->id).second) return name + " came twice";
  const bool was_abandoned = abandoned(*row, look.now);
  if (at_crash_limit(look.request, *row)) return name + " belongs into quarantine";
  look.suspects += suspicious(look.request, *row) ? 1U : 0U;
  if (!event.event.has_value()) return name + ": " + event.decode_error;
  if (event.event->id().view() != row->event_id) return name + ": another event";
  if (static_cast<std::int64_t>(event.claim.token) != row->token + 1) return name + ": wrong token";
  if (event.attempts != row->attempts + 1) return name + ": wrong attempts";
  if (event.crashes != row->crashes + (was_abandoned ? 1 : 0)) return name + ": wrong crashes";
  if (event.ordering_key != row->key || event.priority != row->priority) return name + ": wrong key";
  if (event.created_at != row->created || event.processing_started_at != look.now) {
    return name + ": wrong times";
  }
  if (!row->key.empty()) {
    ++look.ordered;
    return {};
  }
  ++look.free;
  if (look.last_free != nullptr && place(*row) < place(*look.last_free)) return name + ": out of order";
  look.last_free = row;
  return {};
}

bool QueueModel::could_be_had(const Look& look, const QueueRow& row) {
  if (!eligible(look.request, row, look.now)) return false;
  if (!suspicious(look.request, row)) return true;
  // How far a claim goes on setting rows aside once it has enough suspects is its own affair.
  const std::size_t set_aside = at_crash_limit(look.request, row) ? look.quarantined.size() : 0;
  return look.suspects + set_aside < look.request.suspect_limit;
}

std::string QueueModel::check_free(const Look& look) const {
  const bool had_room = look.free + look.ordered < look.request.limit;
  for (const QueueRow& row : rows) {
    if (!row.key.empty() || look.taken.contains(row.id) || look.quarantined.contains(row.id)) continue;
    if (!could_be_had(look, row)) continue;
    const std::string name = std::to_string(row.id);
    if (had_room) return name + " was left, with room for it";
    if (look.free < look.request.limit / 2) return name + " was left, and free rows have not had their half";
    if (look.last_free != nullptr && place(row) < place(*look.last_free)) {
      return name + " was passed over";
    }
  }
  return {};
}

std::string QueueModel::check_key(const Look& look, const std::string& key) const {
  const bool had_room = look.free + look.ordered < look.request.limit;
  std::size_t run = 0;
  bool set_aside = false;
  bool ended = false;
  for (const QueueRow& row : rows) {
    if (row.key != key || row.quarantined.has_value()) continue;
    const bool taken = look.taken.contains(row.id);
    const bool moved = taken || look.quarantined.contains(row.id);
    if (ended && moved) return key + ": " + std::to_string(row.id) + " is not behind its head";
    if (moved) {
      run += taken ? 1U : 0U;
      set_aside = set_aside || !taken;
      continue;
    }
    if (ended) continue;
    ended = true;
    // What comes behind one that was set aside may wait for the next claim.
    if (set_aside || run >= look.request.run_limit || !could_be_had(look, row)) continue;
    if (had_room) return key + ": " + std::to_string(row.id) + " was left, with room for it";
    if (look.ordered < look.request.limit / 2) return key + ": keys have not had their half";
  }
  return run > look.request.run_limit ? key + ": too long a run" : "";
}

std::string QueueModel::check_claim(const QueueClaimRequest& request, TimePoint now,
                                    const QueueClaimResult& result) {
  Look look{.request = request, .now = now, .taken = {}, .quarantined = {}};
  if (result.events.size() > request.limit) return "more than the limit";
  std::map<std::string, std::int64_t> last_of;
  std::string last_key;
  for (const QueuedEvent& one : result.events) {
    if (std::string complaint = check_event(look, one); !complaint.empty()) return complaint;
    if (one.ordering_key.empty()) continue;
    const auto id = static_cast<std::int64_t>(one.claim.id);
    const auto [before, first] = last_of.try_emplace(one.ordering_key, id);
    if (!first && (one.ordering_key != last_key || id < before->second)) {
      return one.ordering_key + ": its run is not together and in order";
    }
    before->second = id;
    last_key = one.ordering_key;
  }
  if (look.suspects > request.suspect_limit) return "more suspects than allowed";
  for (const QueueId id : result.quarantined) {
    const QueueRow* row = find(id);
    const std::string name = std::to_string(static_cast<std::int64_t>(id));
    if (row == nullptr || row->quarantined.has_value()) return name + " could not be set aside";
    if (!abandoned(*row, now) || !at_crash_limit(request, *row)) return name + " was set aside too early";
    if (!look.quarantined.insert(row->id).second || look.taken.contains(row->id)) return name + " twice";
  }
  if (std::string complaint = check_free(look); !complaint.empty()) return complaint;
  std::set<std::string> keys;
  for (const QueueRow& row : rows) {
    if (row.key.empty() || !keys.insert(row.key).second) continue;
    if (std::string complaint = check_key(look, row.key); !complaint.empty()) return complaint;
  }
  for (QueueRow& row : rows) {
    const bool taken = look.taken.contains(row.id);
    if (!taken && !look.quarantined.contains(row.id)) continue;
    ++row.token;
    row.crashes += abandoned(row, now) ? 1 : 0;
    if (taken) {
      ++row.attempts;
      row.status = QueueStatus::processing;
      row.started = now;
      row.owner = request.owner;
      row.lease_until = now + request.lease;
    } else {
      row.status = QueueStatus::pending;
      row.error = "in progress when its worker died " + std::to_string(row.crashes) +
                  " times (last: " + row.owner + ")";
      row.quarantined = now;
      row.owner.clear();
      row.lease_until.reset();
    }
  }
  return {};
}

bool QueueModel::renew(const Claim& claim, TimePoint until) {
  QueueRow* row = held(claim);
  if (row != nullptr) row->lease_until = until;
  return row != nullptr;
}

Settled QueueModel::settle(const Settlement& settlement, TimePoint now) {
  const auto token = static_cast<std::int64_t>(settlement.claim.token);
  QueueRow* row = held(settlement.claim);
  if (row == nullptr) {
    if (const QueueRow* other = find(settlement.claim.id)) {
      const bool again = other->token == token && settlement.kind != Settlement::Kind::finalize;
      return again ? Settled::repeated : Settled::stale;
    }
    for (const LogRow& entry : log) {
      if (entry.id != static_cast<std::int64_t>(settlement.claim.id)) continue;
      return entry.token == token ? Settled::repeated : Settled::stale;
    }
    return Settled::unknown;
  }
  if (settlement.kind == Settlement::Kind::finalize) {
    log.push_back({.seq = 0,
                   .id = row->id,
                   .token = row->token,
                   .event_id = row->event_id,
                   .key = row->key,
                   .priority = row->priority,
                   .status = settlement.status,
                   .attempts = row->attempts,
                   .crashes = row->crashes,
                   .created = row->created,
                   .started = row->started,
                   .finalized = now,
                   .results = settlement.results});
    rows.erase(rows.begin() + (row - rows.data()));
    return Settled::applied;
  }
  row->status = QueueStatus::pending;
  row->owner.clear();
  row->lease_until.reset();
  if (settlement.kind == Settlement::Kind::release) {
    --row->attempts;
    if (settlement.delay > Duration::zero())
      row->available = std::max(row->available, now + settlement.delay);
    return Settled::applied;
  }
  row->available = now + settlement.delay;
  row->error = settlement.error;
  keep_states(row->id, settlement.results);
  return Settled::applied;
}

std::string QueueModel::adopt_numbers(const std::vector<LogRow>& actual) {
  const std::int64_t last = log.empty() ? 0 : std::max_element(log.begin(), log.end(), by_number)->seq;
  for (LogRow& entry : log) {
    if (entry.seq != 0) continue;
    const auto found =
        std::find_if(actual.begin(), actual.end(), [&](const LogRow& other) { return other.id == entry.id; });
    if (found == actual.end()) return std::to_string(entry.id) + " is not in the log";
    if (found->seq <= last) return std::to_string(entry.id) + " has no number, or one of the past";
    entry.seq = found->seq;
  }
  std::sort(log.begin(), log.end(), by_number);
  for (std::size_t i = 1; i < log.size(); ++i) {
    if (log[i].seq != log[i - 1].seq + 1) return "a gap, or one twice, before " + std::to_string(log[i].seq);
  }
  return {};
}

void QueueModel::keep_states(std::int64_t id, std::span<const HandlerResult> results) {
  for (const HandlerResult& one : results) {
    const auto [state, fresh] = states.try_emplace({id, one.handler}, one);
    if (!fresh && state->second.verdict != HandlerVerdict::success) state->second = one;
  }
}

bool QueueModel::save_states(const Claim& claim, std::span<const HandlerResult> results) {
  const QueueRow* row = held(claim);
  if (row == nullptr) return false;
  keep_states(row->id, results);
  return true;
}

std::size_t QueueModel::clean_states() {
  return std::erase_if(states,
                       [&](const auto& state) { return find(QueueId{state.first.first}) == nullptr; });
}

}  // namespace postrider::conformance
