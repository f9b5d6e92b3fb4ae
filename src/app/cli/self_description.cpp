// SPDX-License-Identifier: Apache-2.0
// postrider completion, postrider man
#include <iostream>

#include "app/cli/command_tree.hpp"

namespace postrider::cli {

void add_self_description(CLI::App& app, Chosen& chosen, const std::string& version) {
  CLI::App& completion = add_group(app, "completion", "Completions for a shell, to be sourced or installed");
  const auto add = [&](CLI::App& parent, const char* name, const char* help, auto make) {
    CLI::App& command = *parent.add_subcommand(name, help);
    command.callback([&app, &chosen, make] {
      chosen.run = [&app, make] {
        std::cout << make(describe(app));
        return 0;
      };
    });
    return &command;
  };
  add(completion, "bash", "source <(postrider completion bash)", bash_completion);
  add(completion, "zsh", "source <(postrider completion zsh)", zsh_completion);
  add(completion, "fish", "postrider completion fish | source", fish_completion);
  // For packages and for docs/cli.md; no business of users.
  add(app, "man", "The manual page, as roff", [version](const CommandText& program) {
    return man_page(program, version);
  })->group("");
  add(app, "reference", "The reference of docs/cli.md", reference)->group("");
}

}  // namespace postrider::cli
