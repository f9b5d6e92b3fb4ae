// SPDX-License-Identifier: Apache-2.0
#include "app/cli/program.hpp"

#include <boost/json.hpp>
#include <iostream>

#include "app/cli/admin_options.hpp"
#include "app/cli/exit_codes.hpp"
#include "core/nearest.hpp"

namespace postrider::cli {

namespace {

struct VersionOptions {
  Format format = Format::table;
};

void add_version_command(CLI::App& app, Chosen& chosen, const Build& build) {
  auto options = std::make_shared<VersionOptions>();
  CLI::App& command = *app.add_subcommand("version", "Say the version and the databases of this build");
  add_output_option(command, options->format);
  when_chosen(command, chosen, options, [build](const VersionOptions& given) {
    if (given.format == Format::json) {
      boost::json::array databases(build.databases.begin(), build.databases.end());
      std::cout << boost::json::serialize(
                       boost::json::object{{"version", build.version}, {"databases", std::move(databases)}})
                << '\n';
    } else {
      std::cout << build.text() << '\n';
    }
    return exit_ok;
  });
}

}  // namespace

std::string Build::text() const {
  std::string all;
  for (const std::string& one : databases) all += (all.empty() ? "" : ", ") + one;
  return "postrider " + version + " (" + all + ")";
}

std::optional<std::string> missing_command(const CLI::App& app) {
  const CLI::App* at = &app;
  std::string path;  // "outbox "
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    path += at->get_name() + " ";
  }
  std::vector<std::string> names;
  for (const CLI::App* const one : at->get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(one->get_name());
  }
  if (names.empty() || at->get_require_subcommand_min() == 0) return std::nullopt;
  std::string all;
  for (const std::string& one : names) all += (all.empty() ? "" : ", ") + one;
  all = (names.size() == 1 ? "there is " : "there are ") + all;
  const std::vector<std::string> rest = app.remaining(true);
  if (rest.empty()) {
    return "postrider: " + (path.empty() ? "it" : "postrider " + path.substr(0, path.size() - 1)) +
           " needs a command. Hint: " + all;
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  const std::string_view nearest = nearest_of(rest.front(), views);
  return "postrider: there is no command '" + path + rest.front() +
         "'. Hint: " + (nearest.empty() ? all : "did you mean " + path + std::string(nearest) + "?");
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
  add_self_description(app, chosen, build.text());
  add_version_command(app, chosen, build);
  app.footer(exit_codes_text());  // at the end: commands take over what is there when they are added
}

}  // namespace postrider::cli
