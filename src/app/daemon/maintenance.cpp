// SPDX-License-Identifier: Apache-2.0
#include "app/daemon/maintenance.hpp"

#include <exception>
#include <string>
#include <utility>

#include "core/option_check.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"
#include "postrider/outbox_admin.hpp"
#include "postrider/queue_admin.hpp"
#include "storage/queue_store.hpp"

namespace postrider::daemon {
namespace {

/// So many rows between two looks at whether to stop.
constexpr std::size_t some = 5'000;
constexpr std::size_t some_states = 1'000;

}  // namespace

Maintenance::Maintenance(Storage& storage, const config::DaemonConfig& config,
                         metrics::PrometheusMetrics& metrics, Clock& clock, LogCallback log)
    : storage_(storage),
      metrics_(metrics),
      outbox_(config.outbox),
      queue_(config.queue),
      log_(guarded(std::move(log))),
      task_(config.queue.cleanup_interval, clock, [this] { run(); }) {}

void Maintenance::start() {
  stopping_ = false;
  task_.start();
}

void Maintenance::stop() {
  stopping_ = true;
  task_.stop();
}

bool Maintenance::purge_some() {
  metrics::Removed removed;
  OutboxAdmin outbox(storage_);
  if (outbox_.purge_done_after) {
    removed.outbox +=
        outbox.purge({.status = EventStatus::done, .older_than = *outbox_.purge_done_after, .at_most = some});
  }
  if (outbox_.purge_dead_after) {
    removed.outbox +=
        outbox.purge({.status = EventStatus::dead, .older_than = *outbox_.purge_dead_after, .at_most = some});
  }
  if (queue_.purge_log_after) {
    removed.queue_log +=
        QueueAdmin(storage_).purge_log({.older_than = *queue_.purge_log_after, .at_most = some}).deleted;
  }
  removed.handler_states += static_cast<std::int64_t>(storage_.queue_store().clean_states(some_states));
  metrics_.count_removed(removed);
  return removed.outbox + removed.queue_log + removed.handler_states != 0;
}

void Maintenance::look_for_abandoned() {
  const Duration time = queue_.abandoned_timeout;
  const std::int64_t abandoned = QueueAdmin(storage_).counts({.stuck_for = time}).abandoned;
  if (abandoned > 0 && !told_of_abandoned_) {
    log_(LogLevel::warning,
         "postrider: " + counted(static_cast<std::size_t>(abandoned), "event") +
             " of the queue abandoned: workers died or hang, and for " + text_of(time) +
             " no other one has taken what they had. Hint: does a worker run that has handlers for it? "
             "`postrider queue stuck` shows it");
  } else if (abandoned == 0 && told_of_abandoned_) {
    log_(LogLevel::info, "postrider: no event of the queue is abandoned any more");
  }
  told_of_abandoned_ = abandoned > 0;
}

void Maintenance::run() noexcept {
  try {
    while (!stopping_ && purge_some()) {
    }
    look_for_abandoned();
    if (std::exchange(failing_, false)) log_(LogLevel::info, "postrider: old rows are removed again");
  } catch (const std::exception& error) {
    metrics_.count_maintenance_failure();
    if (!std::exchange(failing_, true)) {
      log_(LogLevel::warning, "postrider: cannot remove old rows, trying again: " + what_of(error));
    }
  }
}

}  // namespace postrider::daemon
