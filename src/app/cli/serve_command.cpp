// SPDX-License-Identifier: Apache-2.0
#include "app/cli/serve_command.hpp"

#include <boost/json.hpp>
#include <iostream>
#include <optional>
#include <utility>

#include "app/api/access.hpp"
#include "app/api/json_values.hpp"
#include "app/cli/command.hpp"
#include "app/cli/config_commands.hpp"
#include "app/cli/run_daemon.hpp"
#include "app/config/daemon_config.hpp"
#include "core/age.hpp"
#include "postrider/error.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

std::string token_file_of(const TokenOptions& options) {
  if (!options.file.empty()) return options.file;
  if (!options.config.empty()) {
    std::string file = config::read_daemon_config(options.config).config.server.token_file;
    if (!file.empty()) return file;
  }
  throw Error(ErrorCode::invalid_argument, "cannot tell which file of tokens is meant",
              options.config.empty() ? "neither --file nor -c was given"
                                     : options.config + " has no server.token-file",
              "add --file, or -c with a configuration that has server.token-file");
}

void add_token_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<TokenOptions>();
  CLI::App& create = *add_group(app, "token", "Tokens of the management API")
                          .add_subcommand("create", "Make a token, show it once, and note its hash");
  create.add_option("--file", options->file, "Instead of server.token-file of the configuration")
      ->type_name("FILE");
  create.add_option("--name", options->name, "Who it is for; the audit says it")->required();
  create.add_option("--role", options->role, "viewer, operator or admin")->capture_default_str();
  create.add_option("--expires-in", options->expires_in, "90d; without it, never")->type_name("AGE");
  add_admin_options(create, *options);
  say_it_changes(create, chosen, options);
  when_chosen(create, chosen, options, run_token_create);
}

}  // namespace

void add_serve_commands(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App& command = *app.add_subcommand("serve", "Run what a configuration switches on, until SIGTERM");
  add_config_option(command, options->config);
  when_chosen(command, chosen, options, run_serve);
  add_config_commands(app, chosen);
  add_token_command(app, chosen);
}

int run_serve(const ServeOptions& options) {
  const auto read = [&options] { return config::read_daemon_config(options.config); };
  config::ReadConfig first = read();
  return run_daemon(std::move(first.config), {.read_again = read, .effective = std::move(first.effective)});
}

int run_token_create(const TokenOptions& options) {
  const std::string file = token_file_of(options);
  const std::optional<api::Role> role = api::role_of(options.role);
  if (!role) {
    throw Error(ErrorCode::invalid_argument, "--role '" + options.role + "' is refused",
                "there is no such role", "there are viewer, operator and admin");
  }
  api::TokenRecord record{.name = options.name, .role = *role};
  if (!options.expires_in.empty()) {
    record.expires = Clock::system().now() + parse_age("--expires-in", options.expires_in);
  }
  const std::string token = api::make_token();
  record.sha256 = api::hash_of(token);
  api::add_token(file, record);
  if (options.format == Format::json) {
    std::cout << json::serialize(json::object{{"token", token},
                                              {"name", record.name},
                                              {"role", to_string(record.role)},
                                              {"expiresAt", api::time_or_null(record.expires)}})
              << std::endl;
  } else {
    std::cout << token << std::endl;
  }
  std::cerr << "postrider: this is the token of '" << options.name
            << "'; it is shown once, and kept nowhere\n";
  return 0;
}

}  // namespace postrider::cli
