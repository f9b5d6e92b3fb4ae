// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "app/cli/command.hpp"
#include "app/cli/output.hpp"

namespace postrider::cli {

/// -c of those who need a whole configuration.
void add_config_option(CLI::App& command, std::string& path);
/// config check, config print
void add_config_commands(CLI::App& app, Chosen& chosen);

/// Says whether `serve` would take it: reads it, and makes all that `serve` makes, up to connecting. Throws
/// what `serve` would end with; as JSON it says that instead, and returns 1.
int check_config(const std::string& path, Format format = Format::table,
                 const char* const* environment = nullptr);

/// What is in force: file, environment and defaults, without secrets. As TOML, or as an array of JSON.
int print_config_of(const std::string& path, Format format = Format::table,
                    const char* const* environment = nullptr);

}  // namespace postrider::cli
