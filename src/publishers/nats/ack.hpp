// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace postrider::nats {

/// A stream's answer to a message.
struct Ack {
  bool stored = false;        ///< now, or before: a repeat is as good
  bool of_the_event = false;  ///< when not stored: it will never be
  std::string reason{};
};

/// Reads the JSON that JetStream answers with. `stream` is the one that was meant.
[[nodiscard]] Ack parse_ack(std::string_view json, std::string_view stream);
/// What one of JetStream's error codes means.
[[nodiscard]] Ack refusal_of(int code, std::string_view description);

}  // namespace postrider::nats
