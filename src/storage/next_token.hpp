// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "postrider/queued_event.hpp"

namespace postrider {

/// The largest token that the tables take. After it they begin at 1 again: a row that may be inserted may be
/// claimed, else it would stop every claim for ever. The SQL for it is `token % 1000000000000000000 + 1`.
inline constexpr std::int64_t last_token = 1'000'000'000'000'000'000;

/// What a claim, a replay or a requeue makes of a token.
[[nodiscard]] constexpr Token next_token(std::int64_t token) noexcept {
  return Token{token % last_token + 1};
}

}  // namespace postrider
