// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <tuple>
#include <utility>
#include <vector>

#include "postrider/append_event.hpp"
#include "postrider/append_result.hpp"
#include "postrider/log.hpp"
#include "postrider/metrics.hpp"
#include "postrider/storage.hpp"
#include "postrider/stream_query.hpp"

namespace postrider {

/// Everything that can be set, with its default. The constructor checks each value and names the one it
/// refuses.
struct EventStoreOptions {
  /// Appends of several threads share a transaction up to these bounds; a larger one has its own.
  std::size_t flush_events = 2'000;
  std::size_t flush_bytes = 8U << 20U;
  /// Tells other nodes about new events where that is possible (not on MariaDB): at once after a pause, and
  /// at most once per this interval. Zero: not at all; they find them by polling.
  Duration notify_interval = std::chrono::milliseconds{10};
  /// Must outlive the store; both are shared, not owned.
  Clock* clock = nullptr;              ///< default: Clock::system()
  MetricsExporter* metrics = nullptr;  ///< default: counts nothing
  LogCallback log = log_to_stderr();
};

/// Which part of the store to read, and from which end. Give at most one of `from` and `after`.
struct ReadOptions {
  std::optional<Position> from{};   ///< begins with this position, included
  std::optional<Position> after{};  ///< begins behind this position (backwards: below it), not included
  std::optional<Position> until{};  ///< ends with this position, included
  std::optional<std::size_t> limit{};
  bool backwards = false;
  /// How many events are held in memory at most (1 to 10,000), besides the bound of about 4 MiB.
  std::size_t page_size = 500;
};

/// Events as they are read, page by page, all of one snapshot: what is appended meanwhile is not in it. Used
/// by one thread at a time; needs no connection between two pages. The store must outlive it.
class EventStream {
 public:
  /// Nothing at the end. Throws what a broken connection throws; may be called again then.
  [[nodiscard]] std::optional<StoredEvent> next();
  /// The last position of the store in this snapshot; 0 when it is empty. Whoever has read all, has seen all
  /// that matches up to here: it is what `AppendCondition::after` wants.
  [[nodiscard]] Position head() const noexcept;

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = StoredEvent;
    using difference_type = std::ptrdiff_t;
    using pointer = const StoredEvent*;
    using reference = const StoredEvent&;
    Iterator() = default;
    explicit Iterator(EventStream& stream) : stream_(&stream), event_(stream.next()) {}
    reference operator*() const { return *event_; }
    pointer operator->() const { return &*event_; }
    Iterator& operator++() {
      event_ = stream_->next();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& one, std::default_sentinel_t /*end*/) noexcept {
      return !one.event_.has_value();
    }

   private:
    EventStream* stream_ = nullptr;
    std::optional<StoredEvent> event_;
  };
  [[nodiscard]] Iterator begin() { return Iterator(*this); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

  EventStream(EventStream&&) noexcept;
  EventStream& operator=(EventStream&&) noexcept;
  ~EventStream();

 private:
  friend class EventStore;
  struct State;
  explicit EventStream(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// Makes a state of events: from `initial`, `apply` is called for each event that matches `query`.
template <class State>
struct Projector {
  Query query = Query::all();
  State initial{};
  std::function<void(State&, const StoredEvent&)> apply{};
};

/// States, and up to where they know the store.
template <class... States>
struct Projected {
  std::tuple<States...> states;
  Position cursor{};  ///< for AppendCondition::after
  Query query = Query::all();

  /// Of the first projector; there is mostly one.
  [[nodiscard]] const auto& state() const noexcept { return std::get<0>(states); }
  /// Nothing that was read here has changed.
  [[nodiscard]] AppendCondition condition() const { return {.query = query, .after = cursor}; }
};

/// Events with tags, in one order, with dynamic consistency boundaries: an append can say which events must
/// not have come meanwhile. Thread-safe.
///
/// Concurrent appends share transactions; each has its own verdict. An append that returned is durable, and
/// its events are seen by every read that begins afterwards.
class EventStore {
 public:
  static constexpr std::size_t max_events = 10'000;  ///< of one append

  explicit EventStore(Storage& storage, EventStoreOptions options = {});
  /// As `close`.
  ~EventStore();
  EventStore(const EventStore&) = delete;
  EventStore& operator=(const EventStore&) = delete;

  /// Appends all or nothing. Throws Error(invalid_argument) for an empty list or too many, what the database
  /// refuses, or Error::in_doubt() when nobody knows whether it has happened. When `cancel` is asked to stop
  /// before the append has begun, nothing is written and Error(closed) is thrown.
  Appended append(std::span<const AppendEvent> events, const std::stop_token& cancel = {});
  Appended append(std::initializer_list<AppendEvent> events);
  /// The same, unless an event that matches the condition is there.
  [[nodiscard]] AppendResult append_if(std::span<const AppendEvent> events, const AppendCondition& condition,
                                       const std::stop_token& cancel = {});
  [[nodiscard]] AppendResult append_if(std::initializer_list<AppendEvent> events,
                                       const AppendCondition& condition);

  /// Inside your transaction, atomically with your tables. All other appends to the store wait until it ends:
  /// append last, and commit soon. On PostgreSQL it must be at READ COMMITTED. After a conflict the
  /// transaction is as it was. A transaction that is not ours wakes nobody when it is committed: call
  /// `wake()`.
  Appended append(Tx& tx, std::span<const AppendEvent> events);
  Appended append(Tx& tx, std::initializer_list<AppendEvent> events);
  [[nodiscard]] AppendResult append_if(Tx& tx, std::span<const AppendEvent> events,
                                       const AppendCondition& condition);
  [[nodiscard]] AppendResult append_if(Tx& tx, std::initializer_list<AppendEvent> events,
                                       const AppendCondition& condition);

  [[nodiscard]] EventStream read(Query query = Query::all(), const ReadOptions& options = {});
  /// Reads what matches the query, in order, and gives each event to the projectors whose own query it
  /// matches, too. Throws Error(invalid_argument) for a projector without `apply`.
  template <class... States>
  [[nodiscard]] Projected<States...> project(const Query& query, const Projector<States>&... projectors) {
    if (!(static_cast<bool>(projectors.apply) && ...)) refuse_projector();
    Projected<States...> result{.states = {projectors.initial...}, .query = query};
    EventStream events = read(result.query);
    result.cursor = events.head();
    while (const std::optional<StoredEvent> event = events.next()) {
      std::apply(
          [&](States&... states) {
            (
                [&] {
                  if (projectors.query.matches(*event)) projectors.apply(states, *event);
                }(),
                ...);
          },
          result.states);
    }
    return result;
  }
  /// The same with the query that they have together.
  template <class First, class... States>
  [[nodiscard]] Projected<First, States...> project(const Projector<First>& first,
                                                    const Projector<States>&... others) {
    return project((first.query | ... | others.query), first, others...);
  }
  /// Whether an event matches, behind `after`.
  [[nodiscard]] bool exists(const Query& query, Position after = Position{0});
  /// The last position; 0 when the store is empty.
  [[nodiscard]] Position head();

  /// Somebody appended: tells whoever waits for events, here and on other nodes.
  void wake() noexcept;
  /// Appends that have begun are finished; those that wait, and later ones, get Error(closed). Reading goes
  /// on.
  void close() noexcept;

  [[nodiscard]] Storage& storage() noexcept;

 private:
  [[noreturn]] static void refuse_projector();
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace postrider
