// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace postrider {

enum class LogLevel { debug, info, warning, error };

/// Where the library tells what an operator should know. Called from any thread, possibly at the same time;
/// must not throw. The default writes warnings and errors to stderr, one line each.
using LogCallback = std::function<void(LogLevel level, std::string_view message)>;

[[nodiscard]] LogCallback log_to_stderr(LogLevel least = LogLevel::warning);
[[nodiscard]] std::string_view to_string(LogLevel level) noexcept;

}  // namespace postrider
