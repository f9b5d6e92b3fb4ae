// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "outbox/dispatcher.hpp"
#include "postrider/outbox.hpp"

namespace postrider {

struct ClientOptions {
  std::string owner;
  Duration lease = std::chrono::seconds{30};
  Duration adopted_lease = std::chrono::seconds{1};
  bool order_by_aggregate = false;
  Clock* clock = nullptr;
  MetricsExporter* metrics = nullptr;
  LogCallback log;
};

/// Writes events into the user's transaction and sees to it that the dispatcher gets them after the commit.
/// Thread-safe.
class OutboxClient {
 public:
  OutboxClient(OutboxStore& store, std::shared_ptr<OutboxDispatcher> dispatcher, ClientOptions options);

  Staged publish(Tx& tx, std::span<const Event> events);

 private:
  [[nodiscard]] std::string ordering_key(const Event& event) const;
  void warn_dropped(std::size_t count);

  OutboxStore& store_;
  std::shared_ptr<OutboxDispatcher> dispatcher_;
  ClientOptions options_;

  Mutex warning_mutex_;
  SteadyPoint next_warning_ POSTRIDER_GUARDED_BY(warning_mutex_){};
  std::size_t dropped_since_ POSTRIDER_GUARDED_BY(warning_mutex_) = 0;
};

}  // namespace postrider
