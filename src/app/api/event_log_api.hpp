// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "app/api/access.hpp"
#include "app/api/entry_writer.hpp"
#include "app/http/router.hpp"
#include "core/entry_limits.hpp"
#include "postrider/clock.hpp"
#include "postrider/log.hpp"
#include "postrider/storage.hpp"

namespace postrider::api {

/// Of one event. What a logger takes for valid comes in, if need be alone.
inline constexpr std::size_t default_event_bytes = 1U << 20U;
static_assert(default_event_bytes >= largest_entry_json);

struct EventLogApiOptions {
  std::size_t max_batch = 1000;
  /// Who may read (viewer) and write (operator); null: everybody.
  const Access* access = nullptr;
  std::size_t event_bytes = default_event_bytes;
  std::size_t batch_bytes = 8U << 20U;
  /// Everything is refused for the moment before `start`.
  bool starts_later = false;
  EntryWriterOptions writer{};
  Clock* clock = nullptr;
  LogCallback log = log_to_stderr();
};

/// The Event Log API: what an AsyncEventLogger talks to. See docs/eventlog-api.md. Thread-safe.
///
/// An answer that says "created" is sent after the commit: whatever happens to this process then, the entry
/// is there.
class EventLogApi {
 public:
  /// `storage` outlives the API, and has been migrated when that starts.
  EventLogApi(Storage& storage, EventLogApiOptions options);

  /// /v1/events. The API must live as long as the router is in use.
  void add_routes(http::Router& router);
  /// With `starts_later`: the storage is migrated, everything is served from now on.
  void start() noexcept { started_ = true; }
  /// Writes what has come in, answers it, and refuses the rest.
  void stop() { writer_.stop(); }
  /// Events that were taken and are not stored yet.
  [[nodiscard]] std::size_t unfinished() const noexcept { return writer_.unfinished(); }
  /// Whoever sends an event now is probably told to send it again.
  [[nodiscard]] bool failing() const noexcept { return writer_.failing(); }

 private:
  void post_one(const http::Request& request, const http::Reply& reply);
  void post_batch(const http::Request& request, const http::Reply& reply);
  [[nodiscard]] http::Response find(const http::Request& request);
  [[nodiscard]] http::Response get(const http::Request& request);
  /// `run`, with failures of the database as answers.
  template <class Run>
  [[nodiscard]] http::Response answered(const Run& run);

  Storage& storage_;
  const EventLogApiOptions options_;
  Clock& clock_;
  std::atomic<bool> started_;
  EntryWriter writer_;
};

}  // namespace postrider::api
