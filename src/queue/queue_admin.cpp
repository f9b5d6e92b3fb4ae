// SPDX-License-Identifier: Apache-2.0
#include "postrider/queue_admin.hpp"

#include <algorithm>
#include <limits>

#include "core/filter_bounds.hpp"
#include "postrider/error.hpp"
#include "storage/log_store.hpp"
#include "storage/projection_store.hpp"
#include "storage/queue_admin_store.hpp"
#include "storage/queue_store.hpp"

namespace postrider {
namespace {

constexpr std::size_t most_listed = 10'000;
constexpr std::size_t rows_per_transaction = 200;

void require(bool ok, std::string_view what, std::string_view why) {
  if (!ok) throw Error(ErrorCode::invalid_argument, what, why);
}

const QueueFilter& checked(const QueueFilter& filter, std::string_view what = "cannot search the queue") {
  FilterBounds(what)
      .age("older_than", filter.older_than)
      .age("stuck_for", filter.stuck_for)
      .texts("type", filter.types)
      .text("tenant_id", filter.tenant_id)
      .text("error_contains", filter.error_contains);
  return filter;
}

std::int64_t apply_all(Storage& storage, QueueAction action, const QueueFilter& filter,
                       std::string_view reason, const std::function<bool(std::int64_t)>& go_on) {
  QueueAdminStore& store = storage.queue_admin_store();
  std::int64_t total = 0;
  AdminBatch batch{.more = true};
  while (batch.more) {
    batch = store.apply(action, filter, QueueId{batch.walked_to}, rows_per_transaction, reason);
    total += batch.changed;
    // At once: projections wait for the entries, and nobody else may come by to number them.
    if (action == QueueAction::cancel && batch.changed > 0) storage.queue_store().sequence_log();
    if (go_on && !go_on(total)) break;
  }
  if (total > 0) (action == QueueAction::cancel ? storage.log_grown() : storage.queue_grown())->notify();
  return total;
}

/// The projections that have read least.
std::vector<LogPurged::Unread> furthest_behind(Storage& storage) {
  std::vector<LogPurged::Unread> slowest;
  for (ProjectionStatus& one : storage.projection_store().list({})) {
    if (!slowest.empty() && one.position > slowest.front().position) continue;
    if (!slowest.empty() && one.position < slowest.front().position) slowest.clear();
    slowest.push_back({std::move(one.name), one.version, one.position});
  }
  return slowest;
}

}  // namespace

std::string LogPurged::why() const {
  if (held_back_by.empty()) return {};
  std::string text = "older entries were kept for projections that have yet to read them:";
  for (const Unread& one : held_back_by) {
    text += " '" + one.name + "' version " + std::to_string(one.version) + " (has read up to " +
            std::to_string(static_cast<std::int64_t>(one.position)) + "),";
  }
  text.back() = '.';
  return text +
         " Hint: run them, forget those that nobody runs any more (ProjectionAdmin::forget), or purge all "
         "the "
         "same (keep_unread = false)";
}

QueueCounts QueueAdmin::counts(const QueueFilter& filter) {
  return storage_.queue_admin_store().counts(checked(filter));
}

LogCounts QueueAdmin::log_counts(const QueueFilter& log_filter) {
  return storage_.queue_admin_store().log_counts(checked(log_filter));
}

std::map<std::int32_t, std::int64_t> QueueAdmin::attempts(const QueueFilter& filter) {
  return storage_.queue_admin_store().attempts(checked(filter));
}

std::vector<QueueRecord> QueueAdmin::list(const QueueFilter& filter, std::size_t limit, QueueId after) {
  require(limit >= 1 && limit <= most_listed, "cannot list the queue", "limit must be between 1 and 10000");
  return storage_.queue_admin_store().list(checked(filter), limit, after);
}

std::vector<QueueRecord> QueueAdmin::stuck(Duration stuck_for, std::size_t limit, QueueId after) {
  QueueFilter filter;
  filter.stuck_for = stuck_for;
  return list(filter, limit, after);
}

std::optional<QueueRecord> QueueAdmin::find(QueueId id) {
  std::vector<QueueRecord> found = list({.ids = {id}}, 1);
  if (found.empty()) return std::nullopt;
  found.front().history = storage_.log_store().attempts(id);
  return std::move(found.front());
}

std::int64_t QueueAdmin::requeue(const QueueFilter& filter, bool dry_run) {
  if (dry_run) return storage_.queue_admin_store().count(QueueAction::requeue, checked(filter));
  return apply_all(storage_, QueueAction::requeue, checked(filter), {}, go_on_);
}

std::int64_t QueueAdmin::cancel(const QueueFilter& filter, std::string_view reason, bool dry_run) {
  require(!reason.empty(), "cannot cancel events without a reason",
          "it is what the log will tell about their end");
  if (dry_run) return storage_.queue_admin_store().count(QueueAction::cancel, checked(filter));
  return apply_all(storage_, QueueAction::cancel, checked(filter), reason, go_on_);
}

std::int64_t QueueAdmin::release(const QueueFilter& filter, bool dry_run) {
  if (dry_run) return storage_.queue_admin_store().count(QueueAction::release, checked(filter));
  return apply_all(storage_, QueueAction::release, checked(filter), {}, go_on_);
}

std::int64_t QueueAdmin::replay(const QueueFilter& log_filter, bool dry_run) {
  QueueAdminStore& store = storage_.queue_admin_store();
  (void)checked(log_filter, "cannot replay from the log");
  storage_.queue_store().sequence_log();
  // Not beyond today's end: the entries of those that are replayed would be replayed as well, over and over.
  const LogSeq until = storage_.log_store().head();
  if (dry_run) return store.replay(log_filter, LogSeq{}, until, 0).changed;
  std::int64_t total = 0;
  AdminBatch batch{.more = true};
  while (batch.more) {
    batch = store.replay(log_filter, LogSeq{batch.walked_to}, until, rows_per_transaction);
    total += batch.changed;
    if (go_on_ && !go_on_(total)) break;
  }
  if (total > 0) storage_.queue_grown()->notify();
  return total;
}

LogPurged QueueAdmin::purge_log(const LogPurgeOptions& options) {
  require(options.batch_size >= 1 && options.batch_size <= 10'000, "cannot purge the log",
          "batch_size must be between 1 and 10000");
  require(options.older_than >= Duration::zero(), "cannot purge the log", "older_than must not be negative");
  (void)checked(options.filter, "cannot purge the log");
  const std::int64_t at_most = options.at_most
                                   ? static_cast<std::int64_t>(std::min<std::size_t>(
                                         *options.at_most, std::numeric_limits<std::int64_t>::max()))
                                   : std::numeric_limits<std::int64_t>::max();
  QueueAdminStore& store = storage_.queue_admin_store();
  const LogPurge what{
      .age = options.older_than, .keep_unread = options.keep_unread, .filter = options.filter};
  LogPurged purged;
  LogPurgeBatch batch{.walk = {.more = true}};
  if (options.dry_run) {
    batch = store.purge_log(what, {}, 0);
    purged.deleted = std::min(at_most, batch.walk.changed);
  }
  while (!options.dry_run && batch.walk.more && purged.deleted < at_most) {
    const auto limit =
        std::min<std::int64_t>(at_most - purged.deleted, static_cast<std::int64_t>(options.batch_size));
    batch = store.purge_log(what, LogSeq{batch.walk.walked_to}, static_cast<std::size_t>(limit));
    purged.deleted += batch.walk.changed;
    if (go_on_ && !go_on_(purged.deleted)) break;
  }
  if (batch.held_back) purged.held_back_by = furthest_behind(storage_);
  return purged;
}

}  // namespace postrider
