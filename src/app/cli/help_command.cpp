// SPDX-License-Identifier: Apache-2.0
// postrider help
#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "app/cli/command.hpp"
#include "app/cli/exit_codes.hpp"
#include "app/cli/usage_error.hpp"

namespace postrider::cli {
namespace {

int print_help(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* at = &app;
  std::string path;
  for (const std::string& word : words) {
    const std::vector<const CLI::App*> all = at->get_subcommands([](const CLI::App*) { return true; });
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const CLI::App* one) { return one->get_name() == word; });
    if (found == all.end()) {
      std::cerr << unknown_command_text(*at, path, word) << '\n';
      return exit_usage;
    }
    at = *found;
    path += (path.empty() ? "" : " ") + word;
  }
  const std::string name = app.get_name() + (path.empty() ? "" : " " + path);
  // Not at->help(), which is that of the command that was chosen below it: of this one.
  std::cout << at->get_formatter()->make_help(at, name, CLI::AppFormatMode::Normal);
  return exit_ok;
}

}  // namespace

void add_help_command(CLI::App& app, Chosen& chosen) {
  auto words = std::make_shared<std::vector<std::string>>();
  std::vector<std::string> names;
  for (const CLI::App* const one : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!one->get_group().empty()) names.push_back(one->get_name());
  }
  CLI::App& command = *app.add_subcommand("help", "What --help says of a command");
  command.add_option("command", *words, "Which: outbox list; without it, all")
      ->type_name("COMMAND")
      ->check(offers(names));
  when_chosen(command, chosen, words,
              [&app](const std::vector<std::string>& given) { return print_help(app, given); });
}

}  // namespace postrider::cli
