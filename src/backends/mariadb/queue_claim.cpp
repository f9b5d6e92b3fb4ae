// SPDX-License-Identifier: Apache-2.0
#include "backends/mariadb/queue_claim.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <utility>

#include "backends/mariadb/in_list.hpp"
#include "storage/next_token.hpp"
#include "storage/row_decoder.hpp"

namespace postrider::mariadb {
namespace {

/// Before every row: the table's CHECK keeps out what is earlier.
constexpr std::int64_t earliest = EventLimits::earliest.time_since_epoch().count();

/// What the look takes with nothing to walk over: ten ranges are planned and read.
constexpr Duration usual_cost = std::chrono::milliseconds{1};

TimePoint time_of(std::int64_t micros) {
  return TimePoint{Duration{micros}};
}

std::int32_t small(std::int64_t number) {
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::int32_t>::max()));
}

SteadyPoint real_now() {
  // Not the storage's clock: what a scan costs is real time also where a test drives the rest.
  return std::chrono::steady_clock::now();
}

std::string types_between_nuls(std::span<const std::string> types) {
  std::string text;
  for (const std::string& type : types) text.append(1, '\0').append(type).append(1, '\0');
  return text;
}

}  // namespace

ClaimMemory::Plan ClaimMemory::plan(SteadyPoint now) {
  const MutexLock lock(mutex_);
  odd_to_ordered_ = !odd_to_ordered_;
  return {.scan = cursor_.next(now), .last_key = last_key_, .odd_to_ordered = odd_to_ordered_};
}

bool ClaimMemory::full_scan_allowed(SteadyPoint now) {
  const MutexLock lock(mutex_);
  return cursor_.full_allowed(now);
}

void ClaimMemory::full_scan_took(Duration cost, SteadyPoint now) {
  const MutexLock lock(mutex_);
  if (exact_) return;
  costs_[next_cost_] = std::max(Duration::zero(), cost - usual_cost);
  next_cost_ = (next_cost_ + 1) % costs_.size();
  cursor_.full_scan_took(*std::min_element(costs_.begin(), costs_.end()), now);
}

void ClaimMemory::claimed(const ClaimCursor::Positions& last, std::optional<std::string> last_key) {
  const MutexLock lock(mutex_);
  for (std::size_t level = 0; level < last.size(); ++level) {
    if (last[level]) cursor_.claimed(static_cast<int>(level), *last[level]);
  }
  if (last_key) last_key_ = std::move(last_key);
}

QueueClaimer::QueueClaimer(Link& link, const QueueSql& sql, const QueueClaimRequest& request,
                           std::int64_t now, ClaimMemory& memory)
    : link_(link),
      sql_(sql),
      request_(request),
      now_(now),
      memory_(memory),
      plan_(memory.plan(real_now())),
      suspects_left_(request.suspect_limit),
      types_(types_between_nuls(request.without_types)),
      walked_to_(plan_.last_key),
      from_beginning_(!plan_.last_key.has_value()) {}

void QueueClaimer::run() {
  take_ordered((request_.limit + (plan_.odd_to_ordered ? 1 : 0)) / 2);
  take_due();
  take_ordered(room());
  write();
}

QueueClaimResult QueueClaimer::result() {
  QueueClaimResult result;
  for (KeyRun& run : runs_) {
    for (Row& row : run.rows) result.events.push_back(std::move(row.event));
  }
  std::sort(due_.begin(), due_.end(), [](const Row& a, const Row& b) {
    return std::tuple(-a.event.priority, a.available_at, a.id) <
           std::tuple(-b.event.priority, b.available_at, b.id);
  });
  for (Row& row : due_) result.events.push_back(std::move(row.event));
  result.quarantined = std::move(quarantined_);
  result.more = keys_seen_ >= most_keys && !reached_end_;
  return result;
}

void QueueClaimer::take_due() {
  if (room() == 0) return;
  scan(plan_.scan);
  if (room() == 0 || plan_.scan.full || !memory_.full_scan_allowed(real_now())) return;
  write();  // so that what is taken is passed over
  scan({});
}

void QueueClaimer::scan(const ClaimCursor::Scan& scan) {
  for (const Place& place : first_due(scan)) scan_level(place);
}

std::int64_t QueueClaimer::crashes_below() const {
  // The column is a 32-bit one.
  return suspects_left_ > 0 ? std::numeric_limits<std::int64_t>::max() : request_.suspect_crashes;
}

std::vector<QueueClaimer::Place> QueueClaimer::first_due(const ClaimCursor::Scan& scan) {
  std::vector<Value> params;
  for (int level = max_priority; level >= 0; --level) {
    const auto& after = scan.after[static_cast<std::size_t>(level)];
    const std::int64_t available_at = after ? after->available_at.time_since_epoch().count() : earliest;
    params.insert(params.end(), {Value(available_at), Value(after ? after->id + 1 : 0), Value(available_at),
                                 Value(now_), Value(now_), Value(crashes_below()), Value(Blob{types_})});
  }
  std::vector<Place> places;
  Duration cost{};
  link_.run(sql_.first_due, params, [&](const RowView& row) {
    if (row.integer(0) < 0) {
      cost = Duration{row.integer(1)};
    } else {
      places.push_back({static_cast<int>(row.integer(0)), row.integer(1), row.integer(2)});
    }
  });
  if (scan.full) memory_.full_scan_took(cost, real_now());
  return places;
}

void QueueClaimer::scan_level(Place from) {
  while (room() > 0) {
    const std::size_t wanted = room();
    const std::array<Value, 9> params{Value(from.level),
                                      Value(from.available_at),
                                      Value(from.id),
                                      Value(from.available_at),
                                      Value(now_),
                                      Value(now_),
                                      Value(crashes_below()),
                                      Value(Blob{types_}),
                                      Value(wanted)};
    std::vector<Row> rows;
    link_.run(sql_.lock_due, params, [&](const RowView& row) { rows.push_back(read_row(row)); });
    for (Row& row : rows) {
      from.available_at = row.available_at;
      from.id = row.id + 1;
      if (consider(row) != Fate::taken) continue;
      last_claimed_[static_cast<std::size_t>(from.level)] = {time_of(row.available_at), row.id};
      due_.push_back(std::move(row));
    }
    if (rows.size() < wanted) return;
  }
}

QueueClaimer::Row QueueClaimer::read_row(const RowView& row) const {
  using C = QueueColumn;
  Row read;
  read.id = row.integer(C::id);
  read.available_at = row.integer(C::available_at);
  read.abandoned = row.integer(C::status) == static_cast<std::int64_t>(QueueStatus::processing);
  read.owner = row.text(C::owner);
  read.token = Token{row.integer(C::token)};
  const bool json = !row.is_null(C::payload);
  DecodedEvent decoded = decode_event({.event_id = row.text(C::event_id),
                                       .event_type = row.text(C::event_type),
                                       .aggregate_type = row.text(C::aggregate_type),
                                       .aggregate_id = row.text(C::aggregate_id),
                                       .tenant_id = row.text(C::tenant_id),
                                       .ordering_key = row.text(C::ordering_key),
                                       .headers_json = row.text(C::headers),
                                       .payload_kind = json ? PayloadKind::json : PayloadKind::bytes,
                                       .payload = row.text(json ? C::payload : C::payload_bytes),
                                       .occurred_at = time_of(row.integer(C::occurred_at)),
                                       .created_at = time_of(row.integer(C::created_at))});
  read.event = {.claim = {QueueId{read.id}, next_token(row.integer(C::token))},
                .event = std::move(decoded.event),
                .decode_error = std::move(decoded.error),
                .priority = static_cast<int>(row.integer(C::priority)),
                .ordering_key = std::string(row.text(C::ordering_key)),
                .attempts = small(row.integer(C::attempts) + 1),
                .crashes = small(row.integer(C::crashes) + (read.abandoned ? 1 : 0)),
                .created_at = time_of(row.integer(C::created_at)),
                .processing_started_at = time_of(now_)};
  return read;
}

QueueClaimer::Fate QueueClaimer::consider(const Row& row) {
  const bool suspect = row.event.crashes >= request_.suspect_crashes;
  if (suspect && suspects_left_ == 0) return Fate::left;
  if (row.abandoned) crashes_.add_crash({QueueId{row.id}, row.token});
  if (row.abandoned && request_.max_crashes > 0 && row.event.crashes >= request_.max_crashes) {
    reasons_.push_back("in progress when its worker died " + std::to_string(row.event.crashes) +
                       " times (last: " + row.owner + ")");
    set_aside_.insert(set_aside_.end(),
                      {Value(now_), Value(now_), Value(Blob{reasons_.back()}), Value(row.id)});
    quarantined_.push_back(QueueId{row.id});
    return Fate::set_aside;
  }
  if (suspect) --suspects_left_;
  ++taken_;
  unwritten_.push_back(row.id);
  return Fate::taken;
}

void QueueClaimer::write() {
  const std::array<Value, 4> before{Value(Blob{request_.owner}), Value(now_ + bounded(request_.lease)),
                                    Value(now_), Value(now_)};
  crashes_.write(link_, sql_, Value(now_));
  run_list(link_, sql_.take, before, unwritten_, {}, {});
  unwritten_.clear();
  link_.run_many(sql_.quarantine, 4, set_aside_);
  set_aside_.clear();
}

QueueClaimResult MariadbQueueStore::claim(const QueueClaimRequest& request) {
  QueueClaimResult result;
  if (request.limit == 0) return result;
  ClaimCursor::Positions last_claimed;
  std::optional<std::string> last_key;
  work_.transaction(
      [&](Link& link) {
        std::int64_t now = 0;
        if (clock_ != nullptr) {
          now = clock_->now().time_since_epoch().count();
        } else {
          link.run(sql_.now, {}, [&](const RowView& row) { now = row.integer(0); });
        }
        QueueClaimer claimer(link, sql_, request, now, memory_);
        claimer.run();
        result = claimer.result();
        last_claimed = claimer.last_claimed();
        last_key = claimer.last_key();
      },
      {"mariadb.queue.claim.before_commit", "mariadb.queue.claim.after_commit"});
  memory_.claimed(last_claimed, std::move(last_key));
  return result;
}

}  // namespace postrider::mariadb
