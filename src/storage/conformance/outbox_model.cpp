// SPDX-License-Identifier: Apache-2.0
#include "storage/conformance/outbox_model.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "storage/next_token.hpp"

namespace postrider::conformance {
namespace {

using namespace std::chrono_literals;

std::int64_t micros(TimePoint time) {
  return time.time_since_epoch().count();
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const ModelRow& row) {
  out << row.id << " key=" << row.key << " status=" << static_cast<int>(row.status)
      << " attempts=" << row.attempts << " available=" << micros(row.available) << " token=" << row.token
      << " owner=" << row.owner;
  if (row.lease_until) out << " lease_until=" << micros(*row.lease_until);
  if (row.done) out << " done=" << micros(*row.done);
  return out << " error=" << row.error;
}

ModelRow* OutboxModel::find(std::string_view id) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const ModelRow& row) { return row.id == id; });
  return found == rows.end() ? nullptr : &*found;
}

ModelRow* OutboxModel::held(const LeaseRef& lease) {
  ModelRow* row = find(lease.id.view());
  const bool holds = row != nullptr && row->pending() && row->token == static_cast<std::int64_t>(lease.token);
  return holds ? row : nullptr;
}

std::vector<ModelRow*> OutboxModel::pending_of(std::string_view key) {
  std::vector<ModelRow*> found;
  for (ModelRow& row : rows) {
    if (row.pending() && row.key == key) found.push_back(&row);
  }
  return found;
}

std::string OutboxModel::check_key(const std::string& key, const ClaimRequest& request, TimePoint now,
                                   std::span<const std::string> got, bool exhausted) {
  const bool continued = std::find(request.continue_keys.begin(), request.continue_keys.end(), key) !=
                         request.continue_keys.end();
  const std::vector<ModelRow*> pending = pending_of(key);
  std::vector<std::string> run;
  for (const ModelRow* row : pending) {
    if (row->available > now || row->leased(now) || run.size() == request.run_limit) break;
    run.push_back(row->id);
  }
  if (got.size() > run.size() || !std::equal(got.begin(), got.end(), run.begin())) {
    return "key " + key + ": what was claimed is not the run from its head";
  }
  // A key is come upon through its due rows, or because it is to be continued.
  const bool visible = continued || std::any_of(pending.begin(), pending.end(),
                                                [&](const ModelRow* row) { return row->due() <= now; });
  if (exhausted && visible && got.size() != run.size()) {
    return "key " + key + ": " + std::to_string(run.size()) + " could be claimed, " +
           std::to_string(got.size()) + " were";
  }
  return {};
}

std::string OutboxModel::check_claim(const ClaimRequest& request, TimePoint now,
                                     std::span<const ClaimedEvent> claimed) {
  if (claimed.size() > request.limit) return "more than the limit";
  const bool exhausted = claimed.size() < request.limit;  // then nothing that could be had may be left
  std::map<std::string, std::vector<std::string>> by_key;
  std::set<std::string> free_taken;
  TimePoint last_free{};
  for (const ClaimedEvent& one : claimed) {
    const std::string id = one.lease.id.str();
    const ModelRow* row = find(id);
    if (row == nullptr || !row->pending()) return id + " is not pending";
    if (static_cast<std::int64_t>(one.lease.token) != row->token + 1)
      return id + ": the token did not grow by one";
    if (one.ordering_key != row->key) return id + ": wrong key";
    if (static_cast<std::int64_t>(one.failed) != row->attempts) return id + ": wrong number of attempts";
    if (!one.event.has_value()) return id + ": " + one.decode_error;
    if (!row->key.empty()) {
      by_key[row->key].push_back(id);
      continue;
    }
    if (row->due() > now) return id + " is not due";
    if (row->due() < last_free) return id + ": was due before the one in front of it";
    last_free = row->due();
    if (!free_taken.insert(id).second) return id + " came twice";
  }
  // It need not look for further keys once it had to cut a run short.
  const bool all_keys = exhausted && std::none_of(by_key.begin(), by_key.end(), [&](const auto& run) {
                          return run.second.size() == request.run_limit;
                        });
  for (const ModelRow& row : rows) {
    if (!row.pending()) continue;
    if (row.key.empty()) {
      if (free_taken.contains(row.id) || row.due() > now) continue;
      if (exhausted) return row.id + " is due and was left";
      if (!free_taken.empty() && row.due() < last_free) return row.id + " was due for longer and was left";
    } else if (std::string complaint = check_key(row.key, request, now, by_key[row.key], all_keys);
               !complaint.empty()) {
      return complaint;
    }
  }
  for (const ClaimedEvent& one : claimed) {
    ModelRow* row = find(one.lease.id.view());
    row->owner = request.owner;
    row->lease_until = now + request.lease;
    ++row->token;
  }
  return {};
}

std::string OutboxModel::adopt_deferrals(const std::vector<ModelRow>& actual, TimePoint now) {
  for (std::size_t i = 0; i < rows.size() && i < actual.size(); ++i) {
    ModelRow& row = rows[i];
    if (row.owner == actual[i].owner && row.lease_until == actual[i].lease_until) continue;
    const TimePoint head_available = row.key.empty() ? now : pending_of(row.key).front()->available;
    const bool blocked = row.pending() && row.due() <= now && pending_of(row.key).front() != &row;
    const bool fitting = actual[i].owner.empty() && actual[i].lease_until.has_value() &&
                         *actual[i].lease_until >= now + 100ms &&
                         *actual[i].lease_until <= std::max(head_available, now + 1s);
    if (row.key.empty() || !blocked || !fitting)
      return row.id + " was changed by a claim that did not return it";
    row.owner.clear();
    row.lease_until = actual[i].lease_until;
  }
  return {};
}

bool OutboxModel::complete(const Completion& completion, TimePoint now) {
  ModelRow* row = held(completion.lease);
  if (row == nullptr) return false;
  row->owner.clear();
  row->lease_until.reset();
  switch (completion.kind) {
    case Completion::Kind::done:
      row->status = EventStatus::done;
      row->done = now;
      break;
    case Completion::Kind::retry:
      row->status = EventStatus::retry;
      row->attempts = static_cast<std::int64_t>(completion.failed);
      row->available = now + completion.delay;
      row->error = completion.error;
      break;
    case Completion::Kind::later:
      row->available = now + completion.delay;
      if (!completion.error.empty()) row->error = completion.error;
      break;
    case Completion::Kind::dead:
      row->status = EventStatus::dead;
      row->attempts = static_cast<std::int64_t>(completion.failed);
      row->done = now;
      row->error = completion.error;
      break;
    case Completion::Kind::release:
      break;
  }
  return true;
}

bool OutboxModel::renew(const LeaseRef& lease, TimePoint until) {
  ModelRow* row = held(lease);
  if (row == nullptr || row->owner.empty()) return false;
  row->lease_until = until;
  return true;
}

std::vector<ModelRow*> OutboxModel::finished(EventStatus status) {
  std::vector<ModelRow*> found;
  for (ModelRow& row : rows) {
    if (row.status == status) found.push_back(&row);
  }
  std::sort(found.begin(), found.end(), [](const ModelRow* a, const ModelRow* b) {
    return std::tie(*a->done, a->id) < std::tie(*b->done, b->id);
  });
  return found;
}

std::int64_t OutboxModel::revive(std::size_t limit, TimePoint now) {
  std::vector<ModelRow*> dead = finished(EventStatus::dead);
  dead.resize(std::min(dead.size(), limit));
  for (ModelRow* row : dead) {
    row->status = EventStatus::fresh;
    row->attempts = 0;
    row->error.clear();
    row->available = now;
    row->done.reset();
    row->token = static_cast<std::int64_t>(next_life(Token{row->token}));
  }
  return static_cast<std::int64_t>(dead.size());
}

std::int64_t OutboxModel::purge(EventStatus status, Duration age, std::size_t limit, TimePoint now) {
  std::set<std::string> gone;
  for (const ModelRow* row : finished(status)) {
    if (*row->done <= now - age && gone.size() < limit) gone.insert(row->id);
  }
  std::erase_if(rows, [&](const ModelRow& row) { return gone.contains(row.id); });
  return static_cast<std::int64_t>(gone.size());
}

}  // namespace postrider::conformance
