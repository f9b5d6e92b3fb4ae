// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace postrider::redis {

/// What an error reply means for the sink.
struct Refusal {
  bool of_the_event = false;  ///< else: of the server or of a setting, and no event's fault
  bool reconnect = false;     ///< perhaps to another server behind the same name
  std::string reason{};
};

/// `error` is the text of an error reply: "OOM command not allowed when …".
[[nodiscard]] Refusal refusal_of(std::string_view error);
/// Of the answer to AUTH, which may repeat what was sent: nothing of the text but its first word is told.
[[nodiscard]] Refusal login_refusal_of(std::string_view error);

}  // namespace postrider::redis
