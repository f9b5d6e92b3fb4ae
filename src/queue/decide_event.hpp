// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "postrider/queued_event.hpp"
#include "storage/queue_store.hpp"

namespace postrider {

/// Where one handler of an event stands after a pass.
struct HandlerStanding {
  HandlerResult result{};
  std::optional<Duration> asked_delay{};  ///< by the handler itself
  int max_attempts = 1;
  const RetryPolicy* policy = nullptr;
};

/// True when the handler has nothing more to do: it succeeded, gave up, or failed too often.
[[nodiscard]] bool is_final(const HandlerResult& result, int max_attempts) noexcept;

/// What is to be written about an event after all its handlers have had their turn. Pure.
///
/// Unrecoverable for one means finished for all, with errors. Otherwise transient errors bring the event
/// back, after the longest of the delays that its handlers ask for, until the event or each failing handler
/// has had its last attempt.
[[nodiscard]] Settlement decide_event(const QueuedEvent& event, std::span<const HandlerStanding> handlers,
                                      int max_attempts, double random);

}  // namespace postrider
