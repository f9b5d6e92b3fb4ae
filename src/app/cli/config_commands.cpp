// SPDX-License-Identifier: Apache-2.0
// postrider config check, postrider config print
#include "app/cli/config_commands.hpp"

#include <array>
#include <boost/json.hpp>
#include <iostream>
#include <map>

#include "app/cli/admin_options.hpp"
#include "app/cli/scratch_folder.hpp"
#include "app/config/daemon_config.hpp"
#include "app/daemon/refusals.hpp"
#include "core/utf8.hpp"
#include "core/without_prefix.hpp"
#include "postrider/error.hpp"
#include "postrider/open.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

struct ConfigOptions {
  std::string path{};
  Format format = Format::table;
};

std::string_view origin_text(config::Effective::Origin origin) {
  switch (origin) {
    case config::Effective::Origin::standard:
      return "default";
    case config::Effective::Origin::file:
      return "file";
    case config::Effective::Origin::environment:
      return "environment";
  }
  return {};
}

/// The values are texts, numbers, flags and lists as JSON writes them, too.
json::array as_json(const std::vector<config::Effective>& effective) {
  json::array all;
  for (const config::Effective& one : effective) {
    all.push_back({{"table", one.table},
                   {"name", one.name},
                   {"value", json::parse(utf8_repaired(one.value))},
                   {"origin", origin_text(one.origin)}});
  }
  return all;
}

/// Throws what serve would; returns what serve would warn of at its start.
std::vector<std::string> try_config(const std::string& path, const char* const* environment) {
  config::DaemonConfig config = config::read_daemon_config(path, environment).config;
  std::optional<ScratchFolder> scratch;
  if (daemon::would_make_file(config.storage.url)) {  // which is for serve to do
    config.storage.url = "sqlite:" + scratch.emplace().file("check.db");
  }
  std::vector<std::string> warnings;
  (void)daemon::make_daemon(config, [&](LogLevel level, std::string_view line) {
    if (level >= LogLevel::warning) warnings.emplace_back(line);
  });
  return warnings;
}

/// One, or one per line behind the first.
json::array errors_of(const Error& error) {
  std::string_view text = without_prefix(error.what());
  json::array all;
  std::size_t line = text.find("\n  ");
  if (line == std::string_view::npos) all.emplace_back(utf8_repaired(text));
  while (line != std::string_view::npos) {
    text.remove_prefix(line + 3);
    line = text.find("\n  ");
    all.emplace_back(utf8_repaired(text.substr(0, line)));
  }
  return all;
}

CLI::App& add_config_command(CLI::App& group, const char* name, const char* help, ConfigOptions& options) {
  CLI::App& command = *group.add_subcommand(name, help);
  add_config_option(command, options.path);
  return command;
}

}  // namespace

void add_config_option(CLI::App& command, std::string& path) {
  command.add_option("-c,--config", path, "The configuration, a TOML file (see docs/daemon.md)")
      ->type_name("FILE")
      ->envname("POSTRIDER_CONFIG")
      ->required();
}

void add_config_commands(CLI::App& app, Chosen& chosen) {
  CLI::App& group = add_group(app, "config", "Look at a configuration");
  auto checked = std::make_shared<ConfigOptions>();
  CLI::App& check = add_config_command(group, "check", "Say whether serve would take it", *checked);
  add_output_option(check, checked->format);
  when_chosen(check, chosen, checked,
              [](const ConfigOptions& options) { return check_config(options.path, options.format); });
  auto printed = std::make_shared<ConfigOptions>();
  CLI::App& print = add_config_command(group, "print", "Say what is in force, without secrets", *printed);
  print.add_option("-o,--output", printed->format, "toml or json")
      ->type_name("FORMAT")
      ->transform(one_of<Format>({{"toml", Format::table}, {"json", Format::json}}));
  when_chosen(print, chosen, printed,
              [](const ConfigOptions& options) { return print_config_of(options.path, options.format); });
}

int check_config(const std::string& path, Format format, const char* const* environment) {
  if (format == Format::json) {
    json::array errors;
    json::array warnings;
    try {
      for (const std::string& one : try_config(path, environment)) {
        warnings.emplace_back(utf8_repaired(without_prefix(one)));
      }
    } catch (const Error& error) {
      errors = errors_of(error);
    }
    const bool good = errors.empty();
    std::cout << json::serialize(json::object{{"file", path},
                                              {"ok", good},
                                              {"errors", std::move(errors)},
                                              {"warnings", std::move(warnings)}})
              << std::endl;
    return good ? 0 : 1;
  }
  for (const std::string& one : try_config(path, environment)) log_to_stderr()(LogLevel::warning, one);
  std::cout << "postrider: " << path << " is fine" << std::endl;
  return 0;
}

int print_config_of(const std::string& path, Format format, const char* const* environment) {
  config::ReadConfig read = config::read_daemon_config(path, environment);
  for (config::Effective& one : read.effective) {
    // One with references shows these; what stands around them may be a password.
    if (one.table != "storage" || one.name != "url" || one.value != "\"***\"") continue;
    const std::string& url = read.config.storage.url;
    try {
      // Only a password in it is secret, and drivers know where that stands. They connect when they are first
      // used; that of SQLite, whose URLs have none, would make the file.
      one.value = config::toml_text(
          url.starts_with("sqlite:") ? url : open(url, read.config.storage.options)->name());
    } catch (const Error&) {
      // No driver understands it: then it stays hidden.
    }
  }
  if (format == Format::json) {
    std::cout << json::serialize(as_json(read.effective)) << '\n';
  } else {
    std::cout << config::print_config(read.effective);
  }
  return 0;
}

}  // namespace postrider::cli
