// SPDX-License-Identifier: Apache-2.0
// The program `postrider`. Exit codes: 0 all went well, 1 it failed, 2 the command line was wrong.
#include <CLI/CLI.hpp>
#include <array>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "app/cli/eventlog_command.hpp"
#include "core/nearest.hpp"
#include "core/what_of.hpp"

namespace {

std::string version_text() {
  std::string text = "postrider " POSTRIDER_VERSION " (sqlite";
#if defined(POSTRIDER_WITH_POSTGRES)
  text += ", postgres";
#endif
#if defined(POSTRIDER_WITH_MARIADB)
  text += ", mariadb";
#endif
  return text + ")";
}

void add_storage(CLI::App& command, std::string& storage, std::string& schema) {
  command.add_option("--storage", storage, "sqlite:events.db, postgresql://..., mariadb://...")
      ->type_name("URL");
  command.add_option("--schema", schema, "Schema (PostgreSQL) or table prefix of the tables")
      ->type_name("NAME")
      ->capture_default_str();
}

void add_purge(CLI::App& eventlog, postrider::cli::PurgeOptions& options) {
  CLI::App* command = eventlog.add_subcommand("purge", "Remove old events, in small transactions");
  add_storage(*command, options.storage, options.schema);
  command->get_option("--storage")->required();
  command->add_option("--older-than", options.older_than, "Age by their timestamps: 90d, 12h, 2w")
      ->type_name("AGE")
      ->required();
  command->add_flag("--dry-run", options.dry_run, "Only count them");
}

CLI::App* add_eventlog(CLI::App& app, postrider::cli::EventlogOptions& options) {
  CLI::App* command = app.add_subcommand("eventlog", "Serve the Event Log API (see docs/eventlog-api.md)");
  command->add_option("--listen", options.listen, "Address and port; loopback only")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  add_storage(*command, options.storage, options.schema);
  command->add_option("--max-connections", options.max_connections, "Connections at a time")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command->add_option("--max-batch", options.max_batch, "Events in one batch")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command->add_option("--drain-timeout", options.drain_seconds, "Seconds for open requests after SIGTERM")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  command->add_flag("--relaxed-sync", options.relaxed_sync,
                    "SQLite: faster, but a power cut may lose the last events");
  command->add_option("--retention", options.retention, "Remove events as they get older than this: 90d")
      ->type_name("AGE");
  return command;
}

void say_unknown(const std::string& command) {
  constexpr std::array<std::string_view, 2> commands{"eventlog", "version"};
  const std::string_view nearest = postrider::nearest_of(command, commands);
  std::cerr << "postrider: there is no command '" << command << "'. Hint: "
            << (nearest.empty() ? std::string("postrider --help lists them")
                                : "did you mean " + std::string(nearest) + "?")
            << '\n';
}

int run(int argc, char** argv) {
  CLI::App app{"Postrider: durable events, on the database you already have", "postrider"};
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text());
  postrider::cli::EventlogOptions eventlog;
  postrider::cli::PurgeOptions purge;
  CLI::App* const serve = add_eventlog(app, eventlog);
  add_purge(*serve, purge);
  app.add_subcommand("version", "Say the version and the databases of this build");
  try {
    app.parse(argc, argv);
    // Not `required`, which would hold for `purge` as well.
    if (serve->parsed() && serve->get_subcommands().empty() && eventlog.storage.empty()) {
      throw CLI::RequiredError("--storage");
    }
  } catch (const CLI::RequiredError& error) {
    const std::vector<std::string> rest = app.remaining();
    if (!app.get_subcommands().empty() || rest.empty()) return app.exit(error) == 0 ? 0 : 2;
    say_unknown(rest.front());
    return 2;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (app.got_subcommand("version")) {
    std::cout << version_text() << '\n';
    return 0;
  }
  if (serve->got_subcommand("purge")) return postrider::cli::run_purge(purge);
  return postrider::cli::run_eventlog(eventlog);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << postrider::what_of(error) << '\n';
    return 1;
  }
}
