// SPDX-License-Identifier: Apache-2.0
#include "backends/postgres/ordered_claim.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/failpoint.hpp"

namespace postrider::postgres {

namespace {

/// The first page is as long as the limit, so that no more heads are locked than can be taken. Further pages
/// are for backlogs that are blocked; bounded, because other programs may keep adding to them.
constexpr std::size_t least_further_page = 512;
constexpr int most_pages = 16;

/// Divides the room: keys to continue come first with all they have; of the rest, rows without a key get
/// their share; then every key its head before any key gets more. Returns how many ordered rows are taken.
template <class Runs>
std::size_t divide(const Runs& takers, std::size_t room, std::size_t unordered_share) {
  std::size_t taken = 0;
  for (auto* run : takers) {
    if (run->continued == run->npos) continue;
    run->taken = std::min(run->ids.size(), room - taken);
    taken += run->taken;
  }
  const std::size_t most = room - std::min(unordered_share, room - taken);
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

OrderedClaim::OrderedClaim(Connection& connection, const OutboxSql& sql, const ClaimRequest& request,
                           std::optional<TimePoint> now)
    : connection_(connection), sql_(sql), request_(request), now_(now) {
  for (const std::string& key : request.continue_keys) {
    if (!key.empty()) continued_.emplace(key, continued_.size());
  }
}

std::vector<ClaimedEvent> OrderedClaim::run() {
  int page = 0;
  while (!run_page(page)) ++page;
  return read_sorted(places_);
}

bool OrderedClaim::run_page(int number) {
  std::vector<Run> runs = lock_heads(number);
  std::vector<Run*> takers;
  for (Run& run : runs) {
    if (run.take) takers.push_back(&run);
  }
  const bool heads_suffice =
      request_.run_limit == 1 ||
      (takers.size() >= room() && (takers.empty() || takers.front()->continued == Run::npos));
  if (!takers.empty() && !heads_suffice) lock_followers(takers);
  const std::size_t taken = divide(takers, room(), unordered_share_);
  claimed_ += taken;
  const bool cut_short = std::any_of(takers.begin(), takers.end(),
                                     [&](const Run* run) { return run->taken == request_.run_limit; });

  // Nothing is left behind when the limit is reached, or when the page showed everything that is due. What is
  // behind a run that was cut short comes soon and is not worth being deferred.
  const bool last = unordered_share_ >= room() || !page_full_ || cut_short || number + 1 >= most_pages;
  Pipeline pipeline(connection_, cannot_claim);
  if (taken > 0) send_take(pipeline, takers);
  send_defer(pipeline, runs, !last);
  const std::size_t unordered = room();
  if (unordered > 0) {
    bind_claim(params_, request_, unordered, now_);
    pipeline.send(sql_.claim_unordered, params_);
  }
  if (last) {
    failpoint("postgres.claim.before_commit");
    pipeline.send_commit(true);
  }
  const std::vector<Result>& results = answers_.emplace_back(pipeline.finish());
  if (last) failpoint("postgres.claim.after_commit");

  if (taken > 0) {
    std::unordered_map<std::string_view, Taken> by_id;
    for (const Run* run : takers) {
      for (std::size_t i = 0; i < run->taken; ++i) {
        by_id.emplace(run->ids[i], Taken{run->continued != Run::npos, run->first_due, next_number_++});
      }
    }
    const Result& rows = results.front();
    for (int row = 0; row < rows.rows(); ++row) {
      const Taken& one = by_id.at(rows.text(row, 0));
      // Runs to continue come first; the rows of a run share its time, so that they stay together.
      const bool first = one.continued || !one.first_due;
      places_.push_back({first ? TimePoint::min() : *one.first_due, one.number, &rows, row});
    }
  }
  if (unordered > 0) {
    const Result& rows = results.at(results.size() - (last ? 2 : 1));
    add_unordered(rows, places_);
    claimed_ += static_cast<std::size_t>(rows.rows());
  }
  return last;
}

std::vector<OrderedClaim::Run> OrderedClaim::lock_heads(int page) {
  const std::size_t length = page == 0 ? request_.limit : std::max(request_.limit, least_further_page);
  Pipeline pipeline(connection_, cannot_claim);
  if (!begun_) begin_worker(pipeline);
  params_.clear();
  params_.begin_array(oid::text, page == 0 ? continued_.size() : 0);
  if (page == 0) {
    for (const auto& [key, place] : continued_) params_.element(key);
  }
  params_.end_array();
  params_.int8(static_cast<std::int64_t>(length)).timestamp(now_);
  pipeline.send(sql_.heads, params_);
  params_.clear();
  params_.int8(static_cast<std::int64_t>(room())).timestamp(now_);
  pipeline.send(sql_.unordered_share, params_);
  const std::vector<Result> results = pipeline.finish();
  const Result& heads = results.at(begun_ ? 0 : 2);
  unordered_share_ = static_cast<std::size_t>(results.back().int8(0, 0));
  begun_ = true;

  std::vector<Run> runs;
  page_full_ = false;
  for (int row = 0; row < heads.rows(); ++row) {
    Run& run = runs.emplace_back();
    run.key = heads.text(row, 0);
    if (const auto it = continued_.find(run.key); page == 0 && it != continued_.end()) {
      run.continued = it->second;
    }
    if (!heads.is_null(row, 1)) run.first_due = heads.timestamp(row, 1);
    run.ids.emplace_back(heads.text(row, 2));
    run.head_seq = heads.int8(row, 3);
    run.seqs.push_back(run.head_seq);
    run.take = heads.boolean(row, 4);
    run.blocked_until = heads.timestamp(row, 5);
    page_full_ = static_cast<std::size_t>(heads.int8(row, 6)) >= length;
  }
  saw_ordered_ = saw_ordered_ || !runs.empty();
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return std::tuple(a.continued, a.first_due, a.head_seq) <
           std::tuple(b.continued, b.first_due, b.head_seq);
  });
  return runs;
}

void OrderedClaim::lock_followers(const std::vector<Run*>& takers) {
  Pipeline pipeline(connection_, cannot_claim);
  params_.clear();
  params_.begin_array(oid::text, takers.size());
  for (const Run* run : takers) params_.element(run->key);
  params_.end_array();
  params_.begin_array(oid::int8, takers.size());
  for (const Run* run : takers) params_.element_int8(run->head_seq);
  params_.end_array();
  params_.int8(static_cast<std::int64_t>(std::min(room(), request_.run_limit - 1)))
      .timestamp(now_)
      .int8(static_cast<std::int64_t>(room()));
  pipeline.send(sql_.followers, params_);
  const Result result = std::move(pipeline.finish().at(0));

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
      // A row that was skipped because of a lock, or has changed since the snapshot, ends the run.
      if (follower.place != expected++ || !result.boolean(follower.row, 3)) break;
      takers[i]->ids.emplace_back(result.text(follower.row, 2));
      takers[i]->seqs.push_back(result.int8(follower.row, 4));
    }
  }
}

void OrderedClaim::send_take(Pipeline& pipeline, const std::vector<Run*>& takers) {
  std::size_t count = 0;
  for (const Run* run : takers) count += run->taken;
  params_.clear();
  params_.text(request_.owner).interval(request_.lease);
  params_.begin_array(oid::text, count);
  for (const Run* run : takers) {
    for (std::size_t i = 0; i < run->taken; ++i) params_.element(run->ids[i]);
  }
  params_.end_array();
  params_.timestamp(now_);
  pipeline.send(sql_.take, params_);
}

void OrderedClaim::send_defer(Pipeline& pipeline, const std::vector<Run>& runs, bool also_behind_taken) {
  // Before a further page, whatever stands behind a run that ended early must leave the scan as well; for the
  // least time, because its end may be a lock that is gone by then.
  std::vector<const Run*> deferred;
  for (const Run& run : runs) {
    if (!run.first_due) continue;
    if (!run.take || (also_behind_taken && run.taken > 0)) deferred.push_back(&run);
  }
  if (deferred.empty()) return;
  params_.clear();
  params_.begin_array(oid::text, deferred.size());
  for (const Run* run : deferred) params_.element(run->key);
  params_.end_array();
  params_.begin_array(oid::int8, deferred.size());
  for (const Run* run : deferred) {
    params_.element_int8(run->taken > 0 ? run->seqs[run->taken - 1] : run->head_seq);
  }
  params_.end_array();
  params_.begin_array(oid::timestamptz, deferred.size());
  for (const Run* run : deferred) {
    if (run->take) {
      params_.element_null();
    } else {
      params_.element_timestamp(run->blocked_until);
    }
  }
  params_.end_array();
  params_.timestamp(now_);
  pipeline.send(sql_.defer, params_);
}

}  // namespace postrider::postgres
