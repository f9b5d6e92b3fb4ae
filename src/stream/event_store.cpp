// SPDX-License-Identifier: Apache-2.0
#include "postrider/event_store.hpp"

#include <string>
#include <utility>

#include "core/option_check.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"
#include "storage/require_active.hpp"
#include "storage/stream_store.hpp"
#include "storage/wake_channel.hpp"
#include "storage/wake_hub.hpp"
#include "stream/append_batcher.hpp"
#include "stream/event_stream.hpp"

namespace postrider {
namespace {

constexpr std::string_view cannot_append = "cannot append to the event store";

EventStoreOptions checked(EventStoreOptions options) {
  using namespace std::chrono_literals;
  const OptionCheck check("EventStoreOptions");
  check.count("flush_events", options.flush_events, 1, 100'000);
  check.count("flush_bytes", options.flush_bytes, 1, 1U << 30U);
  check.time("notify_interval", options.notify_interval, 0ms, 1min);
  if (options.clock == nullptr) options.clock = &Clock::system();
  if (options.metrics == nullptr) options.metrics = &MetricsExporter::none();
  options.log = guarded(std::move(options.log));
  return options;
}

void check_events(std::span<const AppendEvent> events) {
  if (events.empty()) {
    throw Error(ErrorCode::invalid_argument, cannot_append, "the list of events is empty");
  }
  if (events.size() > EventStore::max_events) {
    throw Error(ErrorCode::invalid_argument, cannot_append,
                counted(events.size(), "event") + " are too many for one append, at most " +
                    std::to_string(EventStore::max_events) + " are taken");
  }
}

void require_own(const Tx& tx, const Storage& storage) {
  require_active(tx, cannot_append);
  if (tx.kind() == storage.kind()) return;
  throw Error(ErrorCode::wrong_storage, cannot_append,
              "the transaction belongs to " + std::string(to_string(tx.kind())) + ", the event store to " +
                  std::string(to_string(storage.kind())),
              "use a transaction of the store's own storage");
}

AppendResult result_of(AppendVerdict verdict) {
  if (auto* appended = std::get_if<Appended>(&verdict)) return *appended;
  if (auto* conflict = std::get_if<Conflict>(&verdict)) return std::move(*conflict);
  std::rethrow_exception(std::get<std::exception_ptr>(verdict));
}

}  // namespace

struct EventStore::Parts {
  Parts(Storage& its_storage, EventStoreOptions its_options)
      : storage(its_storage),
        options(checked(std::move(its_options))),
        store(storage.stream_store()),
        hub(std::make_shared<WakeHub>(storage.stream_grown(), storage.wake_channel(), wake_topic::stream,
                                      options.notify_interval, options.log)),
        batcher({.events = options.flush_events, .bytes = options.flush_bytes},
                [this](std::span<const AppendRequest> requests) { return flush(requests); }) {}

  std::vector<AppendVerdict> flush(std::span<const AppendRequest> requests) {
    const SteadyPoint start = options.clock->steady_now();
    std::vector<AppendVerdict> verdicts = store.append(requests);
    options.metrics->observe_stream_flush(
        requests.size(), std::chrono::duration_cast<Duration>(options.clock->steady_now() - start));
    std::size_t appended = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (std::holds_alternative<Appended>(verdicts[i])) appended += requests[i].events.size();
      if (std::holds_alternative<Conflict>(verdicts[i])) options.metrics->increment_stream_conflicts();
    }
    if (appended > 0) {
      options.metrics->increment_stream_appended(appended);
      hub->wake();
    }
    return verdicts;
  }

  Storage& storage;
  const EventStoreOptions options;
  StreamStore& store;
  const std::shared_ptr<WakeHub> hub;  // shared with transactions that are not committed yet
  AppendBatcher batcher;
};

EventStore::EventStore(Storage& storage, EventStoreOptions options)
    : parts_(std::make_unique<Parts>(storage, std::move(options))) {}

EventStore::~EventStore() {
  close();
}

Appended EventStore::append(std::span<const AppendEvent> events, const std::stop_token& cancel) {
  check_events(events);
  return std::get<Appended>(result_of(parts_->batcher.append({.events = events}, cancel)));
}

Appended EventStore::append(std::initializer_list<AppendEvent> events) {
  return append(std::span(events.begin(), events.size()));
}

AppendResult EventStore::append_if(std::span<const AppendEvent> events, const AppendCondition& condition,
                                   const std::stop_token& cancel) {
  check_events(events);
  return result_of(parts_->batcher.append({.events = events, .condition = &condition}, cancel));
}

AppendResult EventStore::append_if(std::initializer_list<AppendEvent> events,
                                   const AppendCondition& condition) {
  return append_if(std::span(events.begin(), events.size()), condition);
}

Appended EventStore::append(Tx& tx, std::span<const AppendEvent> events) {
  check_events(events);
  require_own(tx, parts_->storage);
  const auto appended = std::get<Appended>(result_of(parts_->store.append(tx, {.events = events})));
  if (!tx.adopted()) {
    static_cast<Transaction&>(tx).after_commit([hub = parts_->hub] { hub->wake(); });
  }
  return appended;
}

AppendResult EventStore::append_if(Tx& tx, std::span<const AppendEvent> events,
                                   const AppendCondition& condition) {
  check_events(events);
  require_own(tx, parts_->storage);
  AppendResult result = result_of(parts_->store.append(tx, {.events = events, .condition = &condition}));
  if (std::holds_alternative<Appended>(result) && !tx.adopted()) {
    static_cast<Transaction&>(tx).after_commit([hub = parts_->hub] { hub->wake(); });
  }
  return result;
}

Appended EventStore::append(Tx& tx, std::initializer_list<AppendEvent> events) {
  return append(tx, std::span(events.begin(), events.size()));
}

AppendResult EventStore::append_if(Tx& tx, std::initializer_list<AppendEvent> events,
                                   const AppendCondition& condition) {
  return append_if(tx, std::span(events.begin(), events.size()), condition);
}

void EventStore::refuse_projector() {
  throw Error(ErrorCode::invalid_argument, "cannot project events", "a projector has no apply",
              "give it the function that makes its state of the events");
}

EventStream EventStore::read(Query query, const ReadOptions& options) {
  return EventStream(
      std::make_unique<EventStream::State>(parts_->store, parts_->options, std::move(query), options));
}

bool EventStore::exists(const Query& query, Position after) {
  EventStream events = read(query, {.after = after, .limit = 1});
  return events.next().has_value();
}

Position EventStore::head() {
  return parts_->store.head();
}

void EventStore::wake() noexcept {
  parts_->hub->wake();
}

void EventStore::close() noexcept {
  parts_->batcher.close();
}

Storage& EventStore::storage() noexcept {
  return parts_->storage;
}

}  // namespace postrider
