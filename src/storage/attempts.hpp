// SPDX-License-Identifier: Apache-2.0
// The tables of attempts that failed, outbox_attempt and event_attempt. Written by the stores, read here.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "postrider/failed_attempt.hpp"
#include "postrider/queued_event.hpp"
#include "storage/sql_query.hpp"

namespace postrider {

/// What a line keeps of a message. Shorter than `last_error`: there may be many.
inline constexpr std::size_t max_attempt_error_chars = 1000;

/// Whether lines of this claim may be too many. Every line of an event has a token of its own, and tokens
/// count from 1: as long as they are low there is nothing to remove.
[[nodiscard]] constexpr bool may_exceed_kept(Token token) noexcept {
  return static_cast<std::int64_t>(token) > max_kept_attempts;
}

/// The history of one event of the queue, in the queue or in the log, oldest first.
[[nodiscard]] std::vector<FailedAttempt> queue_attempts(const SqlDialect& dialect, QueueId id);
/// The history of one outbox event, oldest first.
[[nodiscard]] std::vector<FailedAttempt> outbox_attempts(const SqlDialect& dialect,
                                                         std::string_view event_id);

}  // namespace postrider
