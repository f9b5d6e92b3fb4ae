// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "postrider/sink.hpp"

namespace postrider::nats {

/// What a stream recognises a repeat by, within its duplicate window: the event's id, and behind it a hash of
/// where the message goes and what it says. A stream remembers ids of all its subjects together, so the bare
/// id would lose the same event of another subject or topic, and one whose payload was mended before its
/// replay. The relay's epoch is no part of it: what another leader repeats is a repeat.
[[nodiscard]] std::string message_id(const SinkMessage& message, std::string_view subject);

}  // namespace postrider::nats
