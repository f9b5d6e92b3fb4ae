// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/outbox_claim.hpp"

#include <algorithm>
#include <limits>

#include "backends/sqlite/event_columns.hpp"

namespace postrider::sqlite {
namespace {

constexpr std::size_t page_size = 512;
/// So that one claim holds the write lock for a bounded time, whatever backlog is blocked; the next one goes
/// on.
constexpr int most_pages = 16;
constexpr std::int64_t least_deferral = 100'000;
/// Whoever holds the head goes on with its key by itself; this is for the case that it dies on the way.
constexpr std::int64_t longest_wait_for_a_node = 1'000'000;
/// In place of a time: rows behind a run that was cut short are not worth being deferred.
constexpr std::int64_t comes_soon = std::numeric_limits<std::int64_t>::min();

ClaimedEvent decode(const Statement& row) {
  OutboxColumns columns = read_event(row);
  columns.attempts = row.integer(event_column_count);
  columns.token = row.integer(event_column_count + 1);
  return decode_row(columns);
}

}  // namespace

OutboxClaim::OutboxClaim(Connection& connection, const OutboxSql& sql, const ClaimRequest& request,
                         std::int64_t now)
    : connection_(connection), sql_(sql), request_(request), now_(now), take_(connection.prepare(sql.take)) {}

std::vector<ClaimedEvent> OutboxClaim::run() {
  for (const std::string& key : request_.continue_keys) {
    if (full()) break;
    if (!key.empty()) take_run(key);
  }
  if (!full()) free_ = find_due(sql_.due_free, false, request_.limit - claimed_.size());
  for (int page_number = 0; page_number < most_pages && !full(); ++page_number) {
    const std::vector<Due> page = find_due(sql_.due_ordered, true, page_size);
    merge(page);
    if (page.size() < page_size || cut_short_) break;
  }
  if (!full()) take_free_until(now_);
  return std::move(claimed_);
}

std::vector<OutboxClaim::Due> OutboxClaim::find_due(const std::string& sql, bool ordered, std::size_t limit) {
  Statement statement = connection_.prepare(sql);
  statement.with(now_, static_cast<std::int64_t>(limit));
  std::vector<Due> due;
  while (statement.step()) {
    due.push_back({statement.integer(0), statement.integer(1),
                   ordered ? std::string(statement.text(2)) : std::string()});
  }
  return due;
}

void OutboxClaim::merge(const std::vector<Due>& page) {
  std::size_t looked_at = 0;
  for (; looked_at < page.size() && !full(); ++looked_at) {
    const Due& row = page[looked_at];
    take_free_until(row.due_at);
    if (full()) break;
    if (!blocked_until_.contains(row.key)) take_run(row.key);
  }
  defer_blocked(page, looked_at);
}

void OutboxClaim::take_free_until(std::int64_t due_at) {
  for (; next_free_ < free_.size() && !full() && free_[next_free_].due_at <= due_at; ++next_free_) {
    take(free_[next_free_].seq);
  }
}

void OutboxClaim::take_run(const std::string& key) {
  if (blocked_until_.contains(key)) return;
  std::vector<std::int64_t> run;
  std::int64_t blocked_until = now_ + longest_wait_for_a_node;
  {
    Statement statement = connection_.prepare(sql_.run_of_key);
    statement.with(key);
    const std::size_t room = std::min(request_.run_limit, request_.limit - claimed_.size());
    while (run.size() < room && statement.step()) {
      const std::int64_t available_at = statement.integer(1);
      const bool leased = !statement.is_null(3) && statement.integer(4) > now_;
      if (available_at > now_ || leased) {
        if (run.empty())
          blocked_until =
              leased ? std::min(statement.integer(2), now_ + longest_wait_for_a_node) : available_at;
        break;
      }
      run.push_back(statement.integer(0));
    }
  }
  for (const std::int64_t seq : run) {
    take(seq);
    taken_.insert(seq);
  }
  if (run.size() == request_.run_limit) {
    cut_short_ = true;
    blocked_until = comes_soon;
  }
  blocked_until_[key] = blocked_until;
}

void OutboxClaim::take(std::int64_t seq) {
  take_.reset();
  take_.with(request_.owner, now_ + request_.lease.count(), seq);
  while (take_.step()) claimed_.push_back(decode(take_));
}

void OutboxClaim::defer_blocked(const std::vector<Due>& page, std::size_t looked_at) {
  Statement statement = connection_.prepare(sql_.defer);
  for (std::size_t i = 0; i < looked_at; ++i) {
    const Due& row = page[i];
    const std::int64_t blocked_until = blocked_until_.at(row.key);
    if (taken_.contains(row.seq) || blocked_until == comes_soon) continue;
    const std::int64_t until = std::max(blocked_until, now_ + least_deferral);
    statement.with(until, row.seq).run();
    statement.reset();
  }
}

}  // namespace postrider::sqlite
