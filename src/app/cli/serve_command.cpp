// SPDX-License-Identifier: Apache-2.0
#include "app/cli/serve_command.hpp"

#include <utility>

#include "app/cli/command.hpp"
#include "app/cli/config_commands.hpp"
#include "app/cli/run_daemon.hpp"
#include "app/config/daemon_config.hpp"

namespace postrider::cli {
void add_serve_commands(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App& command = *app.add_subcommand("serve", "Run what a configuration switches on, until SIGTERM");
  add_config_option(command, options->config);
  when_chosen(command, chosen, options, run_serve);
  add_config_commands(app, chosen);
  add_token_commands(app, chosen);
}

int run_serve(const ServeOptions& options) {
  const auto read = [&options] { return config::read_daemon_config(options.config); };
  config::ReadConfig first = read();
  return run_daemon(first.config, {.read_again = read, .effective = std::move(first.effective)});
}

}  // namespace postrider::cli
