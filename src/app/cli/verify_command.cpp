// SPDX-License-Identifier: Apache-2.0
// postrider verify
#include <boost/json.hpp>
#include <iostream>

#include "app/cli/terminal.hpp"
#include "app/cli/verify_checks.hpp"
#include "core/what_of.hpp"
#include "core/wording.hpp"
#include "postrider/error.hpp"
#include "postrider/open.hpp"

namespace postrider::cli {
namespace {

struct VerifyOptions : AdminOptions {
  std::size_t seconds = 60;
  std::size_t sample = 1000;
};

void run_check(const Check& check, Inspector& inspector, Findings& findings) {
  const std::string name = check.name + " (" + check.invariant + ")";
  try {
    const std::string found = check.violation(inspector);
    if (found.empty()) {
      findings.ok(name, check.holds);
    } else if (check.note_only) {
      findings.note(name, found, check.mend);
    } else {
      findings.bad(name, found + "; it should be that " + check.holds, check.mend);
    }
  } catch (const Error& error) {
    if (error.connection_lost() || error.code() == ErrorCode::unavailable) throw;
    findings.skipped(
        name, error.code() == ErrorCode::timeout ? "it takes too long: raise --timeout" : what_of(error));
  }
}

Database open_patiently(const VerifyOptions& options) {
  Database database = resolve(options);
  const Duration time = std::chrono::seconds(options.seconds) + std::chrono::seconds{10};
  database.options.io_timeout = std::max(database.options.io_timeout, time);
  const std::optional<std::string> file = sqlite_file(database.url);
  database.storage = file ? open_for(options) : open(database.url, database.options);
  return database;
}

int run_verify(const VerifyOptions& options) {
  const Database database = open_patiently(options);
  const MigrationReport schema = database.storage->migrate({.dry_run = true});
  if (schema.from != schema.to) {
    throw Error(ErrorCode::schema, "cannot verify " + database.storage->name(),
                "its tables have version " + std::to_string(schema.from) + ", this program knows version " +
                    std::to_string(schema.to),
                "postrider migrate brings them there");
  }
  Inspector inspector(database, std::chrono::seconds(options.seconds));
  const Growing before = read_growing(inspector);
  std::vector<Check> checks = table_checks(inspector);
  for (Check& check : content_checks(database, options.sample)) checks.push_back(std::move(check));
  checks.push_back(grows(before));
  Findings findings;
  {
    Progress progress("verifying");
    for (std::size_t i = 0; i < checks.size(); ++i) {
      progress.show(static_cast<std::int64_t>(i), static_cast<std::int64_t>(checks.size()));
      run_check(checks[i], inspector, findings);
    }
  }
  findings.print(std::cout, options.format, "violated");
  const std::size_t bad = findings.bad_ones();
  if (options.format == Format::table) {
    std::cout << "postrider: "
              << (bad == 0 ? counted(checks.size(), "invariant") + " looked at, none is violated"
                           : std::to_string(bad) + " of " + counted(checks.size(), "invariant") + " violated")
              << '\n';
  }
  return bad == 0 ? 0 : 1;
}

}  // namespace

void add_verify_command(CLI::App& app, Chosen& chosen) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App& command =
      *app.add_subcommand("verify", "Check the invariants on a database that is in use; reads only");
  command.add_option("--timeout", options->seconds, "Seconds for each of them")
      ->type_name("SECONDS")
      ->check(between(1, 86'400))
      ->capture_default_str();
  command.add_option("--sample", options->sample, "So many of the newest events are looked at one by one")
      ->type_name("EVENTS")
      ->check(between(1, 1'000'000))
      ->capture_default_str();
  add_admin_options(command, *options);
  when_chosen(command, chosen, options, run_verify);
}

}  // namespace postrider::cli
