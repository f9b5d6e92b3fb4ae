// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "backends/postgres/claimed_rows.hpp"
#include "backends/postgres/ordered_claim.hpp"
#include "backends/postgres/outbox_store.hpp"
#include "core/failpoint.hpp"
#include "storage/row_decoder.hpp"

namespace postrider::postgres {

namespace {

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

}  // namespace

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

std::vector<ClaimedEvent> PostgresOutboxStore::claim(const ClaimRequest& request) {
  std::vector<ClaimedEvent> events;
  if (request.limit == 0) return events;
  run([&](Connection& connection) {
    if (request.continue_keys.empty() && !ordered_work_.load(std::memory_order_relaxed)) {
      if (auto claimed = claim_without_order(connection, request)) {
        events = std::move(*claimed);
        return;
      }
    }
    const RollbackGuard guard(connection);
    OrderedClaim claim(connection, sql_, request, now());
    events = claim.run();
    ordered_work_.store(claim.saw_ordered(), std::memory_order_relaxed);
  });
  return events;
}

std::optional<std::vector<ClaimedEvent>> PostgresOutboxStore::claim_without_order(
    Connection& connection, const ClaimRequest& request) {
  const RollbackGuard guard(connection);
  const std::optional<TimePoint> time = now();
  failpoint("postgres.claim.before_commit");
  Pipeline pipeline(connection, cannot_claim);
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

}  // namespace postrider::postgres
