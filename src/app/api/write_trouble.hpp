// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "postrider/clock.hpp"
#include "postrider/error.hpp"

namespace postrider::api {

/// Whether the database takes what clients write. One that answers may still take nothing: it is read-only,
/// full, or lacks our tables. Only a write tells, so the last refusal counts for a while: whoever is sent
/// nothing more would never hear that it works again. Thread-safe.
class WriteTrouble {
 public:
  static constexpr Duration counts_for = std::chrono::seconds{10};

  explicit WriteTrouble(Clock& clock) : clock_(clock) {}

  /// A write has failed so. Locks that were not to be had, and faults of the request, say nothing of the
  /// database.
  void failed(const Error& error) noexcept {
    if (error.code() != ErrorCode::unavailable && error.code() != ErrorCode::storage_full &&
        error.code() != ErrorCode::schema) {
      return;
    }
    until_ = (clock_.steady_now() + counts_for).time_since_epoch().count();
  }
  [[nodiscard]] bool fresh() const noexcept {
    const std::int64_t until = until_;
    return until != 0 && clock_.steady_now().time_since_epoch().count() < until;
  }

 private:
  Clock& clock_;
  std::atomic<std::int64_t> until_{0};  // of the steady clock; 0: there was none
};

}  // namespace postrider::api
