// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "postrider/clock.hpp"
#include "postrider/storage.hpp"

namespace postrider {

/// How long a server may really be silent: the event store waits for its lock as long as for a connection,
/// and it is the server who has to say that this took too long. Zero: for ever.
[[nodiscard]] inline Duration io_timeout_of(const StorageOptions& options) {
  if (options.io_timeout == Duration::zero()) return Duration::zero();
  return std::max<Duration>(options.io_timeout, options.acquire_timeout + std::chrono::seconds{1});
}

}  // namespace postrider
