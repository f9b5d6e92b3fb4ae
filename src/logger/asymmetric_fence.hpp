// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace postrider::logger {

/// Between two threads that each store one flag and then load the other's: `light` on the side that runs
/// millions of times a second, `heavy` on the side that runs seldom. Together they order like two full
/// fences; the cost is all on the heavy side, which asks the kernel to interrupt the others (membarrier).
class AsymmetricFence {
 public:
  /// Called once before the first `light`. False when the kernel cannot do it: `light` is a full fence then.
  static bool prepare() noexcept;
  static void light() noexcept;
  static void heavy() noexcept;
};

}  // namespace postrider::logger
