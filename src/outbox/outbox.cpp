// SPDX-License-Identifier: Apache-2.0
// The front door: makes the parts, joins them, starts and stops them in order.
#include "postrider/outbox.hpp"

#include <atomic>
#include <utility>

#include "core/inflight.hpp"
#include "outbox/client.hpp"
#include "outbox/completer.hpp"
#include "outbox/dispatcher.hpp"
#include "outbox/lease_keeper.hpp"
#include "outbox/options.hpp"
#include "outbox/poller.hpp"
#include "outbox/registry.hpp"
#include "postrider/error.hpp"

namespace postrider {

namespace {

CompleterOptions completer_options(const OutboxOptions& options) {
  return {.batch_size = options.completer_batch_size,
          .linger = options.completer_linger,
          // Everything this node can hold at once, so that workers wait only when the database is slow.
          .queue_capacity = options.hot_queue_capacity + options.cold_queue_capacity + options.workers,
          .stop_timeout = options.drain_timeout,
          .clock = options.clock,
          .metrics = options.metrics,
          .log = options.log};
}

DispatcherOptions dispatcher_options(const OutboxOptions& options) {
  return {.workers = options.workers,
          .hot_capacity = options.hot_queue_capacity,
          .cold_capacity = options.cold_queue_capacity,
          .hot_bytes = options.hot_queue_bytes,
          .cold_bytes = options.cold_queue_bytes,
          .lease = options.lease,
          .retry = {options.retry_policy.get(), options.retry_max_attempts},
          .drain_timeout = options.drain_timeout,
          .run_inline = options.inline_dispatch,
          .clock = options.clock,
          .metrics = options.metrics,
          .log = options.log};
}

}  // namespace

struct Outbox::Parts {
  Parts(Storage& storage, OutboxOptions given)
      : options(checked(std::move(given))),
        store(storage.outbox_store()),
        listeners(std::make_shared<FailureLog>(options.log, *options.clock)),
        in_flight(*options.clock),
        completer(store, completer_options(options),
                  [this](std::span<const FinishedEvent> r) { flushed(r); }),
        dispatcher(std::make_shared<OutboxDispatcher>(store, listeners, completer, in_flight,
                                                      dispatcher_options(options))),
        client(store, dispatcher,
               {.owner = options.node_name,
                .lease = options.lease,
                .adopted_lease = options.poller_skip_recent,
                .order_by_aggregate = options.order_by_aggregate,
                .clock = options.clock,
                .metrics = options.metrics,
                .log = options.log}),
        poller(store, *dispatcher,
               {.owner = options.node_name,
                .lease = options.lease,
                .batch_size = options.poller_batch_size,
                .interval = options.poller_interval,
                .clock = options.clock,
                .metrics = options.metrics,
                .log = options.log,
                .search = &storage.outbox_search_store()}),
        lease_keeper(store, in_flight, options.lease, *options.clock, options.log),
        admin(storage) {
    if (!options.poller_enabled || options.inline_dispatch) return;
    dispatcher->on_poll_wanted(
        [this](std::optional<SteadyPoint> when) { when ? poller.wake_at(*when) : poller.poke(); });
    dispatcher->on_doubt([this](std::span<const OutboxItem> events) { poller.look_for(events); });
  }

  /// On the completer's thread, after results are in the database.
  void flushed(std::span<const FinishedEvent> results) {
    std::vector<std::string> keys = dispatcher->flushed(results);
    const SteadyPoint now = options.clock->steady_now();
    std::size_t delivered = 0;
    std::size_t failed = 0;
    for (const FinishedEvent& result : results) {
      const Completion::Kind kind = result.completion.kind;
      const bool ordered = !result.ordering_key.empty();
      if (kind == Completion::Kind::done) {
        delivered += ordered ? 1 : 0;
      } else if (kind == Completion::Kind::retry || kind == Completion::Kind::later) {
        failed += ordered ? 1 : 0;
        poller.wake_at(now + result.completion.delay);
      } else if (kind == Completion::Kind::release) {
        poller.poke();
      }
    }
    poller.ordered_ended(delivered, failed);
    poller.continue_keys(std::move(keys));
    options.metrics->record_in_flight(in_flight.size());
  }

  const OutboxOptions options;
  OutboxStore& store;
  ListenerRegistry listeners;
  InFlightTracker in_flight;
  Completer completer;
  std::shared_ptr<OutboxDispatcher> dispatcher;
  OutboxClient client;
  OutboxPoller poller;
  LeaseKeeper lease_keeper;
  OutboxAdmin admin;

  Mutex lifecycle;  // held while starting and stopping
  std::atomic<bool> running = false;
};

Outbox::Outbox(Storage& storage, OutboxOptions options)
    : parts_(std::make_unique<Parts>(storage, std::move(options))) {}

Outbox::~Outbox() {
  stop();
}

Outbox& Outbox::on(const EventType& type, Listener listener) {
  parts_->listeners.add(type, std::move(listener));
  return *this;
}

Outbox& Outbox::on_all(Listener listener) {
  parts_->listeners.add_for_all(std::move(listener));
  return *this;
}

Staged Outbox::publish(Tx& tx, const Event& event) {
  return parts_->client.publish(tx, {&event, 1});
}

Staged Outbox::publish(Tx& tx, std::span<const Event> events) {
  return parts_->client.publish(tx, events);
}

Staged Outbox::publish(Tx& tx, std::initializer_list<Event> events) {
  return parts_->client.publish(tx, {events.begin(), events.size()});
}

namespace {

Tx& current_tx() {
  Tx* tx = TxContext::current();
  if (tx == nullptr) {
    throw Error(ErrorCode::not_in_transaction, "cannot publish", "this thread has no current transaction",
                "pass one, publish(tx, event), or bind it with TxScope scope{tx}");
  }
  return *tx;
}

}  // namespace

Staged Outbox::publish(const Event& event) {
  return publish(current_tx(), event);
}

Staged Outbox::publish(std::span<const Event> events) {
  return publish(current_tx(), events);
}

void Outbox::start() {
  Parts& parts = *parts_;
  const MutexLock lock(parts.lifecycle);
  if (parts.running) return;
  parts.store.check_schema();
  if (!parts.options.inline_dispatch) {
    parts.completer.start();
    parts.lease_keeper.start();
  }
  parts.dispatcher->start();
  if (parts.options.poller_enabled && !parts.options.inline_dispatch) parts.poller.start();
  parts.running = true;
}

void Outbox::stop() {
  Parts& parts = *parts_;
  if (parts.running && parts.dispatcher->runs_on_this_thread()) {
    throw Error(ErrorCode::invalid_argument, "cannot stop the outbox",
                "stop() was called from one of its listeners", "signal another thread to stop it");
  }
  const MutexLock lock(parts.lifecycle);
  if (!parts.running) return;
  // A database that is away must not hold up the workers, and so the end, for ever.
  parts.completer.give_up_at(parts.options.clock->steady_now() + parts.options.drain_timeout);
  parts.poller.stop();
  parts.dispatcher->stop();
  parts.completer.stop();
  parts.lease_keeper.stop();
  parts.running = false;
}

bool Outbox::running() const noexcept {
  return parts_->running;
}

std::size_t Outbox::poll() {
  return parts_->poller.poll_once();
}

Duration Outbox::overdue() const noexcept {
  return parts_->poller.sign_of_life().overdue(parts_->options.clock->steady_now());
}

OutboxAdmin& Outbox::admin() noexcept {
  return parts_->admin;
}

const OutboxOptions& Outbox::options() const noexcept {
  return parts_->options;
}

}  // namespace postrider
