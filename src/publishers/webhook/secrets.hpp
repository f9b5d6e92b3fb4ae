// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "postrider/webhook_sink.hpp"

namespace postrider {

/// What no message may show of a webhook, the longest first: the values of its headers, and its address, as a
/// whole and in parts, as it is written and as it is meant (a key may be anywhere in it, and a receiver may
/// repeat what it has taken apart). Parts of fewer than six characters are nobody's key, and would take words
/// out of messages.
[[nodiscard]] std::vector<std::string> webhook_secrets(const WebhookSinkOptions& options);

}  // namespace postrider
