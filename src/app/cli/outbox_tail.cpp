// SPDX-License-Identifier: Apache-2.0
#include "app/cli/outbox_tail.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <utility>

#include "postrider/clock.hpp"
#include "storage/sql_query.hpp"

namespace postrider::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t outbox_tail_page = 200;
constexpr Duration outbox_tail_patience = 20s;
constexpr Duration tail_overlap = 60s;
/// Clocks of others may be ahead.
constexpr Duration tail_lead = 1h;

/// The ten characters that a ULID of this time begins with.
std::string ulid_prefix(TimePoint time) {
  constexpr std::string_view digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  auto left = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count());
  std::string text(10, '0');
  for (std::size_t i = text.size(); i-- > 0; left >>= 5U) text[i] = digits[left & 31U];
  return text;
}

std::string minute_ago() {
  return ulid_prefix(Clock::system().now() - tail_overlap);
}

std::string end_of_ids() {
  return ulid_prefix(Clock::system().now() + tail_lead);
}

}  // namespace

OutboxTail::OutboxTail(const Database& database, const Options& options, Show show)
    : inspector_(database, outbox_tail_patience), show_(std::move(show)) {
  if (options.follow) {
    show_and_know(options.lines);
    return;
  }
  const std::vector<OutboxRecord> last = newest(end_of_ids(), options.lines);
  std::for_each(last.rbegin(), last.rend(), show_);
}

void OutboxTail::show_and_know(std::size_t lines) {
  // One and the same read says what is known from now on and what is shown: between two of them somebody may
  // publish, and that would be known without having been shown.
  std::deque<OutboxRecord> last;
  const std::string begin = minute_ago();
  each_recent(begin, [&](const OutboxRecord& record) {
    last.push_back(record);
    if (last.size() > lines) last.pop_front();
    return true;
  });
  const std::vector<OutboxRecord> older =
      last.size() < lines ? newest(begin, lines - last.size()) : std::vector<OutboxRecord>();
  std::for_each(older.rbegin(), older.rend(), show_);
  std::for_each(last.begin(), last.end(), show_);
}

bool OutboxTail::look() {
  bool found = false;
  each_recent(minute_ago(), [&](const OutboxRecord& record) {
    found = true;
    return show_(record);
  });
  return found;
}

std::vector<OutboxRecord> OutboxTail::rows(const std::string& rest, std::span<const Value> params) {
  std::string sql =
      "select event_id, event_type, status, attempts, aggregate_type, aggregate_id, tenant_id, ordering_key, "
      "last_error, owner";
  for (const char* const time : {"occurred_at", "created_at", "available_at", "done_at"}) {
    sql += ", " + inspector_.micros(time);
  }
  sql += " from " + inspector_.table("outbox_event") + " " + rest;
  std::vector<OutboxRecord> records;
  for (const auto& row : inspector_.select(sql, params).rows) {
    OutboxRecord& record = records.emplace_back();
    record.id = EventId(text(row[0]));
    record.type = text(row[1]);
    record.status = static_cast<EventStatus>(number(row[2]));
    record.attempts = static_cast<Attempt>(number(row[3]));
    record.aggregate_type = text(row[4]);
    record.aggregate_id = text(row[5]);
    record.tenant_id = text(row[6]);
    record.ordering_key = text(row[7]);
    record.last_error = text(row[8]);
    record.owner = text(row[9]);
    record.occurred_at = time_of(row[10]);
    record.created_at = time_of(row[11]);
    record.available_at = time_of(row[12]);
    if (row[13]) record.done_at = time_of(row[13]);
  }
  return records;
}

std::vector<OutboxRecord> OutboxTail::newest(std::string_view below, std::size_t count) {
  const std::array<Value, 1> params{Value(below)};
  return rows("where event_id < ? order by event_id desc limit " + std::to_string(count), params);
}

void OutboxTail::each_recent(const std::string& begin, const Show& use) {
  const std::string end = end_of_ids();
  std::string after = begin;
  for (;;) {
    const std::array<Value, 2> params{Value(after), Value(end)};
    const std::vector<OutboxRecord> page = rows(
        "where event_id > ? and event_id < ? order by event_id limit " + std::to_string(outbox_tail_page),
        params);
    for (const OutboxRecord& record : page) {
      if (seen_.insert(record.id).second && !use(record)) return;
    }
    if (page.size() < outbox_tail_page) break;
    after = page.back().id.str();
  }
  // Those that no look will meet again.
  seen_.erase(seen_.begin(), seen_.lower_bound(EventId(begin)));
}

}  // namespace postrider::cli
