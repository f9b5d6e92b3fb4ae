// SPDX-License-Identifier: Apache-2.0
// What `postrider bench` measures. Everything goes through the public API, as an application would do it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "postrider/clock.hpp"
#include "postrider/storage.hpp"

namespace postrider::cli {

/// How long one measurement goes on: whichever comes first.
struct BenchLimits {
  Duration time = std::chrono::seconds{5};
  std::int64_t events = 0;  ///< 0: as many as fit into the time
  std::size_t threads = 4;  ///< that publish, each one event after the other
  /// Asked now and then by the thread that measures, with what is done; false ends the measurement.
  std::function<bool(std::int64_t events)> go_on = [](std::int64_t) { return true; };
};

struct BenchResult {
  std::string name{};
  std::int64_t events = 0;
  double seconds = 0;
  double p50_ms = 0;
  double p99_ms = 0;

  [[nodiscard]] double per_second() const { return seconds > 0 ? static_cast<double>(events) / seconds : 0; }
};

/// One event per transaction into the outbox. Latency: from before the transaction to the listener.
[[nodiscard]] BenchResult measure_outbox(Storage& storage, const BenchLimits& limits);
/// One event per transaction into the queue. Latency: from before the transaction to the handler.
[[nodiscard]] BenchResult measure_queue(Storage& storage, const BenchLimits& limits);
/// One event per append to the event store, unconditionally. Latency: of the call.
[[nodiscard]] BenchResult measure_store(Storage& storage, const BenchLimits& limits);

}  // namespace postrider::cli
