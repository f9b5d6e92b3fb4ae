// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "app/http/router.hpp"

namespace postrider::http {

/// Answers with the same body again and again; a client that has it already (If-None-Match) is told so in
/// 304. Neither waits nor computes: its lane may be `direct`.
[[nodiscard]] Handler static_body(std::string body, std::string content_type);

}  // namespace postrider::http
