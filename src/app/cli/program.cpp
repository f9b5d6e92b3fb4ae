// SPDX-License-Identifier: Apache-2.0
#include "app/cli/program.hpp"

#include <boost/json.hpp>
#include <iostream>

#include "app/cli/admin_options.hpp"
#include "app/cli/exit_codes.hpp"

namespace postrider::cli {

namespace {

struct VersionOptions {
  Format format = Format::table;
};

void add_version_command(CLI::App& app, Chosen& chosen, const Build& build) {
  auto options = std::make_shared<VersionOptions>();
  CLI::App& command =
      *app.add_subcommand("version", "Say the version, the databases and the sinks of this build");
  add_output_option(command, options->format);
  when_chosen(command, chosen, options, [build](const VersionOptions& given) {
    if (given.format == Format::json) {
      boost::json::array databases(build.databases.begin(), build.databases.end());
      boost::json::array sinks(build.sinks.begin(), build.sinks.end());
      std::cout << boost::json::serialize(boost::json::object{{"version", build.version},
                                                              {"databases", std::move(databases)},
                                                              {"sinks", std::move(sinks)}})
                << '\n';
    } else {
      std::cout << build.text() << '\n';
    }
    return exit_ok;
  });
}

/// What --help calls a value is what the manual calls it.
void name_values(CLI::App& app) {
  for (CLI::Option* const option : app.get_options([](const CLI::Option*) { return true; })) {
    for (const char* const type : {"INT", "UINT", "FLOAT"}) {
      if (option->get_type_name() == type) option->type_name("NUMBER");
    }
  }
  for (CLI::App* const one : app.get_subcommands([](const CLI::App*) { return true; })) name_values(*one);
}

}  // namespace

std::string Build::text() const {
  return name() + " (databases: " + CLI::detail::join(databases, ", ") +
         "; sinks: " + CLI::detail::join(sinks, ", ") + ")";
}

void add_all_commands(CLI::App& app, Chosen& chosen, const Build& build) {
  app.require_subcommand(1);
  app.set_version_flag("--version", build.text());
  add_demo_command(app, chosen);
  add_dev_command(app, chosen);
  add_serve_commands(app, chosen);
  add_eventlog_command(app, chosen);
  add_migrate_command(app, chosen);
  add_publish_command(app, chosen);
  add_status_command(app, chosen);
  add_tail_command(app, chosen);
  add_outbox_commands(app, chosen);
  add_queue_commands(app, chosen);
  add_relay_commands(app, chosen);
  add_store_commands(app, chosen);
  add_spill_command(app, chosen);
  add_doctor_command(app, chosen);
  add_verify_command(app, chosen);
  add_check_command(app, chosen);
  add_bench_command(app, chosen);
  add_explain_command(app, chosen);
  add_self_description(app, chosen, build.name());
  add_version_command(app, chosen, build);
  add_help_command(app, chosen);
  name_values(app);
  app.footer(exit_codes_text());  // at the end: commands take over what is there when they are added
}

}  // namespace postrider::cli
