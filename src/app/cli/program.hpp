// SPDX-License-Identifier: Apache-2.0
// The whole command line. The help, the man page, completions and docs/cli.md are made of this one tree.
#pragma once

#include <string>

#include "app/cli/command.hpp"

namespace postrider::cli {

/// `app` and `chosen` must live until the command has run.
void add_all_commands(CLI::App& app, Chosen& chosen, const std::string& version);

}  // namespace postrider::cli
