// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postrider/error.hpp"
#include "postrider/transaction.hpp"

namespace postrider {

/// Runs `work`, which does all that it does in one transaction of its own, and again when that was chosen as
/// the victim of a deadlock or has waited too long for a lock; five times at most. On SQLite once: there is
/// one writer, and it has been waited for already.
template <class Work>
auto retried_on_contention(BackendKind kind, Work work) {
  constexpr int most_attempts = 5;
  for (int attempt = 1;; ++attempt) {
    try {
      return work();
    } catch (const Error& error) {
      if (kind == BackendKind::sqlite || error.code() != ErrorCode::contention || error.in_doubt()) throw;
      if (attempt == most_attempts) throw;
    }
  }
}

}  // namespace postrider
