// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/clock.hpp"

namespace postrider {

/// An event on its way out.
struct OutgoingEvent {
  /// The members of its JSON object, without the braces: `"applicationId":"…",…,"idempotencyKey":"…"`.
  std::string_view members;
  /// The receiver knows repeats by it.
  std::string_view key;
};

/// What became of a request, or of one event of a batch.
enum class SendVerdict {
  delivered,
  rejected,   ///< for good: the same event will never be taken
  too_large,  ///< the request as a whole; fewer events at once may do
  transient,  ///< try again later: no connection, timeout, overload, an error of the receiver
  throttled,  ///< like transient, but the receiver is well and has asked for a pause
};

struct SendItem {
  SendVerdict verdict = SendVerdict::delivered;
  int status = 0;  ///< as HTTP has them; 0 when there was no answer
  std::string reason{};
};

struct SendResult {
  SendVerdict verdict = SendVerdict::delivered;
  int status = 0;
  std::string reason{};  ///< for people
  /// The receiver's wish. Nothing is sent meanwhile; when all was delivered, it means nothing.
  std::optional<Duration> retry_after{};
  std::vector<SendItem>
      items{};  ///< one for each event, when the receiver tells; counts instead of `verdict`
};

/// Where the logger delivers to. Called by several sender threads and the replay at the same time. What it
/// throws counts as transient.
class EventLogClient {
 public:
  virtual ~EventLogClient() = default;
  /// One event or a batch, in order. Takes no longer than its own timeouts.
  [[nodiscard]] virtual SendResult send(std::span<const OutgoingEvent> events) = 0;
  /// Ends requests that are under way, soon: they are answered with `transient`. Later ones are sent as ever.
  /// From any thread.
  virtual void cancel() noexcept {}
};

}  // namespace postrider
