// SPDX-License-Identifier: Apache-2.0
// The whole command line. The help, the man page, completions and docs/cli.md are made of this one tree.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/command.hpp"

namespace postrider::cli {

/// Which Postrider this is.
struct Build {
  std::string version{};
  std::vector<std::string> databases{};

  [[nodiscard]] std::string text() const;  ///< "postrider 1.0.0 (sqlite, postgres)"
};

/// `app` and `chosen` must live until the command has run.
void add_all_commands(CLI::App& app, Chosen& chosen, const Build& build);
/// What is said when no command is given where one is needed, or one that there is not. Nothing when that is
/// not what is wrong.
[[nodiscard]] std::optional<std::string> missing_command(const CLI::App& app);

}  // namespace postrider::cli
