// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "postrider/queued_event.hpp"

namespace postrider {

/// What `event_log.results` holds: a JSON array of {"handler", "result", "failed", "error"}; errors are cut
/// like `stored_error`. Empty text for no results.
[[nodiscard]] std::string encode_results(std::span<const HandlerResult> results);

/// The reverse. Entries that are none (any program may write) are left out; never throws for what the text
/// is.
[[nodiscard]] std::vector<HandlerResult> decode_results(std::string_view text);

}  // namespace postrider
