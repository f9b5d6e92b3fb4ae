// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace postrider::logger {

/// Between two threads that each store one flag and then load the other's: `light` on the side that runs
/// millions of times a second, `heavy` on the side that runs seldom. Together they order like two full
/// fences; the cost is all on the heavy side, which asks the kernel to interrupt the others (membarrier).
class AsymmetricFence {
 public:
  /// Called once before the first `light`. False when the kernel cannot do it: `light` is a full fence then.
  static bool prepare() noexcept;
  static void light() noexcept {
    if (asymmetric.load(std::memory_order_relaxed)) [[likely]] {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      full_fence.exchange(0, std::memory_order_seq_cst);
    }
  }
  static void heavy() noexcept;

 private:
  // An exchange instead of a fence: thread sanitizers understand it.
  static std::atomic<int> full_fence;
  static std::atomic<bool> asymmetric;
};

}  // namespace postrider::logger
