// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace postrider::cli {

/// What is wrong with a command line, as our other errors say it: "postrider: cannot …: why. Hint: …". `app`
/// is the whole program, as far as it was parsed.
[[nodiscard]] std::string usage_text(const CLI::App& app, const CLI::ParseError& error);

/// There is no such command in `group`, whose path is "outbox", or nothing; and the nearest that there is.
[[nodiscard]] std::string unknown_command_text(const CLI::App& group, const std::string& path,
                                               const std::string& word);

}  // namespace postrider::cli
