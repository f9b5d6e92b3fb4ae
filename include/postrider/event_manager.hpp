// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

#include "postrider/event_handler.hpp"
#include "postrider/event_queue.hpp"
#include "postrider/retry_policy.hpp"
#include "postrider/service.hpp"

namespace postrider {

/// Everything that can be set, with its default. The constructor checks each value and names the one it
/// refuses.
struct EventManagerOptions {
  /// How many events run at the same time (1 to 1024). Handlers run on these threads, synchronously.
  std::size_t workers = 4;
  /// How many events are claimed at once at most (1 to 10,000). Slow handlers make the claims smaller by
  /// themselves, so that other nodes get their share.
  std::size_t batch_size = 500;
  /// Events of one ordering key that are claimed together (1 to 1000).
  std::size_t run_size = 50;

  /// An event is tried this many times at most, then it goes to the log with its errors (1 to 1,000,000).
  int max_attempts = 10;
  Duration retry_base_delay = std::chrono::seconds{1};
  Duration retry_max_delay = std::chrono::minutes{5};
  /// Instead of the exponential policy made of the two delays above.
  std::shared_ptr<const RetryPolicy> retry_policy{};
  /// An event that no handler here is registered for stays in the queue, free for other nodes. This node
  /// leaves its whole type alone for this time, then looks again.
  Duration unhandled_delay = std::chrono::seconds{30};

  /// Pause between two looks into an empty queue: the first, growing to the second. A publish on this node
  /// (but for MariaDB on any node) ends the pause at once.
  Duration poll_interval = std::chrono::milliseconds{100};
  Duration poll_interval_max = std::chrono::seconds{1};
  /// Whether to listen to other nodes, where the database can.
  bool listen = true;

  /// Results are written to the database when this many have come together …
  std::size_t settle_batch_size = 500;  ///< 1 to 10,000
  /// … or when the first of them has waited this long.
  Duration settle_linger = std::chrono::microseconds{200};
  /// How long `stop` waits for claimed events to be handled before it gives them back.
  Duration drain_timeout = std::chrono::seconds{10};
  /// How often states of finished events are deleted.
  Duration cleanup_interval = std::chrono::minutes{1};
};

struct HandlerOptions {
  int max_attempts = 0;                               ///< 0: the manager's
  std::shared_ptr<const RetryPolicy> retry_policy{};  ///< null: the manager's
};

/// Claims events from a queue and runs every handler that is registered for their type. Each handler's result
/// is stored; only those with a transient error are run again. When all have succeeded, or one says
/// unrecoverable, the event goes to the log. Thread-safe.
///
///     EventManager manager{queue};
///     manager.register_handler(InvoiceHandler{});
///     manager.register_handler<OrderPlaced>("mail", [](const OrderPlaced& order) { mail(order); });
///     manager.start();
class EventManager final : public Service {
 public:
  /// The queue must outlive the manager.
  explicit EventManager(EventQueue& queue, EventManagerOptions options = {});
  ~EventManager() override;
  EventManager(const EventManager&) = delete;
  EventManager& operator=(const EventManager&) = delete;

  /// A handler class: a static member `id` and `handle(const T&)` or `handle(const T&, HandlerContext&)`,
  /// which may be const, noexcept or static and may take T by value. T is a typed event (see EventCodec), or
  /// Event: then a static member `type` says which events it wants; without one it gets all.
  template <class H>
  requires requires { std::string_view(std::remove_cvref_t<H>::id); }
  EventManager& register_handler(H&& handler, const HandlerOptions& options = {}) {
    using Handler = std::remove_cvref_t<H>;
    using T = typename detail::HandledEvent<decltype(&Handler::handle)>::Type;
    auto call = detail::HandlerCall<Handler, T>{std::make_shared<Handler>(std::forward<H>(handler))};
    const std::string id{std::string_view(Handler::id)};
    if constexpr (!std::is_same_v<T, Event>) {
      return add(id, std::string(EventCodec<T>::type), detail::typed_handler<T>(call), options);
    } else if constexpr (requires { std::string_view(Handler::type); }) {
      return add(id, std::string(std::string_view(Handler::type)), call, options);
    } else {
      return add(id, std::nullopt, call, options);
    }
  }
  /// A function for a typed event. Throws Error(invalid_argument) for an id that is taken (ids are unique
  /// over all types) or out of bounds (1 to 128 characters, no '#').
  template <TypedEvent T, class F>
  EventManager& register_handler(const std::string& id, F function, const HandlerOptions& options = {}) {
    return add(id, std::string(EventCodec<T>::type), detail::typed_handler<T>(std::move(function)), options);
  }
  /// A function for all events of a type …
  template <class F>
  EventManager& register_handler(const std::string& id, const EventType& type, F function,
                                 const HandlerOptions& options = {}) {
    return add(id, type.name(), detail::raw_handler(std::move(function)), options);
  }
  /// … or for all events.
  template <class F>
  EventManager& register_handler_for_all(const std::string& id, F function,
                                         const HandlerOptions& options = {}) {
    return add(id, std::nullopt, detail::raw_handler(std::move(function)), options);
  }

  /// Checks that the tables are there, then starts fetching and handling. When it throws nothing runs.
  void start() override;
  /// Takes no new events, handles what was claimed until `drain_timeout`, gives the rest back. Running
  /// handlers are waited for, however long they take. Throws Error(invalid_argument) inside a handler.
  void stop() override;
  [[nodiscard]] bool running() const noexcept override;
  /// start(), then waits until `stop` is called or asked for through the token, then stop().
  void run_process_loop(const std::stop_token& token = {});

  /// For tests and for programs with a schedule of their own: claims, handles and settles on this thread,
  /// until there is nothing eligible or `limit` events were handled. Returns how many. Not while it is
  /// running.
  std::size_t process_available(std::size_t limit = 1'000'000);

  /// Deletes stored handler results of events that are in the log. Runs by itself every `cleanup_interval`.
  /// Returns how many.
  std::size_t cleanup_finalized_events();

  [[nodiscard]] const EventManagerOptions& options() const noexcept;

 private:
  /// Without a type: for all events.
  EventManager& add(const std::string& id, std::optional<std::string> type, HandlerFunction function,
                    const HandlerOptions& options);
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace postrider
