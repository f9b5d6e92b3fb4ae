// SPDX-License-Identifier: Apache-2.0
// postrider migrate
#include <boost/json.hpp>
#include <filesystem>
#include <iostream>
#include <limits>

#include "app/cli/admin_options.hpp"
#include "app/cli/scratch_folder.hpp"
#include "app/cli/terminal.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"
#include "postrider/open.hpp"

namespace postrider::cli {
namespace {

namespace json = boost::json;

struct MigrateCommandOptions : AdminOptions {
  std::optional<int> target{};
  bool dry_run = false;
  bool yes = false;
};

/// What would be done with a file that is not there: found out on one that is removed again.
MigrationReport plan_for_new_file(const Database& database, const MigrateOptions& migrate) {
  const ScratchFolder folder;
  return open("sqlite:" + folder.file("plan.db"), database.options)->migrate(migrate);
}

MigrationReport plan(const Database& database, MigrateOptions migrate) {
  migrate.dry_run = true;
  const std::optional<std::string> file = sqlite_file(database.url);
  if (file && !std::filesystem::exists(*file)) return plan_for_new_file(database, migrate);
  return open(database.url, database.options)->migrate(migrate);
}

bool goes_down(const MigrationReport& report) {
  return !report.steps.empty() && !report.steps.front().up;
}

/// Tables are dropped with all that is in them, so somebody must have meant it.
bool refuse_to_go_down(const MigrationReport& planned, const MigrateCommandOptions& options) {
  if (!goes_down(planned) || options.yes) return false;
  const std::string what = "going down from version " + std::to_string(planned.from) + " to " +
                           std::to_string(planned.to) + " removes tables with all that is in them";
  if (can_ask()) return !ask(what + ". Do it?");
  throw Error(ErrorCode::invalid_argument, "cannot migrate", what,
              "add --yes if that is meant; --dry-run shows the statements");
}

void print_report(const MigrationReport& report, const Database& database,
                  const MigrateCommandOptions& options, const std::string& name) {
  if (options.format == Format::json) {
    json::array steps;
    for (const MigrationStep& step : report.steps) {
      json::object one{{"version", step.version}, {"name", step.name}, {"up", step.up}};
      if (options.dry_run) one["sql"] = step.sql;
      steps.push_back(std::move(one));
    }
    std::cout << json::serialize(json::object{{"storage", name},
                                              {"schema", database.options.schema.str()},
                                              {"from", report.from},
                                              {"to", report.to},
                                              {"dryRun", options.dry_run},
                                              {"steps", std::move(steps)}})
              << '\n';
    return;
  }
  if (options.dry_run) {
    for (const MigrationStep& step : report.steps) {
      std::cout << "-- " << step.version << ' ' << step.name << (step.up ? "" : " (undone)") << '\n'
                << step.sql << (step.sql.ends_with('\n') ? "" : "\n");
    }
  }
  const std::string versions = std::to_string(report.from) + " → " + std::to_string(report.to);
  std::cout << (options.dry_run ? "-- " : "postrider: ") << name << ": ";
  if (report.steps.empty()) {
    std::cout << "version " << report.to << ", nothing to do\n";
  } else {
    std::cout << (options.dry_run ? "would go from version " : "version ") << versions << ", "
              << counted(report.steps.size(), "step") << '\n';
  }
}

int run_migrate(const MigrateCommandOptions& options, Change& change) {
  Database database = resolve(options);
  MigrateOptions migrate{.target = options.target};
  const MigrationReport planned = plan(database, migrate);
  const std::string name =
      sqlite_file(database.url) ? database.url : open(database.url, database.options)->name();
  if (options.dry_run) {
    print_report(planned, database, options, name);
    return 0;
  }
  if (refuse_to_go_down(planned, options)) {
    std::cerr << "postrider: nothing was done\n";
    return 1;
  }
  database.storage = open(database.url, database.options);
  change.begin();
  const MigrationReport report = database.storage->migrate(migrate);
  if (report.steps.empty()) change.done(0);  // the audit is not told of nothing
  print_report(report, database, options, database.storage->name());
  return 0;
}

}  // namespace

void add_migrate_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<MigrateCommandOptions>();
  CLI::App& command =
      *app.add_subcommand("migrate", "Make the tables, or bring them to this program's version");
  add_admin_options(command, *options);
  command.add_option("--to", options->target, "This version instead of the newest; 0 removes all tables")
      ->type_name("VERSION")
      ->check(between(0, std::numeric_limits<int>::max()));
  command.add_flag("--dry-run", options->dry_run, "Show the statements, and run none");
  command.add_flag("--yes", options->yes, "Do not ask before tables are removed");
  say_it_changes(command, chosen, options);
  when_chosen(command, chosen, options, [&change = chosen.change](const MigrateCommandOptions& given) {
    return run_migrate(given, change);
  });
}

}  // namespace postrider::cli
