// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "backends/postgres/outbox_store.hpp"
#include "backends/postgres/queue_claim.hpp"
#include "core/failpoint.hpp"

namespace postrider::postgres {

namespace {

/// Keys that one claim looks at; the next one goes on behind them.
constexpr std::size_t most_keys = 2000;
constexpr std::size_t least_page = 64;

/// Not below any key: 200 times the last character that there is.
const std::string& behind_all_keys() {
  static const std::string key = [] {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "\xF4\x8F\xBF\xBF";
    return text;
  }();
  return key;
}

}  // namespace

void QueueClaimer::claim_with_order() {
  collect_runs();
  const std::size_t half = request_.limit / 2 + (request_.limit % 2 != 0 && plan_.odd_to_ordered ? 1U : 0U);
  const Selected share = select(half, request_.suspect_limit);
  suspects_left_ = request_.suspect_limit - share.suspects;
  if (share.events < request_.limit) {
    scan_until_full(request_.limit - share.events, [&](const ClaimCursor::Scan& scan, std::size_t limit) {
      return scan_in_transaction(scan, limit);
    });
  }
  (void)select(request_.limit - std::min(request_.limit, unordered_.size()), suspects_left_ + share.suspects);
  take();
  remember_key();
}

void QueueClaimer::collect_runs() {
  const std::optional<std::string> start = memory_.last_key();
  std::optional<std::string> after = start;
  bool second_lap = !start.has_value();
  std::size_t seen = 0;
  std::size_t rows = 0;
  std::optional<Duration> cost = Duration::zero();
  while (rows < request_.limit && seen < most_keys) {
    const std::size_t page = std::min(most_keys - seen, std::max(request_.limit - rows, least_page));
    const bool measured = connection_.has_prepared(sql_.walk);
    const SteadyPoint began = std::chrono::steady_clock::now();
    const Result keys = walk(after, second_lap && start ? *start : behind_all_keys(), page);
    const Duration took = std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - began);
    cost = measured && cost ? std::optional(*cost + took) : std::nullopt;

    std::vector<KeyRun> found;
    int row = 0;
    for (; row < keys.rows() && found.size() < request_.limit - rows; ++row) {
      last_looked_at_ = std::string(keys.text(row, 0));
      ++seen;
      if (keys.boolean(row, 2)) found.push_back({.key = *last_looked_at_, .head = keys.int8(row, 1)});
    }
    if (!found.empty()) {
      lock_runs(std::move(found));
      rows = select(std::numeric_limits<std::size_t>::max(), request_.suspect_limit).events;
    }
    // Keys of the page are left when there seemed to be no room for them; rows that are set aside need none.
    if (row < keys.rows() || static_cast<std::size_t>(row) == page) {
      after = last_looked_at_;
    } else if (second_lap || rows >= request_.limit) {
      reached_end_ = true;
      break;
    } else {
      reached_end_ = true;
      second_lap = true;
      after.reset();
    }
  }
  more_keys_ = seen >= most_keys && !reached_end_;
  // A walk that saw no key at all and yet took long walked over deleted rows.
  memory_.looked_for_ordered(seen > 0, seen > 0 ? Duration::zero() : cost, std::chrono::steady_clock::now());
}

Result QueueClaimer::walk(const std::optional<std::string>& after, const std::string& up_to,
                          std::size_t keys) {
  using Limits = std::numeric_limits<std::int64_t>;
  Pipeline pipeline(connection_, cannot_claim_queued);
  if (!begun_) begin_worker(pipeline);
  begun_ = true;
  params_.clear();
  params_.text(after ? std::string_view(*after) : std::string_view())
      .int8(after ? Limits::max() : Limits::min())
      .text(up_to)
      .int8(static_cast<std::int64_t>(keys))
      .timestamp(now_);
  bind_types();
  pipeline.send(sql_.walk, params_);
  std::vector<Result> results = pipeline.finish();
  return std::move(results.back());
}

void QueueClaimer::lock_runs(std::vector<KeyRun> found) {
  const std::size_t behind = std::min(request_.run_limit, request_.limit) - (request_.run_limit > 0 ? 1 : 0);
  Pipeline pipeline(connection_, cannot_claim_queued);
  params_.clear();
  params_.begin_array(oid::int8, found.size());
  for (const KeyRun& run : found) params_.element_int8(run.head);
  params_.end_array();
  params_.timestamp(now_);
  bind_types();
  pipeline.send(sql_.lock_heads, params_);
  if (behind > 0) {
    // In a statement of its own: whoever held a head before us has finished with its followers by the time
    // that we have it.
    params_.clear();
    params_.begin_array(oid::text, found.size());
    for (const KeyRun& run : found) params_.element(run.key);
    params_.end_array();
    params_.begin_array(oid::int8, found.size());
    for (const KeyRun& run : found) params_.element_int8(run.head);
    params_.end_array();
    params_.int8(static_cast<std::int64_t>(behind)).timestamp(now_);
    bind_types();
    pipeline.send(sql_.lock_followers, params_);
  }
  const std::vector<Result> results = pipeline.finish();

  const auto candidate = [&](const Result& rows, int row, std::int64_t id, int column) -> Candidate {
    const bool abandoned = rows.boolean(row, column);
    const std::int32_t crashes = rows.int4(row, column + 1);
    return {.id = id,
            .abandoned = abandoned,
            .suspect = crashes >= request_.suspect_crashes - (abandoned ? 1 : 0),
            .quarantine = abandoned && request_.max_crashes > 0 && crashes >= request_.max_crashes - 1};
  };
  const Result& heads = results.at(0);
  for (int row = 0; row < heads.rows(); ++row) {
    KeyRun& run = found.at(static_cast<std::size_t>(heads.int8(row, 0) - 1));
    run.rows.push_back(candidate(heads, row, run.head, 1));
  }
  if (behind > 0) {
    const Result& followers = results.at(1);
    std::vector<int> in_order(static_cast<std::size_t>(followers.rows()));
    for (std::size_t i = 0; i < in_order.size(); ++i) in_order[i] = static_cast<int>(i);
    std::sort(in_order.begin(), in_order.end(), [&](int a, int b) {
      return std::pair(followers.int8(a, 0), followers.int8(a, 1)) <
             std::pair(followers.int8(b, 0), followers.int8(b, 1));
    });
    for (const int row : in_order) {
      KeyRun& run = found.at(static_cast<std::size_t>(followers.int8(row, 0) - 1));
      // Without its head, or behind a gap, a row waits.
      if (static_cast<std::int64_t>(run.rows.size()) != followers.int8(row, 1)) continue;
      run.rows.push_back(candidate(followers, row, followers.int8(row, 2), 3));
    }
  }
  for (KeyRun& run : found) {
    if (!run.rows.empty()) runs_.push_back(std::move(run));
  }
}

QueueClaimer::Selected QueueClaimer::select(std::size_t most, std::size_t suspects) {
  Selected selected;
  for (KeyRun& run : runs_) {
    run.taken = 0;
    for (const Candidate& row : run.rows) {
      if (!row.quarantine && selected.events == most) break;  // setting aside needs no room
      if (row.suspect && !row.quarantine && selected.suspects == suspects) break;
      // None is touched when none may be had. That the scan used up what may be had is not that: this is
      // asked once more after it, and must not give back what stood behind a row that is set aside.
      if (row.suspect && request_.suspect_limit == 0) break;
      ++run.taken;
      if (row.quarantine) continue;
      ++selected.events;
      if (row.suspect) ++selected.suspects;
    }
  }
  return selected;
}

void QueueClaimer::take() {
  std::vector<Candidate> rows;
  for (const KeyRun& run : runs_) {
    rows.insert(rows.end(), run.rows.begin(), run.rows.begin() + static_cast<std::ptrdiff_t>(run.taken));
  }
  failpoint("postgres.queue.claim.before_commit");
  Pipeline pipeline(connection_, cannot_claim_queued);
  const auto crashes = static_cast<std::size_t>(
      std::count_if(rows.begin(), rows.end(), [](const Candidate& row) { return row.abandoned; }));
  if (crashes > 0) {
    params_.clear();
    params_.begin_array(oid::int8, crashes);
    for (const Candidate& row : rows) {
      if (row.abandoned) params_.element_int8(row.id);
    }
    params_.end_array();
    params_.timestamp(now_);
    pipeline.send(sql_.log_crashes, params_);
  }
  if (!rows.empty()) {
    params_.clear();
    params_.text(request_.owner).interval(request_.lease);
    params_.begin_array(oid::int8, rows.size());
    for (const Candidate& row : rows) params_.element_int8(row.id);
    params_.end_array();
    params_.begin_array(oid::boolean, rows.size());
    for (const Candidate& row : rows) params_.element_boolean(row.abandoned);
    params_.end_array();
    params_.begin_array(oid::boolean, rows.size());
    for (const Candidate& row : rows) params_.element_boolean(row.quarantine);
    params_.end_array();
    params_.timestamp(now_);
    pipeline.send(sql_.take, params_);
  }
  pipeline.send_commit(true);
  const std::vector<Result> results = pipeline.finish();
  failpoint("postgres.queue.claim.after_commit");
  if (rows.empty()) return;
  const Result& taken = results.at(crashes > 0 ? 1 : 0);
  std::vector<std::pair<std::int64_t, int>> places;
  places.reserve(static_cast<std::size_t>(taken.rows()));
  for (int row = 0; row < taken.rows(); ++row) places.emplace_back(taken.int8(row, queue_row::place), row);
  std::sort(places.begin(), places.end());
  for (const auto& [place, row] : places) {
    if (taken.boolean(row, queue_row::quarantine)) {
      quarantined_.push_back(QueueId{taken.int8(row, queue_row::id)});
    } else {
      ordered_.push_back(read_row(taken, row));
    }
  }
}

void QueueClaimer::remember_key() {
  // The first key that had to wait for want of room is the next one's turn.
  const KeyRun* last = nullptr;
  for (const KeyRun& run : runs_) {
    if (run.taken == 0) {
      if (last != nullptr) memory_.stopped_at(last->key);
      return;
    }
    last = &run;
  }
  if (last_looked_at_) memory_.stopped_at(*last_looked_at_);
}

}  // namespace postrider::postgres
