// SPDX-License-Identifier: Apache-2.0
#include "outbox/failure_log.hpp"

#include <exception>
#include <limits>

#include "core/utf8.hpp"
#include "core/wording.hpp"

namespace postrider {
namespace {

constexpr Duration between_repeats = std::chrono::minutes{1};
constexpr std::size_t longest_logged_reason = 500;
/// In the place of a listener: an event dies of all of them.
constexpr std::size_t no_listener = std::numeric_limits<std::size_t>::max();

}  // namespace

FailureLog::FailureLog(LogCallback log, Clock& clock) : log_(std::move(log)), clock_(clock) {}

void FailureLog::failed(std::size_t listener, const Event& event, const Delivery& delivery,
                        std::string_view reason) noexcept {
  // What the log callback throws must not become the outcome of the event.
  try {
    const std::optional<std::size_t> left_out = admit({listener, event.type()});
    if (!left_out) return;
    std::string line = "postrider: attempt " +
                       std::to_string(std::int64_t{static_cast<std::int32_t>(delivery.failed)} + 1) +
                       " at event " + event.id().str() + " of type " + event.type() +
                       " failed: " + utf8_repaired(utf8_prefix(reason, longest_logged_reason));
    if (*left_out > 0)
      line += " (and " + counted(*left_out, "more failure") + " of this type since the last warning)";
    log_(LogLevel::warning, line);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

void FailureLog::died(const Event& event, std::string_view error) noexcept {
  try {
    const std::optional<std::size_t> left_out = admit({no_listener, event.type()});
    if (!left_out) return;
    std::string line = "postrider: event " + event.id().str() + " of type " + event.type() +
                       " is dead: " + utf8_repaired(utf8_prefix(error, longest_logged_reason));
    if (*left_out > 0)
      line += " (and " + counted(*left_out, "more dead letter") + " of this type since the last error)";
    log_(LogLevel::error, line);
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

std::optional<std::size_t> FailureLog::admit(Key key) {
  const SteadyPoint now = clock_.steady_now();
  const MutexLock lock(mutex_);
  const auto found = told_.find(key);
  if (found != told_.end()) {
    Told& told = found->second;
    if (now < told.next) {
      ++told.left_out;
      return std::nullopt;
    }
    told.next = now + between_repeats;
    return std::exchange(told.left_out, 0);
  }
  if (told_.size() >= most_remembered) {
    std::erase_if(told_, [&](const auto& entry) { return entry.second.next <= now; });
    if (told_.size() >= most_remembered) return std::nullopt;
  }
  told_.emplace(std::move(key), Told{now + between_repeats});
  return 0;
}

void FailureLog::nobody_listens(std::string_view type) noexcept {
  try {
    {
      const MutexLock lock(mutex_);
      if (unheard_.contains(type) || unheard_.size() >= most_remembered) return;
      unheard_.emplace(type);
    }
    log_(LogLevel::warning,
         "postrider: no listener is registered for event type '" + utf8_repaired(type) +
             "' on this node; its events fail until they are dead. Hint: give every node that works "
             "on this table the same listeners");
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
}

}  // namespace postrider
