// SPDX-License-Identifier: Apache-2.0
// The command line as data: what the man page, the completions and the reference are made of.
#pragma once

#include <string>
#include <vector>

#include "app/cli/command.hpp"

namespace postrider::cli {

struct OptionText {
  std::vector<std::string> names{};  ///< "-c", "--config"; none for an argument
  std::string value{};               ///< "FILE"; empty for a flag
  std::string help{};
  std::string standard{};              ///< its default, empty when there is none worth telling
  std::string environment{};           ///< the variable that it may come from
  std::vector<std::string> choices{};  ///< the words that it takes, when these are few
  bool required = false;
  bool repeated = false;
  bool common = false;  ///< one of common_options
};

struct CommandText {
  std::vector<std::string> path{};  ///< "postrider", "outbox", "list"
  std::string help{};
  std::vector<OptionText> options{};
  std::vector<OptionText> arguments{};
  std::vector<CommandText> commands{};

  [[nodiscard]] bool has_common() const;       ///< options of common_options
  [[nodiscard]] std::string name() const;      ///< "postrider outbox list"
  [[nodiscard]] std::string synopsis() const;  ///< "postrider outbox list [OPTIONS]"
};

[[nodiscard]] OptionText describe_option(const CLI::Option& option);
/// All that --help shows, and choices.
[[nodiscard]] CommandText describe(CLI::App& app);

/// Calls `use` with every command, groups before what is in them.
template <class Use>
void each_command(const CommandText& command, const Use& use) {
  use(command);
  for (const CommandText& one : command.commands) each_command(one, use);
}

[[nodiscard]] std::string man_page(const CommandText& program, const std::string& version);
[[nodiscard]] std::string reference(const CommandText& program);  ///< Markdown
[[nodiscard]] std::string bash_completion(const CommandText& program);
[[nodiscard]] std::string zsh_completion(const CommandText& program);
[[nodiscard]] std::string fish_completion(const CommandText& program);

}  // namespace postrider::cli
