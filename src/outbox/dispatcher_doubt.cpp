// SPDX-License-Identifier: Apache-2.0
// What becomes of a commit whose outcome is unknown. See also dispatcher.cpp.
#include <array>

#include "outbox/dispatcher.hpp"

namespace postrider {
namespace {

/// When a database is likely to be back that was away in the middle of a commit.
constexpr std::array<Duration, 3> looks_after_doubt{std::chrono::milliseconds{100}, std::chrono::seconds{1},
                                                    std::chrono::seconds{3}};

}  // namespace

void OutboxDispatcher::free_doubtful(std::span<const OutboxItem> events) {
  {
    const MutexLock lock(mutex_);
    if (!accepting_) return;
    ++entrants_;
  }
  for (const OutboxItem& event : events) {
    Completion release{LeaseRef{event.id(), event.token}, Completion::Kind::release, event.failed, {}, {}};
    if (!completer_.try_submit({std::move(release), {}})) break;
  }
  const SteadyPoint now = options_.clock->steady_now();
  for (const Duration wait : looks_after_doubt) request_poll(now + wait);
  leave();
}

}  // namespace postrider
