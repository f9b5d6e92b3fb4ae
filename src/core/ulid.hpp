// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "postrider/clock.hpp"
#include "postrider/detail/sync.hpp"
#include "postrider/event_id.hpp"

namespace postrider {

/// Makes monotonic ULIDs: 48 bits of milliseconds, 80 random bits that count upwards within the same
/// millisecond. When the clock stands still or goes backwards, the last time is kept and the count goes on;
/// when the count overflows, the time is moved on by one. Thread-safe.
class UlidGenerator {
 public:
  /// `random` gives 64 random bits per call; it is called under a lock.
  explicit UlidGenerator(Clock& clock, std::function<std::uint64_t()> random);

  [[nodiscard]] EventId next();

 private:
  Clock& clock_;
  std::function<std::uint64_t()> random_;
  Mutex mutex_;
  std::uint64_t last_ms_ POSTRIDER_GUARDED_BY(mutex_) = 0;
  std::uint64_t high_ POSTRIDER_GUARDED_BY(mutex_) = 0;  // upper 16 bits of the random part
  std::uint64_t low_ POSTRIDER_GUARDED_BY(mutex_) = 0;   // lower 64 bits
};

}  // namespace postrider
