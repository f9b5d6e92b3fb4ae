// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "postrider/log.hpp"

namespace postrider {

/// "postrider error: it broke\n". Line breaks inside a message (they may come from a database or a listener)
/// become spaces, so that nobody can forge a line.
[[nodiscard]] std::string log_line(LogLevel level, std::string_view message);

}  // namespace postrider
