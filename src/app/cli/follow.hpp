// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <iostream>

#include "app/cli/interrupts.hpp"
#include "app/cli/terminal.hpp"
#include "core/what_of.hpp"
#include "postrider/error.hpp"

namespace postrider::cli {

enum class Found { nothing, some, enough };

/// Calls `look` until it has found enough, a signal ends the command or the reader has left:
/// all of them good ends. Looks again at once after a find and after a nudge; otherwise less and less often,
/// up to once a second. A database that is away is told once, and waited for.
template <class Look>
int follow(const Interrupts& interrupts, const Look& look) {
  using namespace std::chrono_literals;
  constexpr std::chrono::milliseconds shortest = 50ms;
  constexpr std::chrono::milliseconds longest = 1000ms;
  std::chrono::milliseconds pause = shortest;
  bool told = false;
  for (;;) {
    Found found = Found::nothing;
    try {
      found = look();
      told = false;
    } catch (const Error& error) {
      if (!error.retryable() && !error.connection_lost() && error.code() != ErrorCode::unavailable) throw;
      if (!told) std::cerr << what_of(error) << "; waiting for it\n";
      told = true;
    }
    std::cout.flush();
    if (found == Found::enough || reader_has_left()) return 0;
    pause = found == Found::some ? shortest : std::min(pause * 2, longest);
    if (interrupts.wait_for(found == Found::some ? 0ms : pause)) return 0;
  }
}

}  // namespace postrider::cli
