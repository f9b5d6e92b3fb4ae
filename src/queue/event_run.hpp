// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "postrider/metrics.hpp"
#include "queue/decide_event.hpp"
#include "queue/handler_registry.hpp"
#include "storage/queue_store.hpp"

namespace postrider {

/// What is stored about one event: results of handlers by id, tasks done as "handler#task".
using StoredStates = std::map<std::string, HandlerResult, std::less<>>;

/// Something may be stored about it: it was claimed before, and maybe given back, which takes an attempt off
/// again.
[[nodiscard]] inline bool came_back(const QueuedEvent& event) noexcept {
  return event.attempts > 1 || event.crashes > 0 || event.claim.token != Token{1};
}

/// Runs the handlers of one event and says what is to be written. Nothing when the event turned out to belong
/// to somebody else: then nothing may be written.
///
/// Results are kept in memory until the event is settled, in one transaction. Only an event that has come
/// back before gets each result stored at once, before the next handler begins: should that one take the
/// process down, those before it are not repeated with every return.
class EventRun {
 public:
  EventRun(QueueStore& store, MetricsExporter& metrics, const QueuedEvent& event, StoredStates states)
      : store_(store), metrics_(metrics), event_(event), states_(std::move(states)) {}

  [[nodiscard]] std::optional<Settlement> run(const HandlerRegistry::List& handlers, int max_attempts,
                                              double random);

 private:
  class Context;
  /// False when the claim is lost.
  [[nodiscard]] bool run_one(const Handler& handler, bool store_at_once, HandlerStanding& standing);
  [[nodiscard]] EventHandledResult call(const Handler& handler, Context& context) const;
  /// Before the next handler begins. False when the claim is lost.
  [[nodiscard]] bool store(const HandlerResult& result);

  QueueStore& store_;
  MetricsExporter& metrics_;
  const QueuedEvent& event_;
  StoredStates states_;
};

}  // namespace postrider
