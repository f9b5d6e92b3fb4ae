// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <iterator>
#include <set>

#include "postrider/clock.hpp"

namespace postrider {

/// Moments at which somebody who sleeps has to look: retries fall due then. Those close together share one
/// look; of too many the nearest are kept, the rest is found by whatever the sleeper does otherwise. Not
/// thread-safe.
class WakeTimes {
 public:
  static constexpr Duration grain = std::chrono::milliseconds{5};
  static constexpr std::size_t most = 4096;

  void add(SteadyPoint when) {
    // Rounded up to the grain: never too early.
    times_.insert(SteadyPoint((when.time_since_epoch() / grain + 1) * grain));
    if (times_.size() > most) times_.erase(std::prev(times_.end()));
  }
  /// The nearest; the end of time when there is none.
  [[nodiscard]] SteadyPoint next() const noexcept {
    return times_.empty() ? SteadyPoint::max() : *times_.begin();
  }
  void forget_until(SteadyPoint now) { times_.erase(times_.begin(), times_.upper_bound(now)); }

 private:
  std::set<SteadyPoint> times_;
};

}  // namespace postrider
