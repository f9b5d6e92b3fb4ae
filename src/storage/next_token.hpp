// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "postrider/queued_event.hpp"

namespace postrider {

/// The largest token that the tables take. After it they begin at 1 again: a row that may be inserted may be
/// claimed, else it would stop every claim for ever. The SQL for it is `token % 1000000000000000000 + 1`.
inline constexpr std::int64_t last_token = 1'000'000'000'000'000'000;

/// What a claim, a requeue, a cancellation or an edit makes of a token.
[[nodiscard]] constexpr Token next_token(std::int64_t token) noexcept {
  return Token{token % last_token + 1};
}

/// An outbox row's tokens count up within a life. A dead letter that is replayed begins another one, so that
/// whoever still runs it sees that it is not just a claim of what he has (a lease that ran out, a requeue).
inline constexpr std::int64_t tokens_per_life = 1'000'000'000;

[[nodiscard]] constexpr std::int64_t life_of(Token token) noexcept {
  return static_cast<std::int64_t>(token) / tokens_per_life;
}

/// What a replay makes of a token. The SQL for it is `token_of_next_life`.
[[nodiscard]] constexpr Token next_life(Token token) noexcept {
  return next_token((life_of(token) + 1) * tokens_per_life % last_token);
}
inline constexpr std::string_view token_of_next_life =
    "(token - token % 1000000000 + 1000000000) % 1000000000000000000 + 1";

}  // namespace postrider
