// SPDX-License-Identifier: Apache-2.0
// postrider token …
#include <boost/json.hpp>
#include <iostream>
#include <optional>
#include <string>

#include "app/api/json_values.hpp"
#include "app/api/token_file.hpp"
#include "app/cli/admin_options.hpp"
#include "app/config/daemon_config.hpp"
#include "core/age.hpp"
#include "postrider/error.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

/// A running daemon knows the tokens that were in its file when it last read it.
constexpr std::string_view how_to_tell_a_daemon =
    "when its tokens are read again: systemctl reload postrider, or kill -HUP";

/// The database is the one whose audit is told.
struct TokenOptions : AdminOptions {
  std::string file{};  ///< empty: that of the configuration
  std::string name{};
  std::string role = "viewer";
  std::string expires_in{};  ///< "90d"; empty: never
};

std::string token_file_of(const TokenOptions& options) {
  if (!options.file.empty()) return options.file;
  if (!options.config.empty()) {
    std::string file = config::read_config_of("server", options.config).server.token_file;
    if (!file.empty()) return file;
  }
  throw Error(ErrorCode::invalid_argument, "cannot tell which file of tokens is meant",
              options.config.empty() ? "neither --file nor -c was given"
                                     : options.config + " has no server.token-file",
              "add --file, or -c with a configuration that has server.token-file");
}

json::object token_json(const api::TokenRecord& record) {
  return {{"name", record.name},
          {"role", to_string(record.role)},
          {"expiresAt", api::time_or_null(record.expires)}};
}

int create(const TokenOptions& options) {
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
    json::object whole{{"token", token}};
    for (auto& [name, value] : token_json(record)) whole[name] = std::move(value);
    std::cout << json::serialize(whole) << std::endl;
  } else {
    std::cout << token << std::endl;
  }
  std::cerr << "postrider: this is the token of '" << options.name
            << "'; it is shown once, and kept nowhere. A running daemon takes it " << how_to_tell_a_daemon
            << '\n';
  return 0;
}

int revoke(const TokenOptions& options) {
  const std::string file = token_file_of(options);
  const api::TokenRecord removed = api::remove_token(file, options.name);
  if (options.format == Format::json) {
    std::cout << json::serialize(token_json(removed)) << std::endl;
  } else {
    std::cout << "postrider: the token of '" << removed.name << "' (" << to_string(removed.role)
              << ") is no longer in " << file << std::endl;
  }
  std::cerr << "postrider: a running daemon refuses it " << how_to_tell_a_daemon << '\n';
  return 0;
}

int list(const TokenOptions& options) {
  Table table({{"name", "NAME"}, {"role", "ROLE"}, {"expiresAt", "EXPIRES"}, {"expired", "EXPIRED"}});
  const TimePoint now = Clock::system().now();
  for (const api::TokenRecord& record : api::read_tokens(token_file_of(options))) {
    json::object row = token_json(record);
    row["expired"] = record.expires && *record.expires <= now;
    table.add(std::move(row));
  }
  table.print(std::cout, options.format, "There are no tokens: nobody may do anything.", colour_wanted());
  return 0;
}

CLI::App& add_command(CLI::App& group, const char* name, const char* help, TokenOptions& options) {
  CLI::App& command = *group.add_subcommand(name, help);
  command.add_option("--file", options.file, "Instead of server.token-file of the configuration")
      ->type_name("FILE");
  return command;
}

/// The file is changed with or without a database; only the audit needs one.
void add_change(CLI::App& command, Chosen& chosen, const std::shared_ptr<TokenOptions>& options,
                int (*run)(const TokenOptions&)) {
  add_admin_options(command, *options);
  chosen.changes[&command] = {
      .open = [options] { return open_for(*options); },
      .named = [options] { return !options->storage.empty() || !options->config.empty(); },
      .absent =
          [options] {
            const Database database = resolve(*options);
            // Whoever writes a URL means one that is there.
            return database.from_config && is_absent(database);
          }};
  when_chosen(command, chosen, options, [run, &change = chosen.change](const TokenOptions& given) {
    change.begin();
    return run(given);
  });
}

}  // namespace

void add_token_commands(CLI::App& app, Chosen& chosen) {
  CLI::App& group = add_group(app, "token", "Tokens of the management API");
  {
    auto options = std::make_shared<TokenOptions>();
    CLI::App& command =
        add_command(group, "create", "Make a token, show it once, and note its hash", *options);
    command.add_option("--name", options->name, "Who it is for; the audit says it")->required();
    command.add_option("--role", options->role, "viewer, operator or admin")
        ->check(offers({"viewer", "operator", "admin"}))
        ->capture_default_str();
    command.add_option("--expires-in", options->expires_in, "90d; without it, never")->type_name("AGE");
    add_change(command, chosen, options, create);
  }
  {
    auto options = std::make_shared<TokenOptions>();
    CLI::App& command = add_command(group, "list", "Whose tokens there are, and until when", *options);
    command.add_option("-c,--config", options->config, "Take the file from this configuration")
        ->type_name("FILE")
        ->envname("POSTRIDER_CONFIG");
    add_output_option(command, options->format);
    when_chosen(command, chosen, options, list);
  }
  auto options = std::make_shared<TokenOptions>();
  CLI::App& command = add_command(group, "revoke", "End a token: take its hash out of the file", *options);
  command.add_option("--name", options->name, "Whose it is; see token list")->required();
  add_change(command, chosen, options, revoke);
}

}  // namespace postrider::cli
