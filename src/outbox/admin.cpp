// SPDX-License-Identifier: Apache-2.0
#include "postrider/outbox_admin.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <span>
#include <utility>

#include "core/filter_bounds.hpp"
#include "core/text_bounds.hpp"
#include "postrider/error.hpp"
#include "storage/outbox_search_store.hpp"
#include "storage/outbox_store.hpp"

namespace postrider {

namespace {

constexpr std::size_t most_listed = 10'000;
constexpr std::size_t revived_per_statement = 1000;
constexpr std::int64_t statements_per_call = 500;
constexpr std::int32_t most_rate = 100'000;
/// With a rate, what falls due at the same time is a tenth of a second's share.
constexpr std::int64_t shares_per_second = 10;
constexpr std::size_t changed_per_transaction = 200;
/// A search looks at more rows than it finds: one for each transaction would look at most of them many times.
constexpr std::size_t found_per_search = 2'000;
constexpr std::size_t longest_reason = 4'000;

void require(bool ok, std::string_view what, std::string_view why) {
  if (!ok) throw Error(ErrorCode::invalid_argument, what, why);
}

const OutboxFilter& checked(const OutboxFilter& filter) {
  constexpr std::string_view what = "cannot search the outbox";
  FilterBounds(what)
      .age("older_than", filter.older_than)
      .age("stuck_for", filter.stuck_for)
      .texts("type", filter.types)
      .text("aggregate_type", filter.aggregate_type)
      .text("aggregate_id", filter.aggregate_id)
      .text("tenant_id", filter.tenant_id)
      .text("owner", filter.owner)
      .text("error_contains", filter.error_contains);
  if (filter.statuses.is_set()) {
    for (const EventStatus status : filter.statuses.values()) {
      require(status == EventStatus::fresh || status == EventStatus::retry, what,
              "statuses must be fresh or retry: DONE and DEAD events are finished");
    }
  }
  return filter;
}

/// Does something to pending events, in small transactions.
class PendingChange {
 public:
  PendingChange(Storage& storage, PendingRows rows, std::string_view reason,
                const std::function<bool(std::int64_t)>& go_on)
      : storage_(storage), rows_(std::move(rows)), reason_(reason), go_on_(go_on) {}

  [[nodiscard]] std::int64_t count() { return storage_.outbox_pending_store().count(rows_); }

  std::int64_t run() {
    rows_.begun = storage_.outbox_pending_store().now();
    rows_.filter.ids.is_set() ? change_named() : change_found();
    return changed_;
  }

 private:
  void change_named() {
    const std::vector<EventId> all = rows_.filter.ids.values();
    check_filter_values("an outbox filter", all.size());
    change(all);
  }
  /// Never more than there were at first: what fails again meanwhile is not requeued over and over.
  void change_found() {
    const std::int64_t all = count();
    OutboxSearch search{.list = OutboxList::pending, .rows = rows_};
    if (rows_.filter.delayed.value_or(false)) search.from = rows_.begun;  // what is due is not delayed
    while (changed_ < all) {
      search.limit = std::min(found_per_search, static_cast<std::size_t>(all - changed_));
      const OutboxPage page = storage_.outbox_search_store().search(search);
      std::vector<EventId> ids;
      for (const OutboxRecord& record : page.records) ids.push_back(record.id);
      if (!change(ids) || !page.next) return;
      search.after = page.next;
    }
  }
  /// False when it is to end.
  bool change(std::span<const EventId> ids) {
    for (std::size_t first = 0; first < ids.size(); first += changed_per_transaction) {
      const std::span<const EventId> some =
          ids.subspan(first, std::min(changed_per_transaction, ids.size() - first));
      changed_ += storage_.outbox_pending_store().apply(rows_, some, reason_);
      if (go_on_ && !go_on_(changed_)) return false;
    }
    return true;
  }

  Storage& storage_;
  PendingRows rows_;
  std::string_view reason_;
  const std::function<bool(std::int64_t)>& go_on_;
  std::int64_t changed_ = 0;
};

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
  return storage_.outbox_admin_store().counts();
}

std::optional<OutboxRecord> OutboxAdmin::find(const EventId& id) {
  return storage_.outbox_admin_store().find(id);
}

std::vector<OutboxRecord> OutboxAdmin::pending(const OutboxFilter& filter, std::size_t limit,
                                               const OutboxRecord* after) {
  require(limit >= 1 && limit <= most_listed, "cannot list the outbox", "limit must be between 1 and 10000");
  OutboxSearch search{.list = OutboxList::pending, .rows = PendingRows{.filter = checked(filter)}};
  if (after != nullptr) {
    search.after =
        OutboxMark{.at = std::max(after->available_at, after->lease_until.value_or(TimePoint::min())),
                   .seq = after->seq};
  }
  std::vector<OutboxRecord> records;
  while (records.size() < limit) {
    search.limit = limit - records.size();
    OutboxPage page = storage_.outbox_search_store().search(search);
    std::move(page.records.begin(), page.records.end(), std::back_inserter(records));
    if (!page.next) break;
    search.after = page.next;
  }
  return records;
}

std::vector<OutboxRecord> OutboxAdmin::stuck(Duration stuck_for, std::size_t limit,
                                             const OutboxRecord* after) {
  OutboxFilter filter;
  filter.stuck_for = stuck_for;
  return pending(filter, limit, after);
}

std::int64_t OutboxAdmin::requeue(const OutboxFilter& filter, bool dry_run) {
  PendingChange change(storage_, {.filter = checked(filter), .action = OutboxAction::requeue}, {}, go_on_);
  return dry_run ? change.count() : change.run();
}

std::int64_t OutboxAdmin::cancel(const OutboxFilter& filter, std::string_view reason, bool dry_run) {
  check_text_bounds("cannot cancel events", "reason", reason, 1, longest_reason);
  PendingChange change(storage_, {.filter = checked(filter), .action = OutboxAction::cancel}, reason, go_on_);
  return dry_run ? change.count() : change.run();
}

std::vector<OutboxRecord> OutboxAdmin::dead_letters(const DeadLetterFilter& filter, std::size_t limit,
                                                    const OutboxRecord* after) {
  require(limit >= 1 && limit <= most_listed, "cannot list dead letters",
          "limit must be between 1 and 10000");
  return storage_.outbox_admin_store().list_dead(filter, limit, after);
}

std::int64_t OutboxAdmin::count_dead_letters(const DeadLetterFilter& filter) {
  return storage_.outbox_admin_store().count_dead(filter);
}

std::int64_t OutboxAdmin::replay_dead_letters(const DeadLetterFilter& filter, bool dry_run) {
  if (dry_run) return storage_.outbox_admin_store().count_dead(filter);
  // In small transactions, and never more than there were at first: an event that dies again meanwhile is not
  // revived over and over.
  std::int64_t left = storage_.outbox_admin_store().count_dead(filter);
  std::int64_t total = 0;
  while (left > 0) {
    const auto limit = std::min<std::int64_t>(left, revived_per_statement);
    const std::int64_t revived =
        storage_.outbox_admin_store().revive_dead(filter, static_cast<std::size_t>(limit));
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
          "start_in must be between 0 and 365 days");
  const auto per_second = static_cast<std::int64_t>(options.rate.value_or(0));
  const std::int64_t share =
      options.rate ? std::clamp<std::int64_t>(per_second / shares_per_second, 1, revived_per_statement)
                   : static_cast<std::int64_t>(revived_per_statement);
  // Never more than there were at first: what dies again meanwhile is not revived over and over.
  std::int64_t left = storage_.outbox_admin_store().count_dead(filter);
  std::int64_t allowed = static_cast<std::int64_t>(options.at_most);
  Replayed result{.next_in = options.start_in};
  for (std::int64_t i = 0; i < statements_per_call && std::min(left, allowed) > 0; ++i) {
    const std::int64_t limit = std::min({left, allowed, share});
    const std::int64_t revived =
        storage_.outbox_admin_store().revive_dead(filter, static_cast<std::size_t>(limit), result.next_in);
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
  return storage_.outbox_admin_store().edit_dead(id, kind, checked.payload(), headers_json);
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
  if (options.dry_run)
    return std::min(at_most,
                    storage_.outbox_admin_store().count_purgeable(options.status, options.older_than));
  std::int64_t total = 0;
  while (total < at_most) {
    const auto limit = std::min<std::int64_t>(at_most - total, static_cast<std::int64_t>(options.batch_size));
    const std::int64_t deleted = storage_.outbox_admin_store().purge_batch(options.status, options.older_than,
                                                                           static_cast<std::size_t>(limit));
    total += deleted;
    if (deleted < limit) break;
  }
  return total;
}

}  // namespace postrider
