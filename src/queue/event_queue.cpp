// SPDX-License-Identifier: Apache-2.0
#include "postrider/event_queue.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/option_check.hpp"
#include "core/utf8.hpp"
#include "postrider/error.hpp"
#include "queue/event_queue_parts.hpp"
#include "queue/task_notes.hpp"
#include "storage/require_active.hpp"
#include "storage/wake_channel.hpp"

namespace postrider {
namespace {

constexpr std::size_t max_poll = 10'000;
constexpr std::size_t max_dedupe_chars = 200;

QueueOptions checked(QueueOptions options) {
  using namespace std::chrono_literals;
  const OptionCheck check("QueueOptions");
  check.time("abandoned_timeout", options.abandoned_timeout, 100ms, 24h * 365);
  check.number("max_crashes", options.max_crashes, 0, 1'000'000);
  check.time("notify_interval", options.notify_interval, 0ms, 1min);
  check.text("node_name", options.node_name, 64);
  if (options.node_name.empty()) options.node_name = default_node_name();
  if (options.clock == nullptr) options.clock = &Clock::system();
  if (options.metrics == nullptr) options.metrics = &MetricsExporter::none();
  options.log = guarded(std::move(options.log));
  return options;
}

[[noreturn]] void refuse(std::string_view what, std::string_view why, std::string_view hint = {}) {
  throw Error(ErrorCode::invalid_argument, what, why, hint);
}

std::vector<NewQueueRow> rows_of(std::span<const Event> events, const PublishOptions& options) {
  if (events.empty()) refuse("cannot publish", "the list of events is empty");
  if (options.priority < 0 || options.priority > max_priority) {
    refuse("cannot publish with priority " + std::to_string(options.priority), "it must be from 0 to 9");
  }
  if (!options.dedupe_key.empty()) {
    if (events.size() > 1) {
      refuse("cannot publish", "a dedupe key is for one event, here are " + std::to_string(events.size()),
             "publish them one by one, in one transaction if they belong together");
    }
    const auto chars = utf8_length(options.dedupe_key);
    if (!chars || *chars > max_dedupe_chars || options.dedupe_key.find('\0') != std::string::npos) {
      refuse("cannot publish", "the dedupe key must have at most 200 characters of UTF-8 without NUL");
    }
  }
  std::vector<NewQueueRow> rows;
  rows.reserve(events.size());
  for (const Event& event : events) {
    rows.push_back({.event = &event,
                    .priority = options.priority,
                    .ordering_key = event.ordering_key(),
                    .dedupe_key = options.dedupe_key});
  }
  return rows;
}

/// What nobody can have claimed is a mistake of the caller.
Settled known(Settled settled, const Claim& claim) {
  if (settled == Settled::busy) {
    throw Error(ErrorCode::contention, {.retryable = true},
                "cannot settle event " + std::to_string(static_cast<std::int64_t>(claim.id)),
                "somebody's open transaction has locked its row", "try again when that has ended");
  }
  if (settled != Settled::unknown) return settled;
  throw Error(ErrorCode::invalid_argument,
              "cannot settle event " + std::to_string(static_cast<std::int64_t>(claim.id)),
              "neither the queue nor the log has this id",
              "it was never published here, or its log entry was purged");
}

bool has_errors(std::span<const HandlerResult> results) {
  return std::any_of(results.begin(), results.end(),
                     [](const HandlerResult& result) { return result.verdict != HandlerVerdict::success; });
}

Settlement finalized(const Claim& claim, std::span<const HandlerResult> results) {
  return {.claim = claim,
          .status = has_errors(results) ? QueueStatus::completed_with_errors : QueueStatus::completed,
          .results = {results.begin(), results.end()}};
}

}  // namespace

detail::QueueParts::QueueParts(Storage& storage_in, QueueOptions options_in)
    : storage(storage_in),
      options(checked(std::move(options_in))),
      store(storage.queue_store()),
      hub(std::make_shared<WakeHub>(storage.queue_grown(), storage.wake_channel(), wake_topic::queue,
                                    options.notify_interval, options.log)) {}

Settled detail::QueueParts::settle(const Settlement& settlement) {
  HandledByManager::refuse(store, settlement.claim);
  return known(store.settle({&settlement, 1}).front(), settlement.claim);
}

Settled detail::QueueParts::finalize(const Settlement& settlement) {
  const Settled settled = settle(settlement);
  if (settled == Settled::applied) storage.log_grown()->notify();
  return settled;
}

EventQueue::EventQueue(Storage& storage, QueueOptions options)
    : parts_(std::make_unique<detail::QueueParts>(storage, std::move(options))) {}

EventQueue::~EventQueue() = default;

Published EventQueue::publish(const Event& event, const PublishOptions& options) {
  return publish(std::span(&event, 1), options);
}

Published EventQueue::publish(std::span<const Event> events, const PublishOptions& options) {
  Transaction tx = parts_->storage.begin();
  Published published = publish(tx, events, options);
  tx.commit();
  return published;
}

Published EventQueue::publish(Tx& tx, const Event& event, const PublishOptions& options) {
  return publish(tx, std::span(&event, 1), options);
}

Published EventQueue::publish(Tx& tx, std::span<const Event> events, const PublishOptions& options) {
  require_active(tx, "cannot publish to the queue");
  const std::vector<NewQueueRow> rows = rows_of(events, options);
  Published published;
  for (const InsertedRow& row : parts_->store.insert(tx, rows)) {
    published.ids.push_back(row.id);
    published.duplicate = published.duplicate || row.duplicate;
  }
  if (published.duplicate) return published;
  if (!tx.adopted()) {
    // Only weakly: a transaction may end after the queue.
    static_cast<Transaction&>(tx).after_commit([hub = std::weak_ptr(parts_->hub)] {
      if (const auto alive = hub.lock()) alive->wake();
    });
  }
  parts_->options.metrics->increment_queue_published(events.size());
  return published;
}

std::optional<QueuedEvent> EventQueue::poll() {
  std::vector<QueuedEvent> claimed = poll(1);
  if (claimed.empty()) return std::nullopt;
  return std::move(claimed.front());
}

std::vector<QueuedEvent> EventQueue::poll(std::size_t count) {
  if (count < 1 || count > max_poll) {
    refuse("cannot poll " + std::to_string(count) + " events", "it must be from 1 to 10000");
  }
  const QueueOptions& options = parts_->options;
  QueueClaimResult result = parts_->store.claim({.owner = options.node_name,
                                                 .lease = options.abandoned_timeout,
                                                 .limit = count,
                                                 .suspect_limit = count,
                                                 .max_crashes = options.max_crashes,
                                                 .run_limit = count});
  if (!result.quarantined.empty()) options.metrics->increment_queue_quarantined(result.quarantined.size());
  return std::move(result.events);
}

Settled EventQueue::finalize(const Claim& claim, std::span<const HandlerResult> results) {
  return parts_->finalize(finalized(claim, results));
}

Settled EventQueue::fail(const Claim& claim, const std::string& reason) {
  Settlement settlement{.claim = claim, .status = QueueStatus::failed};
  if (!reason.empty()) {
    settlement.results.push_back({.verdict = HandlerVerdict::unrecoverable_error, .error = reason});
  }
  return parts_->finalize(settlement);
}

Settled EventQueue::complete(Tx& tx, const Claim& claim, std::span<const HandlerResult> results) {
  require_active(tx, "cannot complete an event");
  HandledByManager::refuse(parts_->store, claim);
  const Settled settled = known(parts_->store.settle(tx, finalized(claim, results)), claim);
  if (settled == Settled::applied && !tx.adopted()) {
    static_cast<Transaction&>(tx).after_commit([log = parts_->storage.log_grown()] { log->notify(); });
  }
  return settled;
}

Settled EventQueue::retry(const Claim& claim, Duration delay, const std::string& error) {
  const Settlement settlement{
      .claim = claim,
      .kind = Settlement::Kind::retry,
      .delay = std::clamp(delay, Duration::zero(), Duration(std::chrono::hours{24 * 365})),
      .error = error};
  return parts_->settle(settlement);
}

Settled EventQueue::release(const Claim& claim) {
  const Settlement settlement{.claim = claim, .kind = Settlement::Kind::release};
  const Settled settled = parts_->settle(settlement);
  if (settled == Settled::applied) wake();
  return settled;
}

bool EventQueue::once(const Claim& claim, std::string_view name, const std::function<void()>& task) {
  const std::string id = task_id({}, name);
  if (stored_success(parts_->store, claim.id, id)) return false;
  task();
  note_task(nullptr, parts_->store, claim, id);
  return true;
}

bool EventQueue::once(Tx& tx, const Claim& claim, std::string_view name,
                      const std::function<void(Tx&)>& task) {
  require_active(tx, "cannot run a task once");
  const std::string id = task_id({}, name);
  if (success_in(tx, parts_->store, claim.id, id)) return false;
  task(tx);
  require_active(tx, "cannot note that a task is done");
  note_task(&tx, parts_->store, claim, id);
  return true;
}

bool EventQueue::heartbeat(const Claim& claim) {
  return !heartbeat(std::span(&claim, 1)).empty();
}

std::vector<QueueId> EventQueue::heartbeat(std::span<const Claim> claims) {
  return parts_->store.renew(claims, parts_->options.abandoned_timeout);
}

void EventQueue::wake() noexcept {
  parts_->hub->wake();
}

Storage& EventQueue::storage() noexcept {
  return parts_->storage;
}

const QueueOptions& EventQueue::options() const noexcept {
  return parts_->options;
}

}  // namespace postrider
