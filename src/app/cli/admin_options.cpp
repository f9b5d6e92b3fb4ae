// SPDX-License-Identifier: Apache-2.0
#include "app/cli/admin_options.hpp"

#include <filesystem>
#include <map>

#include "app/config/daemon_config.hpp"
#include "postrider/error.hpp"
#include "postrider/open.hpp"
#include "storage/sqlite_file.hpp"

namespace postrider::cli {

void require_database(const Database& database) {
  const std::optional<std::string> path = sqlite_file(database.url);
  if (!path || std::filesystem::exists(*path)) return;
  const bool relative = std::filesystem::path(*path).is_relative();
  std::error_code unknown;
  const std::string here = std::filesystem::current_path(unknown).string();
  throw Error(ErrorCode::unavailable, "cannot open " + database.url,
              "there is no such file" + (relative && !here.empty() ? " in " + here : std::string()),
              database.how_to_make());
}

bool is_absent(const Database& database) {
  const std::optional<std::string> path = sqlite_file(database.url);
  std::error_code unknown;
  return path && !std::filesystem::exists(*path, unknown) && !unknown;
}

std::string Database::how_to_make() const {
  std::string makes_it = "postrider migrate " + named + " makes it";
  const std::optional<std::string> path = sqlite_file(url);
  if (!from_config || !path) return makes_it;
  // Whoever makes it owns it; and where a relative path begins depends on who reads it.
  return std::filesystem::path(*path).is_relative()
             ? "a relative path begins in the current folder: go to that of serve, or write the whole "
               "path; " +
                   makes_it
             : "serve makes it when it starts, or, as the user that serve runs as: postrider migrate " +
                   named;
}

CLI::Option& add_output_option(CLI::App& command, Format& format) {
  return *command.add_option("-o,--output", format, "table or json")
              ->type_name("FORMAT")
              ->transform(one_of<Format>({{"table", Format::table}, {"json", Format::json}}));
}

void add_admin_options(CLI::App& command, AdminOptions& options) {
  command.add_option("--storage", options.storage, "sqlite:events.db, postgresql://..., mariadb://...")
      ->type_name("URL")
      ->envname("POSTRIDER_STORAGE_URL")
      ->group(common_options);
  command.add_option("--schema", options.schema, "Schema (PostgreSQL) or table prefix of the tables")
      ->type_name("NAME")
      ->envname("POSTRIDER_STORAGE_SCHEMA")
      ->group(common_options)
      ->capture_default_str();
  command.add_option("-c,--config", options.config, "Take the database from this configuration")
      ->type_name("FILE")
      ->envname("POSTRIDER_CONFIG")
      ->group(common_options);
  add_output_option(command, options.format).group(common_options);
}

std::optional<std::string> sqlite_file(std::string_view url) {
  return url.starts_with("sqlite:") ? std::optional(sqlite_file_of(url)) : std::nullopt;
}

std::string Database::table(std::string_view name) const {
  const bool has_schemas = storage->kind() == BackendKind::postgres;
  return options.schema.str() + (has_schemas ? "." : "_") + std::string(name);
}

Database resolve(const AdminOptions& options) {
  Database database{.url = options.storage};
  if (!database.url.empty()) {
    database.options.schema = Identifier(options.schema);
    database.named = "--storage " + options.storage +
                     (options.schema == "postrider" ? std::string() : " --schema " + options.schema);
  } else if (!options.config.empty()) {
    config::DaemonConfig config = config::read_config_of("storage", options.config);
    database.url = config.storage.url;
    database.options = config.storage.options;
    database.named = "-c " + options.config;
    database.from_config = true;
  } else {
    throw Error(ErrorCode::invalid_argument, "cannot tell which database is meant",
                "neither --storage nor -c was given",
                "add --storage sqlite:shop.db, or -c postrider.toml; or set POSTRIDER_STORAGE_URL");
  }
  database.options.log = log_to_stderr(LogLevel::warning);
  return database;
}

Database open_database(const AdminOptions& options, bool may_create) {
  Database database = resolve(options);
  if (!may_create) require_database(database);
  database.storage = open(database.url, database.options);
  return database;
}

std::unique_ptr<Storage> open_for(const AdminOptions& options, bool may_create) {
  return open_database(options, may_create).storage;
}

}  // namespace postrider::cli
