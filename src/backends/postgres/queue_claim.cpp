// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/queue_claim.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "backends/postgres/outbox_store.hpp"
#include "core/failpoint.hpp"
#include "storage/row_decoder.hpp"

namespace postrider::postgres {

namespace {

/// Against a queue that others fill with poisoned rows as fast as we put them aside.
constexpr int most_scans = 100;

SteadyPoint steady_now() {
  return std::chrono::steady_clock::now();
}

}  // namespace

QueueClaimer::QueueClaimer(Connection& connection, const QueueSql& sql, const QueueClaimRequest& request,
                           std::optional<TimePoint> now, ClaimMemory& memory)
    : connection_(connection),
      sql_(sql),
      request_(request),
      now_(now),
      memory_(memory),
      plan_(memory.plan(steady_now())),
      suspects_left_(request.suspect_limit) {}

QueueClaimResult QueueClaimer::run() {
  const bool ordered = plan_.look_for_ordered && plan_.expect_ordered;
  if (ordered || !claim_without_order()) claim_with_order();
  return sorted_result();
}

bool QueueClaimer::claim_without_order() {
  bool ordered_rows = false;
  const auto scan_once = [&](const ClaimCursor::Scan& scan, std::size_t limit) {
    const bool measured = connection_.has_prepared(sql_.claim);  // planning would count as walking
    const bool look = plan_.look_for_ordered && unordered_.empty() && quarantined_.empty();
    failpoint("postgres.queue.claim.before_commit");
    Pipeline pipeline(connection_, cannot_claim_queued);
    begin_worker(pipeline);
    bind_scan(scan, limit, look);
    pipeline.send(sql_.claim, params_);
    pipeline.send(look ? sql_.probe : sql_.clock);
    pipeline.send_commit(true);
    const std::vector<Result> results = pipeline.finish();
    failpoint("postgres.queue.claim.after_commit");
    const Result& probe = results.at(3);
    if (look) {
      ordered_rows = probe.boolean(0, 1);
      memory_.looked_for_ordered(ordered_rows, probe.timestamp(0, 2) - probe.timestamp(0, 0), steady_now());
      if (ordered_rows && results.at(2).rows() == 0) return Scanned{};
    }
    return read_scan(
        scan, results.at(2), limit,
        measured ? std::optional(results.at(1).timestamp(0, settings_clock_column)) : std::nullopt,
        probe.timestamp(0, 0));
  };
  try {
    scan_until_full(request_.limit, scan_once);
  } catch (const Error&) {
    // What an earlier scan brought is committed and ours; whatever is wrong, the next call will say it.
    if (unordered_.empty() && quarantined_.empty()) throw;
  }
  return !(ordered_rows && unordered_.empty() && quarantined_.empty());
}

void QueueClaimer::scan_until_full(std::size_t most, const ScanOnce& scan_once) {
  ClaimCursor::Scan scan = plan_.scan;
  std::size_t left = most;
  for (int scans = 1;; ++scans) {
    const std::size_t allowed = suspects_left_;
    const Scanned got = scan_once(scan, left);
    left -= std::min(left, got.claimed);
    if (left == 0 || scans == most_scans) return;
    const bool passed_over = allowed > 0 && got.suspects == allowed;
    if (passed_over || got.quarantined > 0) continue;
    if (scan.full || !memory_.full_scan_allowed(steady_now())) return;
    scan = {};
  }
}

void QueueClaimer::bind_scan(const ClaimCursor::Scan& scan, std::size_t limit, bool unless_ordered) {
  params_.clear();
  params_.text(request_.owner).interval(request_.lease);
  params_.begin_array(oid::int2, scan.after.size());
  for (int level = max_priority; level >= 0; --level) params_.element_int2(static_cast<std::int16_t>(level));
  params_.end_array();
  params_.begin_array(oid::timestamptz, scan.after.size());
  for (auto after = scan.after.rbegin(); after != scan.after.rend(); ++after) {
    params_.element_timestamp(*after ? (*after)->available_at : TimePoint::min());
  }
  params_.end_array();
  params_.begin_array(oid::int8, scan.after.size());
  for (auto after = scan.after.rbegin(); after != scan.after.rend(); ++after) {
    params_.element_int8(*after ? (*after)->id : std::numeric_limits<std::int64_t>::min());
  }
  params_.end_array();
  params_.int8(static_cast<std::int64_t>(suspects_left_))
      .int4(request_.max_crashes)
      .int8(static_cast<std::int64_t>(limit))
      .boolean(unless_ordered)
      .timestamp(now_);
  bind_types();
  params_.int4(request_.suspect_crashes);
}

void QueueClaimer::bind_types() {
  params_.begin_array(oid::text, request_.without_types.size());
  for (const std::string& type : request_.without_types) params_.element(type);
  params_.end_array();
}

QueueClaimer::Scanned QueueClaimer::read_scan(const ClaimCursor::Scan& scan, const Result& rows,
                                              std::size_t limit, std::optional<TimePoint> began,
                                              TimePoint ended) {
  Scanned got;
  ClaimCursor::Positions last;
  // Entries of deleted rows gather at the beginning of each level, so the time before a level's first row was
  // spent on walking over them; and so was the rest of the time when the limit was not reached.
  Duration walked{};
  TimePoint before = began.value_or(TimePoint{});
  int level = -1;
  unordered_.reserve(unordered_.size() + static_cast<std::size_t>(rows.rows()));
  for (int row = 0; row < rows.rows(); ++row) {
    const int priority = rows.int4(row, queue_row::priority);
    const TimePoint seen = rows.timestamp(row, queue_row::seen_at);
    if (priority != level) walked += seen - before;
    level = priority;
    before = seen;
    if (rows.boolean(row, queue_row::quarantine)) {
      quarantined_.push_back(QueueId{rows.int8(row, queue_row::id)});
      ++got.quarantined;
      continue;
    }
    const ClaimCursor::Position position{rows.timestamp(row, queue_row::available_at),
                                         rows.int8(row, queue_row::id)};
    auto& known = last[static_cast<std::size_t>(std::clamp(priority, 0, max_priority))];
    if (!known || *known < position) known = position;
    if (rows.int4(row, queue_row::crashes) >= request_.suspect_crashes) ++got.suspects;
    ++got.claimed;
    unordered_.push_back({position, read_row(rows, row)});
  }
  suspects_left_ -= std::min(suspects_left_, got.suspects);
  if (got.claimed < limit) walked += ended - before;
  const bool measured = began.has_value() && scan.full;
  memory_.scanned(last, measured ? std::optional(walked) : std::nullopt, steady_now());
  return got;
}

QueuedEvent QueueClaimer::read_row(const Result& rows, int row) const {
  const bool bytes = rows.is_null(row, queue_row::payload);
  DecodedEvent decoded =
      decode_event({.event_id = rows.text(row, queue_row::event_id),
                    .event_type = rows.text(row, queue_row::event_type),
                    .aggregate_type = rows.text(row, queue_row::aggregate_type),
                    .aggregate_id = rows.text(row, queue_row::aggregate_id),
                    .tenant_id = rows.text(row, queue_row::tenant_id),
                    .ordering_key = rows.text(row, queue_row::ordering_key),
                    .headers_json = rows.text(row, queue_row::headers),
                    .payload_kind = bytes ? PayloadKind::bytes : PayloadKind::json,
                    .payload = rows.text(row, bytes ? queue_row::payload_bytes : queue_row::payload),
                    .occurred_at = rows.timestamp(row, queue_row::occurred_at),
                    .created_at = rows.timestamp(row, queue_row::created_at)});
  return {.claim = {QueueId{rows.int8(row, queue_row::id)}, Token{rows.int8(row, queue_row::token)}},
          .event = std::move(decoded.event),
          .decode_error = std::move(decoded.error),
          .priority = rows.int4(row, queue_row::priority),
          .ordering_key = std::string(rows.text(row, queue_row::ordering_key)),
          .attempts = rows.int4(row, queue_row::attempts),
          .crashes = rows.int4(row, queue_row::crashes),
          .created_at = rows.timestamp(row, queue_row::created_at),
          .processing_started_at = rows.timestamp(row, queue_row::started_at)};
}

QueueClaimResult QueueClaimer::sorted_result() {
  // Each scan gives its rows in order, but a later scan may find earlier rows.
  const auto in_order = [](const Claimed& a, const Claimed& b) {
    if (a.event.priority != b.event.priority) return a.event.priority > b.event.priority;
    return a.position < b.position;
  };
  if (!std::is_sorted(unordered_.begin(), unordered_.end(), in_order)) {
    std::sort(unordered_.begin(), unordered_.end(), in_order);
  }
  QueueClaimResult result{
      .events = std::move(ordered_), .quarantined = std::move(quarantined_), .more = more_keys_};
  result.events.reserve(result.events.size() + unordered_.size());
  for (Claimed& one : unordered_) result.events.push_back(std::move(one.event));
  return result;
}

QueueClaimer::Scanned QueueClaimer::scan_in_transaction(const ClaimCursor::Scan& scan, std::size_t limit) {
  const bool measured = connection_.has_prepared(sql_.claim);
  Pipeline pipeline(connection_, cannot_claim_queued);
  pipeline.send(sql_.clock);
  bind_scan(scan, limit, false);
  pipeline.send(sql_.claim, params_);
  pipeline.send(sql_.clock);
  const std::vector<Result> results = pipeline.finish();
  return read_scan(scan, results.at(1), limit,
                   measured ? std::optional(results.at(0).timestamp(0, 0)) : std::nullopt,
                   results.at(2).timestamp(0, 0));
}

}  // namespace postrider::postgres
