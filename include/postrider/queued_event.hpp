// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/clock.hpp"
#include "postrider/event.hpp"
#include "postrider/retry_policy.hpp"

namespace postrider {

/// The number of a row in the queue. Given at publication, kept in the log, never used again.
enum class QueueId : std::int64_t {};
/// A place in the event log. Numbers grow, some may be missing (purged, or of a transaction that was rolled
/// back), and one that is below a reader's position never appears later.
enum class LogSeq : std::int64_t {};
/// Fences a row: grows by one with every claim, so that whoever held it before cannot write any more.
enum class Token : std::int64_t {};

/// Where an event stands. The first two are in `event_queue`, the others in `event_log`.
enum class QueueStatus : std::int16_t {
  pending = 0,
  processing = 1,
  completed = 2,
  completed_with_errors = 3,
  failed = 4,
};
/// PENDING, PROCESSING, COMPLETED, COMPLETED_WITH_ERRORS, FAILED.
[[nodiscard]] std::string_view to_string(QueueStatus status) noexcept;

/// The right to work on one event until its lease ends; heartbeats extend it.
struct Claim {
  QueueId id{};
  Token token{};
  friend bool operator==(const Claim&, const Claim&) = default;
};

/// What became of something that was to be written about a claim.
enum class Settled : std::uint8_t {
  applied,
  /// This same claim has finalised the event before (or given it back, when asked to give it back again):
  /// nothing to do.
  repeated,
  /// Somebody else has claimed (or finalised) the event since, or this claim has given it back and may not
  /// finalise it any more; nothing was written.
  stale,
  unknown,  ///< there is no such id, neither in the queue nor in the log
  /// Somebody's open transaction has locked the event's row; nothing was written, and the claim is as good as
  /// before: try again. (EventQueue says it as Error(contention), which is retryable.)
  busy,
};

/// What a handler said about an event, as it is stored.
enum class HandlerVerdict : std::int16_t { success = 0, transient_error = 1, unrecoverable_error = 2 };
/// "success", "transient error", "unrecoverable error".
[[nodiscard]] std::string_view to_string(HandlerVerdict verdict) noexcept;

struct HandlerResult {
  std::string handler{};  ///< its id
  HandlerVerdict verdict = HandlerVerdict::success;
  Attempt failed{};     ///< how many times it failed with a transient error
  std::string error{};  ///< of the last failure
  friend bool operator==(const HandlerResult&, const HandlerResult&) = default;
};

/// An event that was claimed.
struct QueuedEvent {
  Claim claim{};
  /// Empty when the row could not be made into an event (any program may insert); then `decode_error` says
  /// why.
  std::optional<Event> event{};
  std::string decode_error{};
  int priority = 0;
  std::string ordering_key{};
  std::int32_t attempts = 0;  ///< this one included: 1 the first time
  std::int32_t crashes = 0;   ///< how many times its worker died or fell silent while it was in progress
  TimePoint created_at{};
  TimePoint processing_started_at{};
};

}  // namespace postrider
