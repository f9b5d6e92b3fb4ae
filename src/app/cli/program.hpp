// SPDX-License-Identifier: Apache-2.0
// The whole command line. The help, the man page, completions and docs/cli.md are made of this one tree.
#pragma once

#include <string>
#include <vector>

#include "app/cli/command.hpp"

namespace postrider::cli {

/// Which Postrider this is.
struct Build {
  std::string version{};
  std::vector<std::string> databases{};
  std::vector<std::string> sinks{};

  [[nodiscard]] std::string name() const { return "postrider " + version; }
  /// "postrider 1.0.0 (databases: sqlite, postgres; sinks: file, kafka)"
  [[nodiscard]] std::string text() const;
};

/// `app` and `chosen` must live until the command has run.
void add_all_commands(CLI::App& app, Chosen& chosen, const Build& build);

}  // namespace postrider::cli
