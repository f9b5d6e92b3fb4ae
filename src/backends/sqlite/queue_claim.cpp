// SPDX-License-Identifier: Apache-2.0
#include "backends/sqlite/queue_claim.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "backends/sqlite/event_columns.hpp"
#include "storage/attempts.hpp"
#include "storage/next_token.hpp"

namespace postrider::sqlite {
namespace {

/// So that one claim holds the write lock for a bounded time, however many keys wait; the next one goes on.
constexpr std::size_t most_keys = 2'000;
constexpr std::int64_t before_every_id = std::numeric_limits<std::int64_t>::min();

/// Any program may have written any number.
std::int32_t count(std::int64_t number) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::int32_t>::max()));
}

std::int32_t one_more(std::int64_t number) {
  return std::min(count(number), std::numeric_limits<std::int32_t>::max() - 1) + 1;
}

bool abandoned(const Statement& row) {
  return row.integer(column_status) != 0;
}

std::int32_t crashes_with_this(const Statement& row) {
  const std::int64_t stored = row.integer(column_crashes);
  return abandoned(row) ? one_more(stored) : count(stored);
}

}  // namespace

// ---- KeyWalk

KeyWalk::KeyWalk(Connection& connection, const QueueSql& sql, std::optional<std::string> start)
    : connection_(connection),
      sql_(sql),
      start_(std::move(start)),
      at_(start_),
      wrapped_(!start_.has_value()) {}

std::optional<std::string> KeyWalk::next() {
  if (done_ || seen_ == most_keys) return std::nullopt;
  std::optional<std::string> key = following();
  if (!key.has_value()) reached_end_ = true;
  if (!key.has_value() && !wrapped_) {
    wrapped_ = true;
    at_.reset();
    key = following();
  }
  done_ = !key.has_value() || (wrapped_ && start_.has_value() && *key > *start_);
  if (done_) {
    if (!at_.has_value()) at_ = start_;
    return std::nullopt;
  }
  ++seen_;
  at_ = key;
  return key;
}

bool KeyWalk::more() const noexcept {
  return seen_ == most_keys && !done_ && !reached_end_;
}

std::optional<std::string> KeyWalk::following() {
  Statement statement = connection_.prepare(at_.has_value() ? sql_.next_key : sql_.first_key);
  if (at_.has_value()) statement.with(*at_);
  if (!statement.step()) return std::nullopt;
  return std::string(statement.text(0));
}

// ---- QueueClaim

QueueClaim::QueueClaim(Connection& connection, const QueueSql& sql, const QueueClaimRequest& request,
                       std::int64_t now, QueueTurn turn)
    : connection_(connection),
      sql_(sql),
      request_(request),
      now_(now),
      odd_to_keys_(turn.odd_to_keys),
      walk_(connection, sql, std::move(turn.key)),
      without_types_(request.without_types.begin(), request.without_types.end()) {}

QueueTurn QueueClaim::turn() const {
  return {.key = walk_.at(), .odd_to_keys = odd_to_keys_ != (request_.limit % 2 == 1)};
}

QueueClaimResult QueueClaim::run() {
  const std::size_t limit = request_.limit;
  take_ordered(limit / 2 + (odd_to_keys_ ? limit % 2 : 0));
  take_free(limit - ordered_.size());
  take_ordered(limit - ordered_.size() - free_.size());
  QueueClaimResult result{
      .events = std::move(ordered_), .quarantined = std::move(quarantined_), .more = more()};
  std::move(free_.begin(), free_.end(), std::back_inserter(result.events));
  return result;
}

std::optional<std::vector<QueuedEvent>> QueueClaim::find_fresh() {
  if (walk_.next().has_value()) return std::nullopt;
  std::vector<QueuedEvent> fresh;
  for (int priority = max_priority; priority >= 0 && fresh.size() < request_.limit; --priority) {
    Statement statement = connection_.prepare(sql_.due);
    statement.with(priority, now_, now_);
    while (fresh.size() < request_.limit && statement.step()) {
      if (unwanted(statement)) continue;
      if (statement.integer(column_status) != 0 || statement.integer(column_token) != 0) return std::nullopt;
      fresh.push_back(read(statement, Fate::take).event);
    }
  }
  return fresh;
}

bool QueueClaim::take_fresh(std::span<const QueuedEvent> fresh) {
  constexpr int ids_begin = 6;
  while (!fresh.empty()) {
    const std::span<const QueuedEvent> block = fresh.first(std::min(fresh.size(), block_size));
    fresh = fresh.subspan(block.size());
    Statement take = connection_.prepare(sql_.take_fresh);
    take.with(request_.owner, now_ + request_.lease.count(), now_, now_, now_);
    for (std::size_t i = 0; i < block_size; ++i) {
      take.bind(ids_begin + static_cast<int>(i),
                i < block.size() ? Value(static_cast<std::int64_t>(block[i].claim.id)) : Value(nullptr));
    }
    if (take.run() != static_cast<std::int64_t>(block.size())) return false;
  }
  return true;
}

bool QueueClaim::look() {
  for (int priority = max_priority; priority >= 0; --priority) {
    Statement statement = connection_.prepare(sql_.due);
    statement.with(priority, now_, now_);
    while (statement.step()) {
      if (judge(statement) != Fate::leave) return true;
    }
  }
  while (const std::optional<std::string> key = walk_.next()) {
    Statement statement = connection_.prepare(sql_.key_rows);
    statement.with(*key, before_every_id);
    if (statement.step() && !blocked(statement) && judge(statement) != Fate::leave) return true;
  }
  return false;
}

void QueueClaim::take_free(std::size_t limit) {
  for (int priority = max_priority; priority >= 0 && limit > 0; --priority) {
    std::vector<Found> found;
    Statement statement = connection_.prepare(sql_.due);
    statement.with(priority, now_, now_);
    while (limit > 0 && statement.step()) {
      const Fate fate = judge(statement);
      if (fate == Fate::leave) continue;
      found.push_back(read(statement, fate));
      if (fate == Fate::take) --limit;
    }
    statement.reset();
    write(std::move(found), free_);
  }
}

void QueueClaim::take_ordered(std::size_t limit) {
  const std::size_t full = ordered_.size() + limit;
  while (ordered_.size() < full) {
    if (!run_.has_value()) {
      std::optional<std::string> key = walk_.next();
      if (!key.has_value()) return;
      run_ = Run{.key = *std::move(key), .after = before_every_id, .taken = 0};
    }
    extend_run(full - ordered_.size());
  }
}

void QueueClaim::extend_run(std::size_t limit) {
  std::vector<Found> found;
  Statement statement = connection_.prepare(sql_.key_rows);
  statement.with(run_->key, run_->after);
  bool goes_on = true;
  while (goes_on && limit > 0) {
    goes_on = run_->taken < request_.run_limit && statement.step() && !blocked(statement);
    if (!goes_on) break;
    const Fate fate = judge(statement);
    goes_on = fate != Fate::leave;
    if (!goes_on) break;
    run_->after = statement.integer(column_id);
    found.push_back(read(statement, fate));
    if (fate == Fate::take) {
      ++run_->taken;
      --limit;
    }
  }
  statement.reset();
  if (!goes_on) run_.reset();
  write(std::move(found), ordered_);
}

bool QueueClaim::blocked(const Statement& row) const {
  if (row.integer(column_status) == 0) return row.integer(column_available) > now_;
  return row.integer(column_lease_until) > now_;
}

bool QueueClaim::unwanted(const Statement& row) const {
  return !without_types_.empty() && without_types_.contains(row.text(event_type_column));
}

QueueClaim::Fate QueueClaim::judge(const Statement& row) const {
  if (unwanted(row)) return Fate::leave;
  const std::int32_t crashes = crashes_with_this(row);
  if (abandoned(row) && request_.max_crashes > 0 && crashes >= request_.max_crashes) return Fate::quarantine;
  const bool suspect = crashes >= request_.suspect_crashes;
  return !suspect || suspects_ < request_.suspect_limit ? Fate::take : Fate::leave;
}

QueueClaim::Found QueueClaim::read(const Statement& row, Fate fate) {
  Found found{
      .event = {}, .fate = fate, .owner = std::string(row.text(column_owner)), .abandoned = abandoned(row)};
  QueuedEvent& event = found.event;
  event.claim = {.id = QueueId{row.integer(column_id)}, .token = next_token(row.integer(column_token))};
  event.crashes = crashes_with_this(row);
  if (fate == Fate::take && event.crashes >= request_.suspect_crashes) ++suspects_;
  if (fate == Fate::quarantine) return found;
  const OutboxColumns columns = read_event(row);
  DecodedEvent decoded = decode_event(columns);
  event.event = std::move(decoded.event);
  event.decode_error = std::move(decoded.error);
  event.priority = static_cast<int>(row.integer(column_priority));
  event.ordering_key = std::string(columns.ordering_key);
  event.attempts = one_more(row.integer(column_attempts));
  event.created_at = columns.created_at;
  event.processing_started_at = TimePoint(Duration(now_));
  return found;
}

void QueueClaim::write(std::vector<Found> found, std::vector<QueuedEvent>& taken) {
  if (found.empty()) return;
  Statement take = connection_.prepare(sql_.take);
  Statement quarantine = connection_.prepare(sql_.quarantine);
  for (Found& one : found) {
    const auto id = static_cast<std::int64_t>(one.event.claim.id);
    if (one.abandoned) {
      connection_.prepare(sql_.log_crash).with(now_, id).run();
      if (may_exceed_kept(one.event.claim.token)) connection_.prepare(sql_.trim_attempts).with(id).run();
    }
    if (one.fate == Fate::take) {
      take.with(request_.owner, now_ + request_.lease.count(), now_, now_, one.event.crashes, id).run();
      take.reset();
      taken.push_back(std::move(one.event));
    } else {
      const std::string error = "in progress when its worker died " + std::to_string(one.event.crashes) +
                                " times (last: " + one.owner + ")";
      quarantine.with(one.event.crashes, error, now_, now_, id).run();
      quarantine.reset();
      quarantined_.push_back(one.event.claim.id);
    }
  }
}

}  // namespace postrider::sqlite
