// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace postrider::logger {

/// How many times this process is a child that fork() made. What was made before has no threads here, and its
/// mapped rings are the parent's.
class ForkCount {
 public:
  [[nodiscard]] static std::uint32_t now() noexcept { return count.load(std::memory_order_relaxed); }
  /// From here on children are counted.
  static void watch() noexcept;

 private:
  static std::atomic<std::uint32_t> count;
};

}  // namespace postrider::logger
