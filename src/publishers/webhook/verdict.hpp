// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "postrider/clock.hpp"

namespace postrider {

/// What came of one request.
struct WebhookVerdict {
  enum class Kind : std::uint8_t {
    taken,
    refused,      ///< this event; another one may be taken
    unclear,      ///< this one failed; another one may be taken, or not
    unavailable,  ///< nothing at present
    gone,         ///< nothing for ever
  };
  Kind kind = Kind::taken;
  std::string why{};
  Duration retry_after{};
};

/// Of an answer. `retry_after` is the header's text, seconds or a date; `body` the beginning of the body.
[[nodiscard]] WebhookVerdict judge_webhook(int status, std::string_view retry_after, std::string_view body,
                                           TimePoint now);

}  // namespace postrider
