// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "postrider/event_log_client.hpp"

namespace postrider::logger {

/// What an answer of the Event Log API means. `retry_after` is the header's text, seconds or a date.
[[nodiscard]] SendResult judge_answer(int status, std::string_view body, std::string_view retry_after,
                                      std::size_t events, TimePoint now);

/// Of an OAuth server's answer.
struct Token {
  std::string text;
  Duration lifetime{};
};
[[nodiscard]] std::optional<Token> parse_token(std::string_view body);

}  // namespace postrider::logger
