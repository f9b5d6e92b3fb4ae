// SPDX-License-Identifier: Apache-2.0
#include "logger/asymmetric_fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace postrider::logger {
namespace {

bool register_membarrier() noexcept {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

}  // namespace

std::atomic<int> AsymmetricFence::full_fence{0};
std::atomic<bool> AsymmetricFence::asymmetric{false};

bool AsymmetricFence::prepare() noexcept {
  static const bool registered = register_membarrier();
  asymmetric.store(registered, std::memory_order_relaxed);
  return registered;
}

void AsymmetricFence::heavy() noexcept {
  full_fence.exchange(0, std::memory_order_seq_cst);
  if (asymmetric.load(std::memory_order_relaxed)) {
    ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  }
}

}  // namespace postrider::logger
