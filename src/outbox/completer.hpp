// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/batch_writer.hpp"
#include "postrider/log.hpp"
#include "postrider/metrics.hpp"
#include "storage/outbox_store.hpp"

namespace postrider {

struct CompleterOptions {
  std::size_t batch_size = 512;
  Duration linger = std::chrono::milliseconds{2};
  std::size_t queue_capacity = 4096;
  /// After `stop`, how long a database that is away is waited for.
  Duration stop_timeout = std::chrono::seconds{10};
  Clock* clock = nullptr;
  MetricsExporter* metrics = nullptr;
  LogCallback log;
};

/// A result on its way to the database.
struct FinishedEvent {
  Completion completion{};
  std::string ordering_key{};

  [[nodiscard]] std::string name() const { return completion.lease.id.str(); }
};

/// Writes the outbox's results in batches, see BatchWriter.
class Completer {
 public:
  /// Called on the completer's thread after a batch is in the database, or was given up.
  using OnFlushed = std::function<void(std::span<const FinishedEvent>)>;

  Completer(OutboxStore& store, const CompleterOptions& options, OnFlushed on_flushed);

  void start() { writer_.start(); }
  void give_up_at(SteadyPoint when) { writer_.give_up_at(when); }
  void stop() { writer_.stop(); }

  void submit(FinishedEvent result) { writer_.submit(std::move(result)); }
  [[nodiscard]] bool try_submit(FinishedEvent result) { return writer_.try_submit(std::move(result)); }
  void write_again(FinishedEvent result) { writer_.write_again(std::move(result)); }
  /// Writes one batch on the calling thread, of which there may be several; for inline dispatch. Throws what
  /// the store throws.
  void write_now(std::span<const FinishedEvent> batch);

 private:
  struct Written {
    std::size_t events = 0;
    std::size_t stale = 0;
    Duration took{};

    Written& operator+=(const Written& more) noexcept {
      events += more.events;
      stale += more.stale;
      took += more.took;
      return *this;
    }
  };
  [[nodiscard]] Written write(std::span<const FinishedEvent> batch);
  void report(const Written& written);

  OutboxStore& store_;
  Clock& clock_;
  MetricsExporter& metrics_;
  Written unreported_;  // the writer's thread only
  BatchWriter<FinishedEvent> writer_;
};

}  // namespace postrider
