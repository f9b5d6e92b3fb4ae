// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "postrider/error.hpp"
#include "postrider/outbox_admin.hpp"
#include "storage/outbox_store.hpp"

namespace postrider {

namespace {

constexpr std::size_t most_listed = 10'000;
constexpr std::size_t revived_per_statement = 1000;
constexpr std::int64_t statements_per_call = 500;
constexpr std::int32_t most_rate = 100'000;
/// With a rate, what falls due at the same time is a tenth of a second's share.
constexpr std::int64_t shares_per_second = 10;

void require(bool ok, std::string_view what, std::string_view why) {
  if (!ok) throw Error(ErrorCode::invalid_argument, what, why);
}

}  // namespace

std::string_view to_string(EventStatus status) noexcept {
  switch (status) {
    case EventStatus::fresh:
      return "NEW";
    case EventStatus::done:
      return "DONE";
    case EventStatus::retry:
      return "RETRY";
    case EventStatus::dead:
      return "DEAD";
  }
  return "UNKNOWN";
}

OutboxCounts OutboxAdmin::counts() {
  return store_.counts();
}

std::optional<OutboxRecord> OutboxAdmin::find(const EventId& id) {
  return store_.find(id);
}

std::vector<OutboxRecord> OutboxAdmin::dead_letters(const DeadLetterFilter& filter, std::size_t limit,
                                                    const OutboxRecord* after) {
  require(limit >= 1 && limit <= most_listed, "cannot list dead letters",
          "limit must be between 1 and 10000");
  return store_.list_dead(filter, limit, after);
}

std::int64_t OutboxAdmin::count_dead_letters(const DeadLetterFilter& filter) {
  return store_.count_dead(filter);
}

std::int64_t OutboxAdmin::replay_dead_letters(const DeadLetterFilter& filter, bool dry_run) {
  if (dry_run) return store_.count_dead(filter);
  // In small transactions, and never more than there were at first: an event that dies again meanwhile is not
  // revived over and over.
  std::int64_t left = store_.count_dead(filter);
  std::int64_t total = 0;
  while (left > 0) {
    const auto limit = std::min<std::int64_t>(left, revived_per_statement);
    const std::int64_t revived = store_.revive_dead(filter, static_cast<std::size_t>(limit));
    if (revived == 0) break;
    total += revived;
    left -= revived;
  }
  return total;
}

Replayed OutboxAdmin::replay_some(const DeadLetterFilter& filter, const ReplayOptions& options) {
  constexpr std::string_view what = "cannot replay dead letters";
  require(options.at_most >= 1 && options.at_most <= most_listed, what,
          "at_most must be between 1 and 10000");
  require(!options.rate || (*options.rate >= 1 && *options.rate <= most_rate), what,
          "rate must be between 1 and 100000 events per second");
  require(options.start_in >= Duration::zero() && options.start_in <= std::chrono::hours{24 * 365}, what,
          "start_in must be between 0 and a year");
  const auto per_second = static_cast<std::int64_t>(options.rate.value_or(0));
  const std::int64_t share =
      options.rate ? std::clamp<std::int64_t>(per_second / shares_per_second, 1, revived_per_statement)
                   : static_cast<std::int64_t>(revived_per_statement);
  // Never more than there were at first: what dies again meanwhile is not revived over and over.
  std::int64_t left = store_.count_dead(filter);
  std::int64_t allowed = static_cast<std::int64_t>(options.at_most);
  Replayed result{.next_in = options.start_in};
  for (std::int64_t i = 0; i < statements_per_call && std::min(left, allowed) > 0; ++i) {
    const std::int64_t limit = std::min({left, allowed, share});
    const std::int64_t revived = store_.revive_dead(filter, static_cast<std::size_t>(limit), result.next_in);
    result.events += revived;
    left -= revived;
    allowed -= revived;
    if (options.rate) result.next_in += Duration{std::chrono::seconds{1}} * revived / per_second;
    if (revived < limit) break;  // somebody else was quicker
  }
  result.left = std::max<std::int64_t>(left, 0);
  return result;
}

bool OutboxAdmin::edit_dead_letter(const EventId& id, PayloadKind kind, std::string payload,
                                   std::optional<Headers> headers) {
  // Checked by building an event of it: the same bounds, the same messages.
  EventBuilder builder = Event::builder("edited");
  kind == PayloadKind::json ? builder.json(std::move(payload)) : builder.bytes(std::move(payload));
  std::optional<std::string_view> headers_json;
  if (headers) builder.headers(std::move(*headers));
  const Event checked = builder.build();
  if (headers) headers_json = checked.headers_json();
  return store_.edit_dead(id, kind, checked.payload(), headers_json);
}

std::int64_t OutboxAdmin::purge(const PurgeOptions& options) {
  require(options.status == EventStatus::done || options.status == EventStatus::dead, "cannot purge",
          "status must be done or dead: pending events are never deleted");
  require(options.batch_size >= 1 && options.batch_size <= 10'000, "cannot purge",
          "batch_size must be between 1 and 10000");
  require(options.older_than >= Duration::zero(), "cannot purge", "older_than must not be negative");
  const std::int64_t at_most = options.at_most
                                   ? static_cast<std::int64_t>(std::min<std::size_t>(
                                         *options.at_most, std::numeric_limits<std::int64_t>::max()))
                                   : std::numeric_limits<std::int64_t>::max();
  if (options.dry_run) return std::min(at_most, store_.count_purgeable(options.status, options.older_than));
  std::int64_t total = 0;
  while (total < at_most) {
    const auto limit = std::min<std::int64_t>(at_most - total, static_cast<std::int64_t>(options.batch_size));
    const std::int64_t deleted =
        store_.purge_batch(options.status, options.older_than, static_cast<std::size_t>(limit));
    total += deleted;
    if (deleted < limit) break;
  }
  return total;
}

}  // namespace postrider
