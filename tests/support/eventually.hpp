// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <thread>

namespace postrider::test {

/// Asks again and again until it is true; false when that takes longer than `limit`. For what another process
/// or a server does, which is no matter of a clock that a test could hold.
template <class Condition>
[[nodiscard]] bool eventually(const Condition& condition,
                              std::chrono::seconds limit = std::chrono::seconds{30}) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace postrider::test
