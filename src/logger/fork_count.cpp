// SPDX-License-Identifier: Apache-2.0
#include "logger/fork_count.hpp"

#include <pthread.h>

namespace postrider::logger {

std::atomic<std::uint32_t> ForkCount::count{0};

void ForkCount::watch() noexcept {
  static const int watched =
      ::pthread_atfork(nullptr, nullptr, [] { count.fetch_add(1, std::memory_order_relaxed); });
  (void)watched;
}

}  // namespace postrider::logger
