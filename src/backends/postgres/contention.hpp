// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "postrider/error.hpp"

namespace postrider::postgres {

/// Runs `body`, and again when it has lost against others, up to so many times altogether. Two writers of the
/// same rows can deadlock, because their rows come in different order; the loser was rolled back whole. The
/// same holds for the first statement that a pooler sends astray.
template <class Body>
auto again_after_contention(int attempts, Body body) {
  for (int attempt = 1;; ++attempt) {
    try {
      return body();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::contention || error.in_doubt() || attempt >= attempts) throw;
    }
  }
}

}  // namespace postrider::postgres
