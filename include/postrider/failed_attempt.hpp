// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/clock.hpp"

namespace postrider {

/// What came of an attempt that did not simply succeed.
enum class AttemptOutcome : std::int16_t {
  retry = 0,                  ///< it failed, another one was to follow
  dead = 1,                   ///< outbox: the event was given up
  failed = 2,                 ///< queue: the event went to the log as FAILED
  completed_with_errors = 3,  ///< queue: it went there as COMPLETED_WITH_ERRORS
  crashed = 4,                ///< queue: the worker died or fell silent, its lease ended
};

/// RETRY, DEAD, FAILED, COMPLETED_WITH_ERRORS, CRASHED.
[[nodiscard]] std::string_view to_string(AttemptOutcome outcome) noexcept;

/// A line in the history of one event. Of each event the newest `max_kept_attempts` are kept. An attempt that
/// succeeded has none: the event itself says when it was done.
struct FailedAttempt {
  /// Which one it was, counted from 1; a replay begins again at 1.
  std::int32_t attempt = 0;
  std::optional<TimePoint> started_at{};  ///< of the queue's; the outbox does not write starts
  TimePoint at{};                         ///< when its end was written, on the database's clock
  std::string node{};                     ///< who made it; empty when that is not known
  AttemptOutcome outcome = AttemptOutcome::retry;
  std::string error{};  ///< its first thousand characters
};

inline constexpr int max_kept_attempts = 50;

}  // namespace postrider
