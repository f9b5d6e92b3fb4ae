// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>

#include "postrider/clock.hpp"

namespace postrider {

/// What a loop tells a watchdog: by when it will be heard of again. Sleeping until some time is fine, and so
/// is waiting for a database or for somebody else's code, however long; a loop that hangs in its own code is
/// not. Written by the loop, or under its mutex; read by anybody, without a lock, because a lock may be what
/// it hangs in.
class SignOfLife {
 public:
  /// Sleeps until then, at most.
  void expect_by(SteadyPoint when) noexcept {
    due_.store(when.time_since_epoch().count(), std::memory_order_relaxed);
  }
  /// Does something of its own, which takes no time to speak of.
  void busy(SteadyPoint now) noexcept { expect_by(now); }
  /// Waits for the database or for code that is not ours; or does not run at all.
  void elsewhere() noexcept { expect_by(SteadyPoint::max()); }

  /// For how long it should have been heard of.
  [[nodiscard]] Duration overdue(SteadyPoint now) const noexcept {
    const SteadyPoint due{SteadyPoint::duration{due_.load(std::memory_order_relaxed)}};
    return due >= now ? Duration::zero() : std::chrono::duration_cast<Duration>(now - due);
  }

 private:
  std::atomic<SteadyPoint::rep> due_{SteadyPoint::max().time_since_epoch().count()};
};

}  // namespace postrider
