// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "postrider/clock.hpp"
#include "storage/queue_store.hpp"

namespace postrider {

/// Lets a scan that turned out to be expensive run only a small part of the time. Does no I/O, is not
/// thread-safe.
class ScanThrottle {
 public:
  /// Below this a scan may always run.
  static constexpr Duration cheap = std::chrono::milliseconds{1};
  /// An expensive one may run again when so many times its cost have passed since it ended.
  static constexpr int rest = 20;

  [[nodiscard]] bool allowed(SteadyPoint now) const noexcept;
  void took(Duration cost, SteadyPoint now) noexcept;

  /// The least of the last three: what makes a scan expensive stays for many scans, whereas a server process
  /// that had to wait for a processor looks expensive once.
  [[nodiscard]] Duration cost() const noexcept;

 private:
  std::array<Duration, 3> costs_{};
  std::size_t next_ = 0;
  SteadyPoint last_{};
};

/// Where the next claim begins to look, for databases whose index keeps entries of deleted rows as long as
/// some old transaction may see them: walking over them must not be part of every claim. Does no I/O, is not
/// thread-safe.
///
/// Per priority level it knows the position of the last row that was claimed. A *tail scan* begins there; a
/// *full scan* begins at the beginning and is what finds rows that were committed late, given back or
/// abandoned. As long as full scans are cheap every scan is one.
class ClaimCursor {
 public:
  static constexpr std::size_t levels = static_cast<std::size_t>(max_priority) + 1;

  /// The order of rows within a level.
  struct Position {
    TimePoint available_at{};
    std::int64_t id = 0;
    friend auto operator<=>(const Position&, const Position&) = default;  // NOLINT(modernize-use-nullptr)
  };
  using Positions = std::array<std::optional<Position>, levels>;
  /// What to scan: of each level the rows behind its position, or all of them.
  struct Scan {
    bool full = true;
    Positions after{};
  };

  [[nodiscard]] Scan next(SteadyPoint now) const noexcept;
  [[nodiscard]] bool full_allowed(SteadyPoint now) const noexcept { return full_.allowed(now); }

  /// A row was claimed. A position never goes back: what a full scan finds before it lies among what tail
  /// scans are there to avoid.
  void claimed(int priority, const Position& position) noexcept;
  /// `cost`: how long a full scan walked without finding anything.
  void full_scan_took(Duration cost, SteadyPoint now) noexcept { full_.took(cost, now); }

 private:
  ScanThrottle full_;
  Positions positions_{};
};

}  // namespace postrider
