// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "app/api/entry_writer.hpp"
#include "app/http/router.hpp"
#include "postrider/clock.hpp"
#include "postrider/log.hpp"
#include "postrider/storage.hpp"

namespace postrider::api {

struct EventLogApiOptions {
  std::size_t max_batch = 1000;
  std::size_t event_bytes = 256U << 10U;
  std::size_t batch_bytes = 8U << 20U;
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
  /// `storage` has been migrated, and outlives the API.
  EventLogApi(Storage& storage, EventLogApiOptions options);

  /// /v1/events, /livez, /readyz. The API must live as long as the router is in use.
  void add_routes(http::Router& router);
  /// /readyz says no from now on; everything else goes on.
  void drain() noexcept { draining_ = true; }
  /// Writes what has come in, answers it, and refuses the rest.
  void stop() { writer_.stop(); }

 private:
  void post_one(const http::Request& request, const http::Reply& reply);
  void post_batch(const http::Request& request, const http::Reply& reply);
  [[nodiscard]] http::Response find(const http::Request& request);
  [[nodiscard]] http::Response get(const http::Request& request);
  [[nodiscard]] http::Response ready();
  /// `run`, with failures of the database as answers.
  template <class Run>
  [[nodiscard]] http::Response answered(const Run& run);

  Storage& storage_;
  const EventLogApiOptions options_;
  Clock& clock_;
  std::atomic<bool> draining_{false};
  EntryWriter writer_;
};

}  // namespace postrider::api
