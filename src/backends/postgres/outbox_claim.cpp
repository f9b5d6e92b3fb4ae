// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>

#include "backends/postgres/outbox_store.hpp"
#include "core/failpoint.hpp"
#include "postrider/error.hpp"
#include "storage/row_decoder.hpp"

namespace postrider::postgres {

namespace {

constexpr std::string_view what = "cannot claim outbox events";
constexpr int most_rounds = 8;

/// Columns of `{row}`, see outbox_sql.cpp.
ClaimedEvent read_row(const Result& result, int row) {
  const bool bytes = result.is_null(row, 7);
  return decode_row({.event_id = result.text(row, 0),
                     .event_type = result.text(row, 1),
                     .aggregate_type = result.text(row, 2),
                     .aggregate_id = result.text(row, 3),
                     .tenant_id = result.text(row, 4),
                     .ordering_key = result.text(row, 5),
                     .headers_json = result.text(row, 6),
                     .payload_kind = bytes ? PayloadKind::bytes : PayloadKind::json,
                     .payload = result.text(row, bytes ? 8 : 7),
                     .occurred_at = result.timestamp(row, 9),
                     .created_at = result.timestamp(row, 10),
                     .attempts = result.int4(row, 11),
                     .token = result.int8(row, 12)});
}

constexpr int seq_column = 13;
constexpr int due_column = 14;

/// A claimed row and its place in the answer: by the time it (or its run's first row) fell due, then by
/// `tie`.
struct Place {
  TimePoint due;
  std::int64_t tie;
  const Result* result;
  int row;
};

void add_unordered(const Result& result, std::vector<Place>& places) {
  for (int row = 0; row < result.rows(); ++row) {
    places.push_back({result.timestamp(row, due_column), result.int8(row, seq_column), &result, row});
  }
}

std::vector<ClaimedEvent> read_sorted(std::vector<Place>& places) {
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::pair(a.due, a.tie) < std::pair(b.due, b.tie);
  });
  std::vector<ClaimedEvent> events;
  events.reserve(places.size());
  for (const Place& place : places) events.push_back(read_row(*place.result, place.row));
  return events;
}

void bind_claim(Params& params, const ClaimRequest& request, std::size_t limit,
                std::optional<TimePoint> now) {
  params.clear();
  params.text(request.owner).interval(request.lease).int8(static_cast<std::int64_t>(limit)).timestamp(now);
}

}  // namespace

/// A key whose head we hold locked.
struct PostgresOutboxStore::OrderedRun {
  std::string key;
  std::size_t continued = npos;  // its place in continue_keys
  std::optional<TimePoint> first_due{};
  std::int64_t head_seq = 0;
  TimePoint blocked_until{};  // when it is worth looking at again, if the head cannot be taken
  bool take = false;
  std::vector<std::string> ids{};  // the head, then the rows behind it without a gap
  std::size_t taken = 0;           // how many of these fit into the limit

  static constexpr std::size_t npos = static_cast<std::size_t>(-1);
};

struct PostgresOutboxStore::ClaimRound {
  std::vector<ClaimedEvent> events{};
  bool deferred = false;
};

namespace {

/// Reads the followers into their runs, each up to the first row that is missing or not free.
template <class Runs>
void append_followers(const Result& result, Runs& takers) {
  struct Follower {
    std::int64_t place;
    int row;
  };
  std::vector<std::vector<Follower>> found(takers.size());
  for (int row = 0; row < result.rows(); ++row) {
    found.at(static_cast<std::size_t>(result.int8(row, 0) - 1)).push_back({result.int8(row, 1), row});
  }
  for (std::size_t i = 0; i < takers.size(); ++i) {
    std::sort(found[i].begin(), found[i].end(),
              [](const Follower& a, const Follower& b) { return a.place < b.place; });
    std::int64_t expected = 1;
    for (const Follower& follower : found[i]) {
      if (follower.place != expected++ || !result.boolean(follower.row, 3)) break;
      takers[i]->ids.emplace_back(result.text(follower.row, 2));
    }
  }
}

/// Divides the limit: keys to continue come first with all they have; of the rest, rows without a key get
/// their share; then every key its head before any key gets more. Returns how many ordered rows are taken.
template <class Runs>
std::size_t divide(Runs& takers, std::size_t limit, std::size_t unordered_share) {
  std::size_t taken = 0;
  for (auto* run : takers) {
    if (run->continued == run->npos) continue;
    run->taken = std::min(run->ids.size(), limit - taken);
    taken += run->taken;
  }
  const std::size_t most = limit - std::min(unordered_share, limit - taken);
  for (auto* run : takers) {
    if (run->continued != run->npos || taken >= most) continue;
    run->taken = 1;
    ++taken;
  }
  for (auto* run : takers) {
    if (run->continued != run->npos || run->taken == 0) continue;
    const std::size_t more = std::min(run->ids.size() - 1, most - taken);
    run->taken += more;
    taken += more;
  }
  return taken;
}

}  // namespace

std::vector<ClaimedEvent> PostgresOutboxStore::claim(const ClaimRequest& request) {
  std::vector<ClaimedEvent> events;
  if (request.limit == 0) return events;
  run([&](Connection& connection) {
    events.clear();
    if (request.continue_keys.empty() && !ordered_work_.load(std::memory_order_relaxed)) {
      if (auto claimed = claim_without_order(connection, request)) {
        events = std::move(*claimed);
        return;
      }
    }
    // A round puts off the blocked rows that it meets: what stands behind them deserves a look, too. Bounded,
    // because other programs may keep adding blocked rows.
    ClaimRequest rest = request;
    for (int i = 0; i < most_rounds && rest.limit > 0; ++i) {
      ClaimRound round;
      try {
        round = claim_with_order(connection, rest);
      } catch (const Error&) {
        if (events.empty()) throw;
        return;  // what the rounds before have claimed must not be forgotten
      }
      std::move(round.events.begin(), round.events.end(), std::back_inserter(events));
      if (!round.deferred) return;
      rest.limit = request.limit - events.size();
      rest.continue_keys = {};
    }
  });
  return events;
}

std::optional<std::vector<ClaimedEvent>> PostgresOutboxStore::claim_without_order(
    Connection& connection, const ClaimRequest& request) {
  const RollbackGuard guard(connection);
  const std::optional<TimePoint> time = now();
  failpoint("postgres.claim.before_commit");
  Pipeline pipeline(connection, what);
  begin_worker(pipeline);
  Params params;
  params.timestamp(time);
  pipeline.send(sql_.any_ordered_due, params);
  bind_claim(params, request, request.limit, time);
  pipeline.send(sql_.claim_unless_ordered, params);
  pipeline.send_commit(true);
  const std::vector<Result> results = pipeline.finish();
  failpoint("postgres.claim.after_commit");
  const bool ordered_due = results.at(2).boolean(0, 0);
  const Result& claimed = results.at(3);
  if (ordered_due && claimed.rows() == 0) return std::nullopt;
  std::vector<Place> places;
  add_unordered(claimed, places);
  return read_sorted(places);
}

PostgresOutboxStore::ClaimRound PostgresOutboxStore::claim_with_order(Connection& connection,
                                                                      const ClaimRequest& request) {
  const RollbackGuard guard(connection);
  const std::optional<TimePoint> time = now();
  const auto limit = static_cast<std::int64_t>(request.limit);
  Params params;

  // First round trip: lock the heads.
  std::unordered_map<std::string_view, std::size_t> continued;
  for (const std::string& key : request.continue_keys) {
    if (!key.empty()) continued.emplace(key, continued.size());
  }
  std::vector<OrderedRun> runs;
  std::size_t unordered_share = 0;
  {
    Pipeline pipeline(connection, what);
    begin_worker(pipeline);
    params.begin_array(oid::text, continued.size());
    for (const auto& [key, place] : continued) params.element(key);
    params.end_array();
    params.int8(limit).timestamp(time);
    pipeline.send(sql_.heads, params);
    params.clear();
    params.int8(limit).timestamp(time);
    pipeline.send(sql_.unordered_share, params);
    const std::vector<Result> results = pipeline.finish();
    const Result& heads = results.at(2);
    for (int row = 0; row < heads.rows(); ++row) {
      OrderedRun& run = runs.emplace_back();
      run.key = heads.text(row, 0);
      if (const auto it = continued.find(run.key); it != continued.end()) run.continued = it->second;
      if (!heads.is_null(row, 1)) run.first_due = heads.timestamp(row, 1);
      run.ids.emplace_back(heads.text(row, 2));
      run.head_seq = heads.int8(row, 3);
      run.take = heads.boolean(row, 4);
      run.blocked_until = heads.timestamp(row, 5);
    }
    unordered_share = static_cast<std::size_t>(results.at(3).int8(0, 0));
  }
  ordered_work_.store(!runs.empty(), std::memory_order_relaxed);
  std::sort(runs.begin(), runs.end(), [](const OrderedRun& a, const OrderedRun& b) {
    return std::tuple(a.continued, a.first_due, a.head_seq) <
           std::tuple(b.continued, b.first_due, b.head_seq);
  });
  std::vector<OrderedRun*> takers;
  std::vector<const OrderedRun*> blocked;
  for (OrderedRun& run : runs) {
    if (run.take) {
      takers.push_back(&run);
    } else if (run.first_due) {
      blocked.push_back(&run);
    }
  }

  // Second round trip: lock what follows the heads.
  if (!takers.empty() && (takers.size() < request.limit || takers.front()->continued != OrderedRun::npos)) {
    Pipeline pipeline(connection, what);
    params.clear();
    params.begin_array(oid::text, takers.size());
    for (const OrderedRun* run : takers) params.element(run->key);
    params.end_array();
    params.begin_array(oid::int8, takers.size());
    for (const OrderedRun* run : takers) params.element_int8(run->head_seq);
    params.end_array();
    params.int8(limit).timestamp(time);
    pipeline.send(sql_.followers, params);
    append_followers(pipeline.finish().at(0), takers);
  }
  const std::size_t taken = divide(takers, request.limit, unordered_share);

  // Third round trip: write.
  failpoint("postgres.claim.before_commit");
  ClaimRound round;
  Pipeline pipeline(connection, what);
  struct Taken {
    const OrderedRun* run;
    std::int64_t number;
  };
  std::unordered_map<std::string_view, Taken> taken_rows;
  if (taken > 0) {
    params.clear();
    params.text(request.owner).interval(request.lease);
    params.begin_array(oid::text, taken);
    for (const OrderedRun* run : takers) {
      for (std::size_t i = 0; i < run->taken; ++i) {
        params.element(run->ids[i]);
        taken_rows.emplace(run->ids[i], Taken{run, static_cast<std::int64_t>(taken_rows.size())});
      }
    }
    params.end_array();
    params.timestamp(time);
    pipeline.send(sql_.take, params);
  }
  if (!blocked.empty()) {
    params.clear();
    params.begin_array(oid::text, blocked.size());
    for (const OrderedRun* run : blocked) params.element(run->key);
    params.end_array();
    params.begin_array(oid::int8, blocked.size());
    for (const OrderedRun* run : blocked) params.element_int8(run->head_seq);
    params.end_array();
    params.begin_array(oid::timestamptz, blocked.size());
    for (const OrderedRun* run : blocked) params.element_timestamp(run->blocked_until);
    params.end_array();
    params.timestamp(time);
    pipeline.send(sql_.defer, params);
  }
  const std::size_t rest = request.limit - taken;
  if (rest > 0) {
    bind_claim(params, request, rest, time);
    pipeline.send(sql_.claim_unordered, params);
  }
  pipeline.send_commit(true);
  const std::vector<Result> results = pipeline.finish();
  failpoint("postgres.claim.after_commit");

  std::size_t next = 0;
  std::vector<Place> places;
  if (taken > 0) {
    const Result& rows = results.at(next++);
    for (int row = 0; row < rows.rows(); ++row) {
      const Taken& one = taken_rows.at(rows.text(row, 0));
      // Runs to continue come first; the rows of a run share its time, so that nothing gets between them.
      const bool first = one.run->continued != OrderedRun::npos || !one.run->first_due;
      places.push_back({first ? TimePoint::min() : *one.run->first_due, one.number, &rows, row});
    }
  }
  if (!blocked.empty()) round.deferred = results.at(next++).affected() > 0;
  if (rest > 0) add_unordered(results.at(next), places);
  round.events = read_sorted(places);
  return round;
}

}  // namespace postrider::postgres
